"""How often the promise of a repair holds on new rows: by simulation, and on tables.

Simulated scores of three groups (60, 30 and 10 % of the rows) are normal, with other means and base
rates, so that the true gap of a fitted rule has a closed form. Counted is how often ``fit`` makes
the promise, how often it made one that is broken (at most 5 % of all fits may), how often the same
rule without a test exceeds the tolerance, and the number of rows that a refusal names.

On tables a third of the rows trains boosted trees; of the others one half is given to ``fit`` in
every repetition, the other half are the new rows.

    python benchmarks/repair.py --repetitions 100 --splits 5

``--named 200`` only prints how often as many rows as a refusal names show the promise.
"""

import argparse
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _results import Row, rounded, save
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

import robust_fairness as rf
from robust_fairness.core.errors import InputError

SHARES, BASE = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.35, 0.4])
MEANS = np.array([[0.0, 1.5], [-0.5, 0.9], [0.2, 1.4]])  # of the scores, by group and class
SIZES = (1_000, 4_000, 16_000, 64_000)
TOLERANCE = 0.05
RULES = ("equalized_odds", "demographic_parity")
TABLES = (("adult", "sex"), ("acs_states", "sex"), ("law_school", "race"), ("compas", "race"))
HALVES = np.array([0.5, 0.5])
# Refusals: rule, tolerance, rows and shares of the groups.
NAMED = (
    ("equalized_odds", 0.1, 150, SHARES), ("equalized_odds", 0.1, 2_000, SHARES),
    ("demographic_parity", 0.1, 100, SHARES), ("demographic_parity", 0.1, 800, SHARES),
    ("demographic_parity", 0.1, 120, HALVES), ("equalized_odds", 0.3, 120, HALVES),
    ("demographic_parity", 0.3, 60, SHARES),
)  # fmt: skip
NEEDED = re.compile(r"about ([\d,]+) rows")


def drawn(
    rows: int, random: np.random.Generator, shares: np.ndarray = SHARES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, classes and groups."""
    group = random.choice(len(shares), rows, p=shares)
    y = (random.random(rows) < BASE[group]).astype(int)
    return MEANS[group, y] + random.normal(size=rows), y, group


def true_gap(model: Any) -> tuple[float, float]:
    """The gap of a rule in the population, and its accuracy."""
    pairs = list(zip(model.thresholds_, model.shares_, strict=True))
    pairs = pairs * len(SHARES) if model.common else pairs
    rates = np.array(
        [
            [(share * (1 - ndtr(threshold - mean))).sum() for mean in MEANS[group]]
            for group, (threshold, share) in enumerate(pairs)
        ]
    )
    right = SHARES @ ((1 - BASE) * (1 - rates[:, 0]) + BASE * rates[:, 1])
    selected = rates[:, 0] * (1 - BASE) + rates[:, 1] * BASE
    by_class = model.constraint == "equalized_odds"
    gap = np.ptp(rates, axis=0).max() if by_class else np.ptp(selected)
    return float(gap), float(right)


def simulated(make: Callable[..., Any], rows: int, count: int) -> Row:
    """Shares over repetitions."""
    made = broken = untested = 0
    costs, needed = [], []
    for seed in range(count):
        score, y, group = drawn(rows, np.random.default_rng(seed))
        plain = make(confidence=None, random_state=seed).fit(score, y, sensitive_features=group)
        gap, accuracy = true_gap(plain)
        untested += bool(gap > TOLERANCE)
        try:
            model = make(random_state=seed).fit(score, y, sensitive_features=group)
        except InputError as error:
            needed += [int(text.replace(",", "")) for text in NEEDED.findall(str(error))]
            continue
        gap, right = true_gap(model)
        made, broken = made + 1, broken + bool(gap > TOLERANCE)
        costs.append(accuracy - right)
    return {
        "rows": rows,
        "promise made": made / count,
        "made and broken": broken / count,
        "untested and above": untested / count,
        "accuracy lost": rounded(float(np.mean(costs))) if made else "",
        "rows named": int(np.median(needed)) if needed else "",
    }


def simulations(count: int) -> Iterator[Row]:
    """Rows by repair and number of rows."""
    for common in (False, True):
        for rule in RULES:

            def thresholds(rule: str = rule, common: bool = common, **options: Any) -> Any:
                return rf.Thresholds(constraint=rule, tolerance=TOLERANCE, common=common, **options)

            for rows in SIZES:
                what = {"repair": rule, "for": "all" if common else "each group"}
                yield {**what, **simulated(thresholds, rows, count)}
                print(what, rows, flush=True)


def named(count: int) -> Iterator[Row]:
    """How often as many rows as a refusal names show the promise; 80 % are planned."""
    for rule, tolerance, rows, shares in NAMED:
        numbers, shown = [], []
        for seed in range(count):
            random = np.random.default_rng([5, seed])
            options: dict[str, Any] = {"constraint": rule, "tolerance": tolerance}
            text = refusal(rows, random, shares, options)
            if about := NEEDED.findall(text):
                numbers.append(int(about[0].replace(",", "")))
                shown.append(not refusal(numbers[-1], random, shares, options))
        yield {
            "repair": rule, "rows": rows, "tolerance": tolerance, "groups": len(shares),
            "refused": len(numbers), "rows named": int(np.median(numbers)),
            "promise made": rounded(np.mean(shown)),
        }  # fmt: skip


def refusal(
    rows: int, random: np.random.Generator, shares: np.ndarray, options: dict[str, Any]
) -> str:
    """Why a rule of so many new rows of groups with these shares is refused; "" if it is not."""
    score, y, group = drawn(rows, random, shares)
    model = rf.Thresholds(**options, random_state=int(random.integers(1_000_000)))
    try:
        model.fit(score, y, sensitive_features=group)
    except InputError as error:
        return str(error)
    return ""


def gap_of(positive: np.ndarray, y: np.ndarray, group: np.ndarray, rule: str) -> float:
    """The gap of probabilities of decisions on rows, by hand."""
    among = [y == 0, y == 1] if rule == "equalized_odds" else [y >= 0]
    names = np.unique(group)
    return max(
        float(np.ptp([positive[rows & (group == name)].mean() for name in names])) for rows in among
    )


def on_tables(splits: int) -> Iterator[Row]:
    """Rows by table, rule and tolerance."""
    for table, attribute in TABLES:
        samples = rf.load(table)
        x, y = samples.arrays["x"].astype(float), samples.y
        group = samples.attributes[attribute].astype(str).to_numpy()
        order = np.random.default_rng(0).permutation(len(y))
        trained, others = np.split(order, [len(y) // 3])
        trees = HistGradientBoostingClassifier(random_state=0).fit(x[trained], y[trained])
        decided = trees.predict(x[others]).astype(float)
        for rule in RULES:
            for tolerance in (0.05, 0.1):
                gaps, named, accuracy = [], [], []
                for seed in range(splits):
                    rows = np.random.default_rng(seed).permutation(others)
                    fit_on, new = np.split(rows, 2) if len(rows) % 2 == 0 else np.split(rows[1:], 2)
                    model = rf.Thresholds(
                        FrozenEstimator(trees), constraint=rule, tolerance=tolerance,
                        random_state=seed,
                    )  # fmt: skip
                    try:
                        model.fit(x[fit_on], y[fit_on], sensitive_features=group[fit_on])
                    except InputError as error:
                        found = NEEDED.findall(str(error))
                        named += [int(text.replace(",", "")) for text in found]
                        continue
                    positive = model.predict_proba(x[new], sensitive_features=group[new])[:, 1]
                    gaps.append(gap_of(positive, y[new], group[new], rule))
                    accuracy.append(float(np.where(y[new] == 1, positive, 1 - positive).mean()))
                yield {
                    "table": f"{table}, {attribute}",
                    "repair": rule,
                    "tolerance": tolerance,
                    "rows": len(fit_on),
                    "gap before": rounded(gap_of(decided, y[others], group[others], rule)),
                    "promise made": len(gaps) / splits,
                    "largest gap on new rows": rounded(max(gaps)) if gaps else "",
                    "accuracy before": rounded(float((decided == y[others]).mean())),
                    "accuracy": rounded(float(np.mean(accuracy))) if gaps else "",
                    "rows named": int(np.median(named)) if named else "",
                }


def main() -> None:
    """Simulate, then read tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--named", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # constant decisions
    if arguments.named:
        for row in named(arguments.named):
            print(row, flush=True)
        return
    rows = [*simulations(arguments.repetitions), *on_tables(arguments.splits)]
    save(__file__, vars(arguments), rows)


if __name__ == "__main__":
    main()
