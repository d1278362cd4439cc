"""Random splits: exact sizes, disjoint parts, each split its own."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.samples.splits import (
    ClassSplitParameters,
    SplitParameters,
    class_splits,
    described,
    random_splits,
    ranks,
    require_every_class,
    unit_splits,
)
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError

seeds = st.integers(0, 2**32)


@given(st.integers(3, 200), st.integers(1, 4), seeds, st.data())
def test_parts_have_exact_sizes_and_cover_every_row(
    rows: int, count: int, seed: int, data: st.DataObject
) -> None:
    training = data.draw(st.integers(2, rows - 1))
    validation = data.draw(st.integers(1, training - 1))
    parameters = SplitParameters(train_rows=training, val_fraction=validation / training, seed=seed)
    splits = random_splits(rows, count, parameters)
    assert list(splits) == [f"split_{k}" for k in range(count)]
    for _, parts in splits.items():
        assert list(parts.cat.categories) == ["train", "val", "test"]
        sizes = {"train": training - validation, "val": validation, "test": rows - training}
        assert parts.value_counts().to_dict() == sizes


def test_fractions_give_sixty_twenty_twenty() -> None:
    splits = random_splits(1000, 1, SplitParameters(train_rows=0.8, val_fraction=0.25))
    assert splits["split_0"].value_counts().to_dict() == {"train": 600, "val": 200, "test": 200}


@given(st.lists(st.integers(0, 12), min_size=60, max_size=90), seeds)
def test_rows_of_a_unit_share_their_part_and_parts_are_shares_of_the_units(
    numbers: list[int], seed: int
) -> None:
    units = pd.Series([f"unit {number}" for number in [*numbers, *range(13)]])
    parameters = SplitParameters(train_rows=9, val_fraction=1 / 3, seed=seed)
    splits = unit_splits(units, 2, parameters)
    for split in splits:
        part_of_unit = dict(zip(units, splits[split], strict=True))
        assert splits[split].tolist() == [part_of_unit[unit] for unit in units]
        counts = pd.Series(list(part_of_unit.values())).value_counts()
        assert counts.to_dict() == {"train": 6, "val": 3, "test": 4}


def test_units_of_one_row_are_split_as_rows_are() -> None:
    parameters = SplitParameters(train_rows=0.7)
    splits = unit_splits(pd.Series(range(50, 0, -1)), 3, parameters)
    pd.testing.assert_frame_equal(splits, random_splits(50, 3, parameters))


def test_official_test_rows_are_the_test_part_of_every_split() -> None:
    splits = random_splits(140, 3, SplitParameters(val_fraction=0.25), 100)
    assert (splits.iloc[100:] == "test").all(axis=None)
    for _, parts in splits.items():
        assert list(parts.cat.categories) == ["train", "val", "test"]
        assert parts.iloc[:100].value_counts().to_dict() == {"train": 75, "val": 25, "test": 0}
    assert splits.T.drop_duplicates().shape[0] == 3
    with pytest.raises(InputError, match=r"test 0; every part needs a row"):
        random_splits(100, 1, SplitParameters(), 100)


def test_every_row_is_equally_often_a_test_row() -> None:
    splits = random_splits(40, 2000, SplitParameters(train_rows=0.75))
    tested = (splits == "test").mean(axis=1)
    deviation = np.sqrt(0.25 * 0.75 / 2000)
    assert np.abs(tested - 0.25).max() < 4.5 * deviation


@pytest.mark.parametrize(
    ("rows", "train_rows", "val_fraction"), [(100, 100, 0.2), (100, 200, 0.2), (100, 50, 0.001)]
)
def test_empty_part_is_refused(rows: int, train_rows: int, val_fraction: float) -> None:
    parameters = SplitParameters(train_rows=train_rows, val_fraction=val_fraction)
    with pytest.raises(InputError, match=r"every part needs a row"):
        random_splits(rows, 1, parameters)


def test_class_missing_from_a_part_is_named_with_split_and_part() -> None:
    labels = pd.Series(pd.Categorical(["no", "no", "yes", "no", "yes", "yes"]))
    parts = pd.Categorical(["train", "val", "train", "test", "test", "test"])
    with pytest.raises(InputError, match=r"split_0: its val part has no row of class 'yes'"):
        require_every_class(pd.DataFrame({"split_0": parts}), labels)


def classes_of(sizes: list[int], seed: int = 0) -> pd.Series:
    """Rows of classes of the given sizes, in random order."""
    names = [f"class {code}" for code in range(len(sizes))]
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(names)))


def rows_split(count: int, seed: int) -> pd.DataFrame:
    return random_splits(200, count, SplitParameters(train_rows=0.6, seed=seed))


def classes_split(count: int, seed: int) -> pd.DataFrame:
    return class_splits(classes_of([20] * 10), count, ClassSplitParameters(seed=seed))


BOTH = pytest.mark.parametrize("split", [rows_split, classes_split])


@BOTH
@given(seed=seeds, few=st.integers(1, 5), many=st.integers(1, 5))
def test_split_does_not_depend_on_how_many_there_are(split, seed: int, few: int, many: int) -> None:
    fewer, more = (split(count, seed) for count in sorted((few, many)))
    pd.testing.assert_frame_equal(fewer, more[list(fewer)])


@BOTH
def test_splits_differ_from_each_other_and_by_seed(split) -> None:
    splits = pd.concat([split(5, seed).add_suffix(f" {seed}") for seed in (0, 1)], axis=1)
    assert splits.T.drop_duplicates().shape[0] == 10


@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.integers(1, 3),
    st.sampled_from([0.2, 0.25, 0.5, 0.8]),
    st.sampled_from([0.1, 0.2, 0.5, 0.9]),
    seeds,
)
def test_parts_of_a_class_have_the_sizes_that_counting_by_hand_gives(
    sizes: list[int], count: int, test_fraction: float, val_fraction: float, seed: int
) -> None:
    sizes = [*sizes, 30]
    labels = classes_of(sizes, seed)
    parameters = ClassSplitParameters(
        test_fraction=test_fraction, val_fraction=val_fraction, seed=seed
    )
    splits = class_splits(labels, count, parameters)
    assert list(splits) == [f"split_{k}" for k in range(count)]
    for _, parts in splits.items():
        assert list(parts.cat.categories) == ["train", "val", "test"]
        assert parts.notna().all()
        for code, size in enumerate(sizes):
            counts = [parts[labels.cat.codes == code].eq(part).sum() for part in ("test", "val")]
            tested = min(range(size + 1), key=lambda n: abs(test_fraction * size - n))
            tested = 0 if size < 2 else min(max(tested, 1), size - 1)
            left = size - tested
            near = min(range(left + 1), key=lambda n: abs(val_fraction * left - n))
            assert counts == [tested, max(0, min(near, left - 1))]


def test_every_row_of_a_class_is_equally_often_in_every_part() -> None:
    labels = classes_of([10, 20])
    splits = class_splits(labels, 3000, ClassSplitParameters(test_fraction=0.4, val_fraction=0.5))
    for part, share in (("test", 0.4), ("val", 0.3), ("train", 0.3)):
        deviation = np.sqrt(share * (1 - share) / 3000)
        assert np.abs((splits == part).mean(axis=1) - share).max() < 4.5 * deviation


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([], {}, "leave the train part of the 0 rows of 0 classes empty"),
        ([1, 1, 1], {}, "leave the val part of the 3 rows of 3 classes empty"),
        ([2, 2], {}, "leave the val part of the 4 rows of 2 classes empty"),
        ([9], {"val_fraction": 0.01}, "leave the val part of the 9 rows of 1 classes empty"),
    ],
)
def test_empty_parts_of_class_splits_are_refused(
    sizes: list[int], options: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        class_splits(classes_of(sizes), 1, ClassSplitParameters(**options))


def test_no_split_and_rows_without_a_class_are_refused() -> None:
    labels = pd.Series(pd.Categorical(["a", None, "a"]))
    for count in (0, -1):
        with pytest.raises(InputError, match=f"splits: {count} asked for"):
            random_splits(10, count, SplitParameters())
        with pytest.raises(InputError, match=f"splits: {count} asked for"):
            class_splits(labels, count, ClassSplitParameters())
    with pytest.raises(InputError, match="row 1 has no class"):
        class_splits(labels, 1, ClassSplitParameters())


@given(st.lists(st.integers(-1, 5), max_size=40), seeds)
def test_ranks_count_the_rows_of_every_code_once(codes: list[int], seed: int) -> None:
    rank = ranks(np.array(codes, dtype=np.int64), np.random.default_rng(seed))
    for code in set(codes):
        ranks_of_code = sorted(rank[np.array(codes) == code].tolist())
        assert ranks_of_code == list(range(codes.count(code)))


@given(rows=st.integers(3, 30), count=st.integers(1, 4), seed=st.integers(0, 99))
def test_described_splits_are_counted_row_by_row(rows: int, count: int, seed: int) -> None:
    splits = random_splits(
        rows, count, SplitParameters(train_rows=0.7, val_fraction=0.4, seed=seed)
    )
    table = described("d", splits)
    assert list(table.columns) == list(tables.SPLITS)
    for place, name in enumerate(splits):
        tested = [row for row in range(rows) if splits[name][row] == "test"]
        trained = [row for row in range(rows) if splits[name][row] == "train"]
        others = [other for other in splits if other != name]
        shares = [np.mean([splits[other][row] == "train" for row in tested]) for other in others]
        expected = ["d", name, len(trained), len(tested), np.mean(shares) if shares else 0.0]
        assert table.iloc[place].tolist() == pytest.approx(expected)
