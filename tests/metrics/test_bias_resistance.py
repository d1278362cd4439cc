"""Metrics of resistance to bias against slow restatements, scikit-learn, and their properties."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, recall_score

from robust_fairness import metrics
from robust_fairness.bench.datasets.tables import public
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples
from robust_fairness.metrics import evaluate, find_metric
from robust_fairness.metrics.bias_resistance import (
    accuracy_at,
    improvement_by_group,
    in_majority,
    majority_accuracy,
    majority_minority_difference,
    mean_accuracy_at,
    mean_majority_minority_difference,
    minority_accuracy,
    unbiased_accuracy,
)
from robust_fairness.numbers.groups import Groups

from .helpers import samples_of


@pytest.mark.parametrize("classes", [(0, 1), ("no", "yes"), ("a", "b", "c")])
def test_improvement_is_the_difference_of_accuracies_by_class_group(classes):
    """Against scikit-learn's accuracies of both models, by hair and class, whatever codes are."""
    generator = np.random.default_rng(len(classes[0]) if isinstance(classes[0], str) else 0)
    y, ours, standard = np.array(classes)[generator.integers(0, len(classes), (3, 200))]
    groups = pd.DataFrame({"hair": generator.choice(["dark", "fair"], 200), "class": y})
    found = metrics.improvement_by_group(y, ours, y_standard=standard, sensitive_features=groups)
    for hair in ("dark", "fair"):
        for label in classes:
            rows = ((groups["hair"] == hair) & (groups["class"] == label)).to_numpy()
            expected = accuracy_score(y[rows], ours[rows]) - accuracy_score(y[rows], standard[rows])
            (value,) = [
                v for name, v in found.items() if set(name.split(" & ")) == {hair, str(label)}
            ]
            assert value == pytest.approx(expected, abs=1e-12)


def test_improvement_has_the_variance_of_paired_rows():
    generator = np.random.default_rng(3)
    y, ours, standard = generator.integers(0, 2, (3, 60))
    group = Groups.named(generator.integers(0, 2, 60), ("a", "b"))
    scores = improvement_by_group(y, ours, y_standard=standard, sensitive_features=group)
    for code, name in enumerate(("a", "b")):
        rows = group.index == code
        differences = (ours == y)[rows].astype(int) - (standard == y)[rows].astype(int)
        assert scores[name].variance == pytest.approx(differences.var(ddof=1) / rows.sum())


GROUPS, CLASSES = ("red", "green", "blue"), ("no", "yes")
ALPHAS = st.floats(-2, 3)


@st.composite
def cases(draw, most=40):
    """Arguments of ``accuracy_at``; any class group may be absent on either side."""

    def columns(names: str, least: int) -> dict[str, np.ndarray]:
        pairs = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1))
        rows = np.array(
            draw(st.lists(pairs, min_size=least, max_size=most)), dtype=np.int64
        ).reshape(-1, 3)
        return dict(zip(names.split(), rows.T, strict=False))

    return columns("y_true sensitive_features y_pred", 0) | columns(
        "y_train sensitive_features_train", 0
    )


def pairs(y, group) -> list[tuple[int, int]]:
    """Class groups of rows."""
    return list(zip(group.tolist(), y.tolist(), strict=True))


def slow_accuracy_at(case: dict, alpha: int) -> Fraction | None:
    """The formula of section 2 with dictionaries and exact fractions."""
    trained = Counter(pairs(case["y_train"], case["sensitive_features_train"]))
    rows = Counter(pairs(case["y_true"], case["sensitive_features"]))
    right = case["y_pred"] == case["y_true"]
    hits = Counter(pairs(case["y_true"][right], case["sensitive_features"][right]))
    share = {g: Fraction(n, trained.total()) ** alpha for g, n in trained.items() if g in rows}
    if not share:
        return None
    return sum(share[g] * Fraction(hits[g], rows[g]) for g in share) / sum(share.values())


@given(cases(), st.integers(-2, 3))
def test_accuracy_at_is_its_formula(case, alpha):
    """In exact numbers; no value without a common group."""
    score, expected = accuracy_at(**case, alpha=alpha), slow_accuracy_at(case, alpha)
    if expected is None:
        assert (score.value, score.n) == (None, 0)
        assert score.note
    else:
        assert score.value == pytest.approx(float(expected), abs=1e-12)


@given(cases())
def test_alpha_zero_is_the_mean_recall_of_class_groups(case):
    """Every group that occurs on both sides weighs the same: scikit-learn's macro recall."""
    common = set(pairs(case["y_true"], case["sensitive_features"])) & set(
        pairs(case["y_train"], case["sensitive_features_train"])
    )
    if not common:
        return
    wrong = 99
    truth = 2 * case["sensitive_features"] + case["y_true"]
    said = np.where(case["y_pred"] == case["y_true"], truth, wrong)
    labels = [2 * group + label for group, label in common]
    expected = recall_score(truth, said, labels=labels, average="macro")
    assert accuracy_at(**case).value == pytest.approx(expected)


@given(cases(), st.integers(1, 3))
def test_alpha_one_is_plain_accuracy_where_shares_are_those_of_training(case, times):
    """Also with several test rows for every training row."""
    case |= {"y_train": case["y_true"], "sensitive_features_train": case["sensitive_features"]}
    case |= {
        name: np.tile(case[name], times) for name in ("y_true", "sensitive_features", "y_pred")
    }
    score = accuracy_at(**case, alpha=1)
    if not len(case["y_true"]):
        assert (score.value, score.note) == (None, "no rows")
        return
    assert score.value == pytest.approx(np.mean(case["y_pred"] == case["y_true"]))
    assert (score.n, score.note) == (len(case["y_true"]), "")


@given(cases(), ALPHAS)
def test_absent_groups_are_left_out_alike_at_every_alpha_and_counted(case, alpha):
    """The value is that of the rows whose group is on the other side too."""
    here, there = (
        pairs(case["y_true"], case["sensitive_features"]),
        pairs(case["y_train"], case["sensitive_features_train"]),
    )
    score = accuracy_at(**case, alpha=alpha)
    told = {
        "absent from training": len(set(here) - set(there)),
        "absent from these rows": len(set(there) - set(here)),
    }
    for reason, number in told.items():
        assert (f"{number} {reason}" in score.note) == bool(number)
    kept = np.array([subgroup in set(there) for subgroup in here], dtype=bool)
    train_kept = np.array([subgroup in set(here) for subgroup in there], dtype=bool)
    common = case | {name: case[name][kept] for name in ("y_true", "sensitive_features", "y_pred")}
    common |= {name: case[name][train_kept] for name in ("y_train", "sensitive_features_train")}
    alone = accuracy_at(**common, alpha=alpha)
    assert (alone.value, alone.n) == (score.value, score.n)
    assert score.n == kept.sum()


@given(cases(), ALPHAS, st.permutations(range(3)), st.randoms(use_true_random=False))
def test_value_is_blind_to_numbers_of_groups_and_classes_and_to_the_order_of_rows(
    case, alpha, order, random
):
    """Only who is together matters."""
    rows = np.array(random.sample(range(len(case["y_true"])), len(case["y_true"])), dtype=int)
    other = {}
    for name in ("sensitive_features", "sensitive_features_train"):
        other[name] = np.array(order)[case[name]]
    for name in ("y_true", "y_pred", "y_train"):
        other[name] = 1 - case[name]
    for name in ("y_true", "y_pred", "sensitive_features"):
        other[name] = other[name][rows]
    score, two = accuracy_at(**case, alpha=alpha), accuracy_at(**other, alpha=alpha)
    assert (score.n, score.note) == (two.n, two.note)
    assert score.value == pytest.approx(two.value)


@given(cases(), ALPHAS, st.floats(0, 1))
def test_value_changes_no_faster_with_alpha_than_the_shares_allow(case, alpha, step):
    """The slope is a covariance of log shares and accuracies: at most a quarter of their ranges."""
    low, two = (accuracy_at(**case, alpha=a).value for a in (alpha, alpha + step))
    if low is None:
        return
    assert 0 <= low <= 1
    counts = list(Counter(pairs(case["y_train"], case["sensitive_features_train"])).values())
    assert abs(two - low) <= step * np.log(max(counts) / min(counts)) / 4 + 1e-12


@given(cases(), ALPHAS, st.floats(0, 2), st.integers(1, 10))
def test_value_rises_with_alpha_where_frequent_groups_are_right(case, alpha, step, least):
    """And falls where the rare ones are."""
    counts = Counter(pairs(case["y_train"], case["sensitive_features_train"]))
    frequent = np.array(
        [counts[g] >= least for g in pairs(case["y_true"], case["sensitive_features"])], dtype=bool
    )
    for right, sign in ((frequent, 1), (~frequent, -1)):
        said = case | {"y_pred": np.where(right, case["y_true"], 1 - case["y_true"])}
        low, two = (accuracy_at(**said, alpha=a).value for a in (alpha, alpha + step))
        assert low is None or sign * (two - low) >= -1e-12


def test_shares_of_one_in_a_million_are_neither_lost_nor_infinite():
    """Right on the rare group only; alphas far beyond the study's."""
    train_group = np.zeros(10**6, dtype=np.int64)
    train_group[-1] = 1
    case = {
        "y_true": np.zeros(2, dtype=np.int64),
        "y_pred": np.array([1, 0]),
        "sensitive_features": np.array([0, 1]),
        "y_train": np.zeros(10**6, dtype=np.int64),
        "sensitive_features_train": train_group,
    }
    odds = 10**6 - 1
    for alpha in (-100, -2, -0.5, 0, 1, 3):
        expected = 1 / (1 + float(odds) ** alpha)
        assert accuracy_at(**case, alpha=alpha).value == pytest.approx(expected, rel=1e-9)
    assert accuracy_at(**case, alpha=100).value == pytest.approx(0)


def test_tens_of_thousands_of_groups_and_classes_are_counted_not_enumerated():
    """A table of all groups by all classes would take 80 GB."""
    rng = np.random.default_rng(0)
    groups, alpha = 100_000, -0.5
    group, y = rng.integers(0, groups, 60_000), rng.integers(0, 3, 60_000) * 30_000
    train_group, train_y = rng.permutation(group), rng.permutation(y)
    prediction = np.where(rng.random(60_000) < 0.5, y, 0)
    of = {
        "sensitive_features": group,
        "y_train": train_y,
        "sensitive_features_train": train_group,
    }
    score = accuracy_at(y, prediction, **of, alpha=alpha)
    here = pd.DataFrame({"g": group, "y": y, "hit": prediction == y}).groupby(["g", "y"])["hit"]
    share = pd.DataFrame({"g": train_group, "y": train_y}).value_counts(normalize=True)
    both = pd.concat([here.mean(), here.size().rename("n"), share], axis=1, join="inner")
    weights = both["proportion"] ** alpha
    assert score.value == pytest.approx((both["hit"] * weights).sum() / weights.sum())
    assert score.n == both["n"].sum()
    assert 0 <= majority_accuracy(y, prediction, **of).value <= 1


@given(cases())
def test_class_groups_have_the_accuracy_of_their_rows(case):
    """Every group of training or these rows; one without a row here is missing."""
    sides = {
        name: Groups.named(case[name], GROUPS) for name in case if name.startswith("sensitive")
    }
    scores = find_metric("accuracy_by_subgroup").scores({**case, **sides, "classes": CLASSES})
    here, there = (
        pairs(case["y_true"], case["sensitive_features"]),
        pairs(case["y_train"], case["sensitive_features_train"]),
    )
    names = {f"{GROUPS[group]} & {CLASSES[label]}" for group, label in {*here, *there}}
    assert set(scores) == names
    for group, label in {*here, *there}:
        rows = (case["sensitive_features"] == group) & (case["y_true"] == label)
        score = scores[f"{GROUPS[group]} & {CLASSES[label]}"]
        assert score.n == rows.sum()
        if score.n:
            assert score.value == np.mean(case["y_pred"][rows] == label)
        else:
            assert (score.value, score.note) == (None, "no rows")


@given(cases())
def test_majority_is_the_most_frequent_value_of_the_class_in_training(case):
    """By counting; of equally frequent values the first; no majority without training rows."""
    prediction = case["y_pred"]
    expected = []
    for label, value in zip(case["y_true"], case["sensitive_features"], strict=True):
        counts = Counter(case["sensitive_features_train"][case["y_train"] == label].tolist())
        best = max(counts, key=lambda group: (counts[group], -group), default=None)
        expected.append(value == best)
    sides = (case["sensitive_features"], case["sensitive_features_train"])
    majority = in_majority(case["y_true"], sides[0], case["y_train"], sides[1])
    assert majority.tolist() == expected

    sides = {True: majority_accuracy(**case), False: minority_accuracy(**case)}
    for side, score in sides.items():
        hits = (prediction == case["y_true"])[majority == side]
        assert score.n == len(hits)
        assert score.value == (hits.mean() if len(hits) else None)
    gap = majority_minority_difference(**case)
    if sides[True].n and sides[False].n:
        assert gap.value == sides[True].value - sides[False].value
        assert gap.n == len(case["y_true"])
    else:
        assert gap.value is None
        assert ("majority" in gap.note) == (not sides[True].n)
        assert ("minority" in gap.note) == (not sides[False].n)


def test_majority_of_the_papers_example():
    """Most 0s are blue and most 1s are green (6.3): blue 0s and green 1s, whatever is here."""
    red, green, blue = range(3)
    train_y = np.array([0, 0, 0, 1, 1, 1])
    train_group = np.array([blue, blue, green, green, green, red])
    y = np.array([0, 0, 0, 1, 1, 1])
    group = np.array([green, green, blue, green, blue, red])
    majority = in_majority(y, group, train_y, train_group)
    assert majority.tolist() == [False, False, True, True, False, False]


def make_samples(rows: int, seed: int) -> Samples:
    """Two categorical attributes, one with missing values, and a continuous one."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    attributes = {
        "colour": pd.Categorical.from_codes(rng.integers(0, 2, rows) + y, GROUPS),
        "shape": pd.Categorical.from_codes(rng.integers(-1, 2, rows), ["round", "square"]),
        "size": rng.normal(size=rows),
    }
    return samples_of(y, CLASSES, **attributes)


def test_averages_are_over_the_categorical_attributes():
    """Each is the mean of the rows that the metric of one attribute gives."""
    samples, train = make_samples(200, 0), make_samples(300, 1)
    outputs = np.random.default_rng(2).normal(size=(200, 2))
    parts = {
        "unbiased_accuracy": "accuracy_at",
        "mean_accuracy_at(alpha=-1.5)": "accuracy_at(alpha=-1.5)",
        "mean_majority_minority_difference": "majority_minority_difference",
    }
    table = pd.DataFrame(evaluate([*parts, *parts.values()], samples, outputs, train=train))
    for mean, part in parts.items():
        each = table[table["metric"] == part].set_index("attribute")
        assert list(each.index) == ["colour", "shape"]
        (row,) = table[table["metric"] == mean].to_dict("records")
        assert row["attribute"] == ""
        assert row["value"] == pytest.approx(each["value"].mean())
        assert row["n"] == each["n"].min()
    assert (table[table["metric"] == "accuracy_at(alpha=-1.5)"]["note"] == table["note"][0]).all()


def test_average_is_missing_where_an_attribute_has_no_value_and_names_it():
    """A mean over fewer attributes would be another quantity."""
    y = np.array([0, 1, 0, 1])
    attributes = pd.DataFrame(
        {
            "same": pd.Categorical(["a"] * 4, ["a", "b"]),
            "other": pd.Categorical(["a", "a", "b", "b"]),
            "size": np.zeros(4),
        }
    )
    of = {"attributes": attributes, "y_train": y, "attributes_train": attributes}
    score = mean_majority_minority_difference(y, y, **of)
    assert (score.value, score.note) == (None, "same: no rows of group minority")
    assert unbiased_accuracy(y, y, **of).value == 1
    size = attributes[["size"]]
    none = mean_accuracy_at(y, y, attributes=size, y_train=y, attributes_train=size)
    assert (none.value, none.note) == (None, "not applicable: no categorical attribute")


def test_average_tells_what_its_attributes_leave_out():
    """Attribute by attribute."""
    y = np.array([0, 1, 0])
    here = pd.DataFrame({"one": pd.Categorical(["a", "a", "b"]), "two": pd.Categorical(["c"] * 3)})
    score = unbiased_accuracy(y, y, attributes=here, y_train=y[:2], attributes_train=here[:2])
    assert score.note == "one: class groups left out: 1 absent from training"
    assert (score.value, score.n) == (1, 2)


def test_accuracy_at_on_adult_equals_scikit_learns_weighted_accuracy(shared_data):
    """A row weighs p^alpha over the rows of its group; training shares of the real split."""
    samples = public.Adult(public.Adult.Parameters()).load(Files(shared_data), 1).without_inputs()
    (split,) = samples.split_names
    train, test = (samples.take(samples.rows(split, part)) for part in ("train", "test"))
    prediction = (test.attributes["age"] > 40).to_numpy().astype(int)
    alphas = (-1, -0.5, 0, 0.5, 1, 1.5, 2)
    names = [f"accuracy_at(alpha={alpha})" for alpha in alphas]
    rows = evaluate(names, test, np.eye(2)[prediction], train=train)
    values = {(row["metric"], row["attribute"]): row for row in rows}
    for attribute in ("sex", "race"):
        share = pd.crosstab(train.attributes[attribute], train.y, normalize="all").stack()
        here = pd.MultiIndex.from_arrays([test.attributes[attribute], test.y])
        for name, alpha in zip(names, alphas, strict=True):
            weights = share[here].to_numpy() ** alpha / here.value_counts()[here].to_numpy()
            expected = accuracy_score(test.y, prediction, sample_weight=weights)
            assert values[name, attribute]["value"] == pytest.approx(expected, abs=1e-12)
            assert (values[name, attribute]["n"], values[name, attribute]["note"]) == (
                len(test),
                "",
            )
    itself = evaluate(
        ["accuracy_at(alpha=1)", "accuracy"], train, np.eye(2)[train.y * 0], None, train
    )
    assert len({round(row["value"], 12) for row in itself}) == 1


def test_by_name_attributes_are_frames_and_those_of_training_have_rows_of_their_own() -> None:
    rng = np.random.default_rng(0)
    y, prediction = rng.integers(0, 3, (2, 60))
    here, there = (
        pd.DataFrame({"color": pd.Categorical(rng.choice(["red", "blue"], rows))})
        for rows in (60, 90)
    )
    value = metrics.unbiased_accuracy(
        y, prediction, attributes=here, y_train=rng.integers(0, 3, 90), attributes_train=there
    )
    correct = pd.Series(prediction == y).groupby([y, here["color"]], observed=True).mean()
    assert value == pytest.approx(correct.mean(), abs=1e-12)
