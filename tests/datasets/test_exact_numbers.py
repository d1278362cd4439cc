"""Numbers that make groups, bins and decisions: none is rounded, in a frame as in its file."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from robust_fairness.auditing.read.columns import (
    as_numbers,
    as_written,
    attribute,
    binned,
    canonical,
)
from robust_fairness.bench.experiment.experiment import TestSet
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import as_decimal, exact
from robust_fairness.metrics.criteria import Criterion
from robust_fairness.report.pairs import test_set_name as name_in_the_matrix


@pytest.mark.parametrize("seed", range(3))
def test_the_text_of_a_number_says_exactly_this_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = [
        *rng.normal(0, 10.0 ** rng.integers(-12, 18, 500)),
        *rng.integers(-(2**60), 2**60, 99),
    ]
    assert [Fraction(exact(n)) for n in numbers] == [Fraction(str(n)) for n in numbers]
    assert [float(exact(float(n))) for n in numbers] == [float(n) for n in numbers]
    assert [exact(n) for n in (1.0, 20240624.0, -0.0, 1e-5, 0)] == [
        "1",
        "20240624",
        "0",
        "1e-05",
        "0",
    ]


def test_texts_that_are_numbers() -> None:
    texts = ["1", " 1.50", "1e3", "-.5", "9" * 50, "1.", "x", "", "1,5", "nan", "inf", "0x1", "1_0"]
    numbers = [1, 1.5, 1000, -0.5, int("9" * 50), 1, *[None] * 7]
    assert [as_decimal(text) for text in texts] == numbers


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("1", "01", True), ("1", "1.0", True), ("YES", "yes ", True), ("1e3", "1000", True),
        (str(2**53), str(2**53 + 1), False), ("0.1234567", "0.1234568", False), ("a", "b", False),
    ],
)  # fmt: skip
def test_spellings_of_one_value(first: str, second: str, same: bool) -> None:
    assert (canonical(first) == canonical(second)) is same


@pytest.mark.parametrize("kind", ["float32", "float16", "Float32"])
def test_short_floats_are_read_as_their_csv_file_says(kind: str) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            rng.random(3000),
            rng.normal(0, 1e3, 3000),
            10.0 ** rng.uniform(-6, 4.5, 3000),
            [0.7, 0, 1],
        ]
    )
    cells = pd.Series(values).astype(kind)
    theirs = [float(text) for text in cells.to_csv(index=False, header=False).split()]
    assert as_numbers(cells, "t").tolist() == theirs
    exactly = cells.astype(str).astype("category")
    groups = attribute(cells[:9], "t", "category")
    assert {*groups} <= {text.removesuffix(".0") for text in exactly}
    assert as_written(np.array([np.nan, np.inf], np.float32)).tolist()[1] == np.inf


@pytest.mark.parametrize(
    "edges",
    [
        (10000010.0, 10000020.0), (78.5, 78.50001), (30, 60), (0.1 + 0.2, 0.3 + 0.2), (1e-7, 2e-7),
        (1234567.0, 1234568.0, 1234569.0), (-1.0000001, -1.0),
    ],
)  # fmt: skip
def test_bins_have_the_edges_that_were_given_and_names_that_say_them(edges) -> None:
    """Rows at, just below and just above every edge, by brute force."""
    near = [f(edge) for edge in edges for f in (float, lambda e: np.nextafter(e, -9e9))]
    values = pd.Series([*near, min(near) - 1, max(near) + 1], name="v")
    groups = binned(values, "t", tuple(edges))
    names = list(groups.cat.categories)
    said = [names[0].split(" < ")[1], *(name.split(" < ")[1] for name in names[1:-1])]
    assert [float(edge) for edge in said] == list(map(float, edges))
    assert len({*names}) == len(edges) + 1
    assert list(groups.cat.codes) == [sum(v >= edge for edge in edges) for v in values]


@pytest.mark.parametrize("seed", range(3))
def test_quantile_bins_of_close_numbers_are_bins(seed: int) -> None:
    values = pd.Series(10**7 + np.random.default_rng(seed).integers(0, 50, 500), name="v") + 0.0
    groups = binned(values, "t", 4)
    assert len({*groups.cat.categories}) == 4
    edges = np.quantile(values, [0.25, 0.5, 0.75])
    assert list(groups.cat.codes) == list(np.searchsorted(edges, values, side="right"))


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ((), r"bin edges \(none\) must increase and be finite"),
        ((3.0, 2.0), "bin edges 3, 2 must"),
        ((10000010.0, 10000010.0), "bin edges 10000010, 10000010 must"),
        ((1.0, float("nan")), "bin edges 1, nan must"),
        ((1.0, float("inf")), "bin edges 1, inf must"),
        ((5.0000001, 5.0000002), "bin 5.0000001 <= v < 5.0000002 is empty"),
        (0, "0 bins, allowed: from 2 to 100"), (1, "1 bins, allowed"), (10**9, "allowed: from 2"),
        (50, "is empty; choose other bins"),
    ],
)  # fmt: skip
def test_bins_that_cannot_be_are_one_line(bins, message: str) -> None:
    with pytest.raises(InputError, match=message):
        binned(pd.Series(range(10), name="v", dtype=float), "t", bins)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (pd.cut(pd.Series([1, 2, 30]), [0, 5, 50]), r"type Interval.*\.astype\(str\).*bins"),
        (pd.Series(pd.date_range("2024-01-01", periods=3)), r"type Timestamp.*\.astype\(str\)"),
        (
            pd.Series(pd.period_range("2024-01", periods=3, freq="M")),
            r"type Period.*\.astype\(str\)",
        ),
        (pd.Series(["1", "01", "2"]), r"how a number is written, allowed: one spelling"),
    ],
)
def test_attributes_that_are_refused_say_the_remedy(cells: pd.Series, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attribute(cells, "t")


def test_names_with_numbers_that_differ_late_differ() -> None:
    """Names of test sets in catalog and matrix, and criteria, which are read from their text."""
    first, second = 0.1234567, 0.1234568
    shift = {"name": "gaussian_noise"}
    sets = [TestSet(shift=shift, severity=severity) for severity in (first, second, 0.1, 2.0)]
    assert [item.name for item in sets] == [
        "gaussian_noise_0_1234567", "gaussian_noise_0_1234568", "gaussian_noise_0_1",
        "gaussian_noise_2",
    ]  # fmt: skip
    assert name_in_the_matrix("blur", first, "") != name_in_the_matrix("blur", second, "")
    for share in (0.9712345, 0.97, 0.123456789):
        criterion = Criterion.parse({"objective": "delta_eo", "subject_to": {"accuracy": share}})
        assert Criterion.parse(str(criterion)) == criterion
