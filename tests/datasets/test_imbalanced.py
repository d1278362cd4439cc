"""Cut classes and values: counted by hand, never from test or validation, the same control."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robust_fairness.bench.datasets.images import imbalanced
from robust_fairness.bench.samples.splits import ClassSplitParameters, class_splits
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples
from tests.datasets.loading import load, one_line


@pytest.fixture
def load_of(monkeypatch, tmp_path):
    """Loads what is made of given samples."""

    def load(samples: Samples, splits: int = 2, **options) -> Samples:
        source = SimpleNamespace(load=lambda files, count: samples, data_kind="table")
        monkeypatch.setattr(imbalanced, "find", lambda kind, name: lambda parameters: source)
        parameters = imbalanced.Imbalanced.Parameters.model_validate({"of": "diabetes", **options})
        return imbalanced.Imbalanced(parameters).load(Files(tmp_path), splits)

    return load


def samples_of(labels: pd.Series, frame: pd.DataFrame, **attributes: pd.Categorical) -> Samples:
    """Rows whose only feature is their number."""
    rows = np.arange(len(labels))
    return Samples(
        x=rows[:, None].astype(np.float32),
        y=labels.cat.codes.to_numpy().astype(np.int64),
        attributes=pd.DataFrame(attributes, index=rows),
        id=rows,
        splits=frame,
        classes=tuple(labels.cat.categories),
    )


def labels_of(sizes: list[int], seed: int = 0) -> pd.Series:
    """Rows of classes of the given sizes in random order."""
    names = pd.Index([f"class {code}" for code in range(len(sizes))])
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    return pd.Series(pd.Categorical.from_codes(codes, names))


def made_of(sizes: list[int], splits: int = 2, seed: int = 0) -> Samples:
    """Classes of the given sizes, split within each."""
    labels = labels_of(sizes, seed)
    return samples_of(labels, class_splits(labels, splits, ClassSplitParameters(seed=seed)))


def counted(samples: Samples, rows: np.ndarray) -> np.ndarray:
    """Rows of every class."""
    return np.bincount(samples.y[rows], minlength=len(samples.classes))


def minority_of(samples: Samples, split: str) -> np.ndarray:
    """Which classes are cut, bool ``[classes]``, and that all their rows say so."""
    kinds = samples.of_split(split).attributes["class_size"]
    is_minority = np.zeros(len(samples.classes), dtype=bool)
    for code in range(len(samples.classes)):
        (kind,) = set(kinds[samples.y == code]) or {"majority"}
        is_minority[code] = kind == "minority"
    return is_minority


FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@FIXTURE
@given(
    sizes=st.lists(st.integers(1, 40), min_size=4, max_size=9),
    minority=st.integers(1, 3),
    level=st.one_of(
        st.tuples(st.just("cut"), st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99])),
        st.tuples(st.just("percent"), st.sampled_from([50, 60, 75, 90, 99])),
    ),
    seed=st.integers(0, 99),
)
def test_rows_come_from_training_only_and_are_as_many_as_in_the_control(
    load_of, sizes, minority, level, seed
):
    """Whatever the sizes of the classes are, singletons among them."""
    original = made_of([30, 30, 30, *sizes], seed=seed)
    try:
        samples = load_of(original, minority=minority, seed=seed, **dict([level]))
    except InputError as error:  # a small share of few rows is none
        assert "nothing to reduce" in str(error)
        assert level in {("cut", 0.1), ("percent", 60)} or min(sizes) < 8
        return
    for split in ("split_0", "split_1"):
        for part in ("val", "test"):
            assert np.array_equal(samples.rows(split, part), original.rows(split, part))
        available = original.rows(split, "train")
        trained, control = samples.rows(split, "train"), samples.downstream_rows(split)
        assert set(trained) <= set(available) and set(control) <= set(available)
        assert len(trained) == len(control)
        cut = minority_of(samples, split)
        assert cut.sum() == minority
        before, after = counted(samples, control), counted(samples, trained)
        pool = counted(samples, available)
        assert (after[cut] <= before[cut]).all() and (after[~cut] >= before[~cut]).all()
        assert (before[pool > 0] >= 1).all() and (after[pool > 0] >= 1).all()
        is_cut = np.append(cut, False)[samples.y]
        assert set(trained[is_cut[trained]]) <= set(control[is_cut[control]])
        assert set(control[~is_cut[control]]) <= set(trained[~is_cut[trained]])
        if level[0] == "cut":
            kept = [max(1, round((1 - level[1]) * rows)) for rows in before[cut]]
            assert after[cut].tolist() == kept
        if level in {("cut", 0.0), ("percent", 50)}:
            assert np.array_equal(trained, control)
        else:
            assert after[cut].sum() < before[cut].sum()


@pytest.mark.parametrize("classes", [3, 8, 40])
@pytest.mark.parametrize("pool", [2, 10, 33, 66])
@pytest.mark.parametrize("minority", [1, 2])
def test_the_control_is_the_largest_that_can_be_refilled(classes, pool, minority):
    """Of classes of one size: tried one by one, with every class cut to a single row."""
    cut = np.arange(classes) < minority
    parameters = imbalanced.Imbalanced.Parameters(of="digits", cut=0)
    _, control = imbalanced._sizes(np.full(classes, pool), cut, parameters)
    possible = [
        rows
        for rows in range(1, pool + 1)
        if minority * (rows - 1) <= (classes - minority) * (pool - rows)
    ]
    assert control.tolist() == [max(possible)] * classes


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.data())
def test_shares_are_in_proportion_and_never_more_than_there_are(spare, data):
    """Whole rows, within one of the exact share."""
    total = data.draw(st.integers(0, sum(spare)))
    shared = imbalanced._shared(total, np.array(spare))
    exact = total * np.array(spare) / max(1, sum(spare))
    assert shared.sum() == total
    assert (shared <= spare).all() and (abs(shared - exact) < 1).all()


@pytest.mark.parametrize("minority", [4, 10, 13])
@pytest.mark.parametrize("percent", [50, 60, 70, 80, 90])
def test_percent_is_the_ratio_of_a_class_of_either_kind(load_of, minority, percent):
    """At a constant total, in classes of 202 training rows."""
    samples = load_of(made_of([505] * 20), percent=percent, minority=minority)
    cut = minority_of(samples, "split_0")
    rows = counted(samples, samples.rows("split_0", "train"))
    assert np.ptp(rows[cut]) == 0 and np.ptp(rows[~cut]) <= 1
    fewer, more = rows[cut].mean(), rows[~cut].mean()
    assert 100 * more / (fewer + more) == pytest.approx(percent, abs=0.6)
    assert rows.sum() == 20 * (1 + 201 * (20 - minority) // 20)


def test_degrees_of_imbalance_share_their_control_and_their_rows(load_of):
    """More of it takes rows away from the minority and adds some to the majority."""
    original = made_of([50] * 12, splits=3)
    degrees = [
        load_of(original, 3, minority=5, **level)
        for level in ({"cut": 0}, {"percent": 60}, {"percent": 80}, {"cut": 0.9})
    ]
    for split in original.split_names:
        cut = minority_of(degrees[0], split)[original.y]
        for less, more in zip(degrees, degrees[1:], strict=False):
            assert less.downstream.equals(more.downstream)
            assert less.attributes.equals(more.attributes)
            fewer, further = (set(samples.rows(split, "train")) for samples in (less, more))
            assert all(cut[row] for row in fewer - further) and fewer - further
            assert not any(cut[row] for row in further - fewer)


def test_ten_splits_cut_ten_sets_of_classes(load_of):
    """Also where the data set has one split, whose test rows are then those of all."""
    for splits in (1, 4, 10):
        original = made_of([20] * 30, splits=splits)
        samples = load_of(original, 10, minority=8)
        assert samples.split_names == [f"split_{k}" for k in range(10)]
        cut = {tuple(minority_of(samples, split)) for split in samples.split_names}
        assert len(cut) == 10
        for k, split in enumerate(samples.split_names):
            tested = original.rows(f"split_{k % splits}", "test")
            assert np.array_equal(samples.rows(split, "test"), tested)
    fewer, other = load_of(original, 3, minority=8), load_of(original, 10, minority=8, seed=1)
    pd.testing.assert_frame_equal(fewer.splits, samples.splits[list(fewer.splits)])
    assert not other.splits.equals(samples.splits)


def test_every_class_is_cut_equally_often(load_of):
    """And every row is equally often left out of the control."""
    original = made_of([10] * 6, splits=1)
    samples = load_of(original, 600, minority=2, cut=0.5)
    cut = np.mean([minority_of(samples, split) for split in samples.split_names], axis=0)
    assert abs(cut - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / 600)
    used = samples.downstream.mean(axis=1)[original.rows("split_0", "train")]
    share = used.mean()
    assert abs(used - share).max() < 4.5 * np.sqrt(share * (1 - share) / 600)


def test_values_of_an_attribute_are_cut_and_missing_ones_stay(load_of):
    """The attribute of the row decides, its class does not."""
    rng = np.random.default_rng(0)
    labels = labels_of([100] * 4)
    codes = rng.choice([-1, 0, 1, 2, 3], 400, p=[0.1, 0.4, 0.2, 0.2, 0.1])
    color = pd.Categorical.from_codes(codes, pd.Index(["red", "blue", "green", "grey"]))
    original = samples_of(labels, class_splits(labels, 2, ClassSplitParameters()), color=color)
    samples = load_of(original, by="color", minority=("blue", "grey"), cut=0.75)
    for split in ("split_0", "split_1"):
        available = original.rows(split, "train")
        trained, control = samples.rows(split, "train"), samples.downstream_rows(split)
        attributes = samples.of_split(split).attributes
        assert attributes.loc[codes == -1, "class_size"].isna().all()
        assert attributes.loc[np.isin(codes, (1, 3)), "class_size"].eq("minority").all()
        assert attributes.loc[np.isin(codes, (0, 2)), "class_size"].eq("majority").all()
        missing = set(available[codes[available] == -1])
        assert missing <= set(trained) and missing <= set(control)
        assert len(trained) == len(control) < len(available)
        for code in (1, 3):
            rows = (codes[control] == code).sum()
            assert (codes[trained] == code).sum() == round(0.25 * rows) < rows
    assert samples.sensitive == ("class_size",)


def test_everything_else_is_the_data_set_s_own(load_of):
    """Further parts, inputs, classes; the attribute stands beside its own."""
    labels = labels_of([30] * 4)
    frame = class_splits(labels, 1, ClassSplitParameters())
    parts = frame["split_0"].astype(object)
    parts[parts.index[parts == "val"][:3]] = "unbiased_val"
    frame["split_0"] = pd.Categorical(parts, ["train", "val", "unbiased_val", "test"])
    color = pd.Categorical(np.repeat(["red", "blue"], 60))
    original = samples_of(labels, frame, color=color)
    samples = load_of(original, 1, minority=2, sensitive=("color", "class_size"))
    assert samples.rows("split_0", "unbiased_val").tolist() == sorted(
        parts.index[parts == "unbiased_val"]
    )
    assert samples.x is original.x and np.array_equal(samples.y, original.y)
    assert samples.sensitive == ("color", "class_size")
    assert list(samples.of_split("split_0").attributes) == ["color", "class_size"]


def test_any_data_set_can_be_split_within_each_class(load_of, tmp_path):
    """In the place of splits of its own, also where those are fewer."""
    options = {"of": "digits", "minority": 5, "split": {"test_fraction": 0.5, "seed": 4}}
    samples = load("imbalanced", tmp_path, 3, **options)
    rows = np.bincount(samples.y)
    for split in samples.split_names:
        assert (abs(counted(samples, samples.rows(split, "test")) - rows / 2) <= 0.5).all()
    original = made_of([20] * 5, splits=1)
    again = load_of(original, 3, minority=2, split={})
    tested = {tuple(again.rows(split, "test")) for split in again.split_names}
    assert len(tested) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"minority": 6},
            "minority: 6, allowed: 1 to 4, since 5 of 5 values of class have at least two",
        ),
        ({"minority": 5}, "minority: 5, allowed: 1 to 4"),
        ({"minority": ("class 9",)}, "unknown class 'class 9': did you mean"),
        (
            {"minority": tuple(f"class {code}" for code in range(5))},
            "minority: contains all values of class with training rows",
        ),
        ({"minority": 2, "by": "colour"}, "unknown attribute 'colour': did you mean 'color'"),
        ({"minority": 2, "by": "age"}, "attribute 'age' is continuous"),
        ({"minority": 2, "cut": 0.01}, "class: nothing to reduce: the control has"),
        ({"minority": 2, "sensitive": ("colour",)}, "unknown sensitive attribute 'colour'"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(load_of, options, message):
    """And says what can."""
    original = made_of([20] * 5)
    original.attributes["color"] = pd.Categorical(["red", "blue"] * 50)
    original.attributes["age"] = np.arange(100.0)
    with one_line(message):
        load_of(original, **options)


def test_an_attribute_of_the_same_name_is_refused(load_of):
    """Which one is meant is not guessed."""
    original = made_of([20] * 5)
    original.attributes["class_size"] = pd.Categorical(["red", "blue"] * 50)
    with pytest.raises(InputError, match="of: diabetes already has an attribute class_size"):
        load_of(original, minority=2)


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (
            {"source": "imbalanced", "of": "digits", "minority": 2},
            "of: attributes of imbalanced differ by split",
        ),
        (
            {"source": "diabetes", "target": "continuous"},
            "not defined by class for a continuous outcome",
        ),
    ],
)
def test_data_cut_before_or_without_classes_are_refused(tmp_path, of, message):
    """One imbalance at a time; numbers have no classes."""
    with pytest.raises(InputError, match=message):
        load("imbalanced", tmp_path, of=of, minority=2)


def test_classes_too_small_to_lose_a_row_are_told(load_of, caplog):
    """Here one of two training rows is in the control, and a class keeps one."""
    samples = load_of(made_of([40, 40, 40, 4]), minority=("class 0", "class 3"))
    assert "split_0: 1 of 2 values of class have too few rows" in caplog.text
    rows = counted(samples, samples.rows("split_0", "train"))
    assert rows[3] == counted(samples, samples.downstream_rows("split_0"))[3] == 1
