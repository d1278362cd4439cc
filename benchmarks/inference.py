"""Error rates, coverage and power of the engine of inference, by simulation.

Families of changes of gaps between two groups are drawn with rows, refits that vary .25 to 4 times
as much as rows (with unequal variances), and domains. The tables are written into
benchmarks/results, from which tools/benchmark_tables.py makes those of docs/inference.md.

    python benchmarks/inference.py --families 400
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import (
    LEVEL,
    POWER,
    REFITS,
    ROWS,
    Component,
    Estimate,
    between_refits,
    covariance_of_copies,
    moderated,
    over_domains,
)
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.rates import (
    LinearGap,
    Rates,
    interval,
    linear_gap,
)
from robust_fairness.numbers.verdicts import Question, concluded, holm, judged, tested

RESULTS = Path(__file__).resolve().parent / "results"
UNEQUAL = (0.5, 1.0, 2.0)  # factors of the standard deviation between refits
OF = linear_gap("largest", 2)
MARGIN = 0.05
RATE = 0.6
RATIOS = (0.25, 1.0, 4.0)  # how many times as much as rows refits vary
LEVELS, COVERS = "at most .05", "at least .94"
TRUTHS = {  # two rates of two groups, rates of exactly 0 and 1 among them
    "equalized odds": [[0.6, 0.6, 0.2, 0.2], [0.7, 0.6, 0.2, 0.2], [0.9, 0.6, 0.3, 0.2],
                       [1.0, 1.0, 0.0, 0.0], [1.0, 0.8, 0.0, 0.1]],
}  # fmt: skip
TRUTHS["Delta-EO"] = TRUTHS["equalized odds"]
KINDS = {"equalized odds": linear_gap("largest", 2, 2), "Delta-EO": linear_gap("sum", 2, 2)}

Row = tuple[str, float, str]


def family(
    rng: np.random.Generator, tests: int, refits: int, rows: int, ratio: float, change: float
) -> tuple[Rates, Rates]:
    """Rates of two groups at home and elsewhere, where one group's rate changes."""
    deviation = ratio * np.sqrt(RATE * (1 - RATE) / rows)
    scale = deviation * rng.choice(UNEQUAL, (tests, 1, 1))
    ends = []
    for shift in (0.0, change):
        share = rng.binomial(rows, [RATE + shift, RATE], (tests, 2)) / rows
        value = share[..., None] + scale * rng.normal(size=(tests, 2, refits))
        n = np.full((tests, 2), float(rows))
        ends.append(Rates(value, share * (1 - share) / (rows - 1), n))
    return ends[0], ends[1]


def any_changed(home: Rates, away: Rates) -> bool:
    """Whether any signed difference of a family is called changed."""
    question: Question = "this method" if home.value.shape[-1] > 1 else "this model"
    return bool((holm(tested(home, away, OF, MARGIN, question)["p_signed"]) < LEVEL).any())


def false_changes(families: int) -> pd.DataFrame:
    """Share of families with a change that is called significant though none is there."""
    rows = []
    for refits in (1, 2, 3, 4, 5, 10):
        name = "one model" if refits == 1 else f"{refits} refits"
        cells: dict[str, str] = {"refits": f"{name}, refused" if 1 < refits < 5 else name}  # noqa: PLR2004
        for tests in (30, 400):
            for ratio in RATIOS:
                if refits == 1 and ratio != RATIOS[0]:
                    continue
                rng = np.random.default_rng(tests + refits)
                drawn = (
                    family(rng, tests, refits, 1000, ratio * (refits > 1), 0.0)
                    for _ in range(families)
                )
                wrong = np.mean([any_changed(*ends) for ends in drawn])
                cells[f"{tests} tests, {ratio:g}"] = f"{wrong:.3f}"
        print(cells, flush=True)
        rows.append(cells)
    return pd.DataFrame(rows).fillna("")


def small_groups(families: int) -> Iterator[Row]:
    """False changes of 100 changes between small groups, at home, elsewhere or both."""
    for name, home_rows, groups in (
        ("groups of 8 to 30 rows", (8, 30), 2),
        ("4 groups of 8 to 30 rows", (8, 30), 4),
        ("groups of 1,000 rows at home, 8 to 30 elsewhere", (1000, 1000), 2),
    ):
        for rate in (0.5, 0.2):
            rng, wrong, of = np.random.default_rng(groups), 0, linear_gap("largest", groups)
            for _ in range(4 * families):
                ends = []
                for rows in (home_rows, (8, 30)):
                    n = rng.integers(*rows, (100, groups), endpoint=True)
                    ends.append(Rates.of_counts(rng.binomial(n, rate), n.astype(float)))
                wrong += holm(tested(*ends, of)["p_signed"]).min() < LEVEL
            what = f"false changes: 100 changes, {name}, rate {rate:g}"
            yield what, wrong / (4 * families), LEVELS


def held(families: int) -> Iterator[Row]:
    """Families with any test called held though every change is the margin.

    Sizes are such that a change of the margin is often not found and one of 0 is often called held;
    with fewer rows *held* is never said, with more the change is found. The second number is the
    share of changes of 0 that are called held.
    """
    for refits, rows, ratio in ((1, 6000, 0.0), (5, 6000, 0.25), (5, 8000, 1.0), (10, 23_000, 4.0)):
        rng = np.random.default_rng(refits)
        states = {
            change: [
                judged(tested(*family(rng, 30, refits, rows, ratio, change), OF, MARGIN))["state"]
                for _ in range(families // 2)
            ]
            for change in (MARGIN, 0.0)
        }
        wrong = np.mean([(verdicts == "held").any() for verdicts in states[MARGIN]])
        right = np.mean([(verdicts == "held").mean() for verdicts in states[0.0]])
        name = "one model" if refits == 1 else f"{refits} refits that vary {ratio:g}"
        yield f"false *held*: 30 changes of the margin, {name}, {rows:,} rows", float(wrong), LEVELS
        yield f"*held*: 30 changes of 0, {name}, {rows:,} rows", float(right), ""


def copies(families: int) -> Iterator[Row]:
    """False changes where a shift turns a twentieth of the decisions of the same rows."""
    for rows in (100, 1000):
        rng, wrong, tests = np.random.default_rng(rows), 0, 30
        group, n = np.repeat([0, 1], rows), np.full((tests, 2), float(rows))
        for _ in range(families // 2):
            before = rng.random((tests, 2 * rows)) < RATE
            after = before ^ (rng.random(before.shape) < 0.05)  # noqa: PLR2004
            ends = [
                Rates.of_counts(hits.reshape(tests, 2, rows).sum(-1), n) for hits in (before, after)
            ]
            place = np.ravel_multi_index(
                (np.arange(tests)[:, None], group[None], before * 1, after * 1), (tests, 2, 2, 2)
            )
            joint = np.bincount(place.ravel(), minlength=tests * 8).reshape(tests, 2, 1, 2, 2)
            covariance = covariance_of_copies(joint, np.array([[0.0, 1.0]]))
            wrong += tested(*ends, OF, covariance=covariance)["p_signed"].pipe(holm).min() < LEVEL
        yield f"false changes: 30 shifted copies of {rows:,} rows", wrong / (families // 2), LEVELS


def coverage(families: int) -> Iterator[Row]:
    """Least coverage of intervals over base rates and true rates, of each number of rows."""
    draws, sizes = 20 * families, (30, 100, 300, 1000, 10_000)
    for name, truths in TRUTHS.items():
        for rows in sizes:
            least = 1.0
            for base in (0.05, 0.1, 0.3, 0.5):
                for truth in np.array(truths):
                    rng = np.random.default_rng(rows)
                    positives = rng.binomial(rows, base, (draws, 2))
                    n = np.concatenate([positives, rows - positives], 1)
                    rates = Rates.of_counts(rng.binomial(n, truth), n.astype(float))
                    least = min(least, _covered(rates, KINDS[name], truth, draws))
            yield f"coverage of {name}: {rows:,} rows", least, COVERS
    for rows in sizes:
        least = 1.0
        for truth in (0.0, 0.01, 0.05, 0.2, 0.5, 1.0):
            hits = np.random.default_rng(rows).binomial(rows, truth, (draws, 1))
            rates = Rates.of_counts(hits, np.full((draws, 1), float(rows)))
            least = min(least, _covered(rates, LinearGap(np.eye(1)), np.array([truth]), draws))
        yield f"coverage of a rate: {rows:,} rows", least, COVERS


def _covered(rates: Rates, of: LinearGap, truth: np.ndarray, draws: int) -> float:
    """Share of the known intervals that cover the truth; 1 where hardly any is known."""
    low, high = interval(rates, of)
    known, true = np.isfinite(low), of.of(truth)
    if known.sum() < draws / 10:
        return 1.0
    slack = 1e-9
    return float(((low[known] <= true + slack) & (true - slack <= high[known])).mean())


def households(families: int) -> Iterator[Row]:
    """Coverage of a difference of two groups whose rows share households of 1 to 6."""
    for units in (20, 60, 300):
        rng, inside = np.random.default_rng(units), []
        for _ in range(15 * families):
            unit = np.repeat(np.arange(units), rng.integers(1, 7, units))
            group = rng.integers(0, 2, len(unit))
            latent = rng.normal(size=units)[unit] + rng.normal(size=len(unit))
            values = (latent > 0.5).astype(np.int64)  # noqa: PLR2004
            groups = Groups.named(group, ("0", "1"))
            cells = Counts.of(groups, np.zeros_like(values), values, ("0", "1"), unit=unit)
            means = cells.means(cells.grid()[1] == 1)
            covariance = means.deviations.T @ means.deviations
            variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
            difference = values[group == 0].mean() - values[group == 1].mean()
            inside.append((abs(difference) / np.sqrt(variance), special.stdtrit(units - 1, 0.975)))
        yield (
            f"coverage: {units} households of 1 to 6",
            float(np.mean([distance <= critical for distance, critical in inside])),
            COVERS,
        )


def domains(families: int) -> Iterator[Row]:
    """False changes of means over pairs of domains, families of 30."""
    for number in (2, 3, 5, 8, 14):
        rng, names = np.random.default_rng(number), np.arange(number)
        sources, targets = (side.ravel() for side in np.meshgrid(names, names, indexing="ij"))
        wrong = 0
        for _ in range(families):
            source, target = rng.normal(size=(2, 30, number))
            values = source[:, sources] + target[:, targets] + rng.normal(size=(30, number**2))
            values[:, sources == targets] = np.nan
            p = over_domains(values, sources, targets).p()
            wrong += bool((holm(p) < LEVEL).any())
        refused = ", refused" if number < 5 else ""  # noqa: PLR2004
        yield f"false changes: 30 means over {number} domains{refused}", wrong / families, LEVELS


def stored(families: int) -> Iterator[Row]:
    """False changes of families of stored scores: refits alone, on ten scales, splits that overlap.

    With splits that share rows, refits correlate as Nadeau and Bengio assume.
    """
    for ratio in (0.0, 0.5):
        for refits in (5, 10):
            rng, wrong, shared = np.random.default_rng(refits), 0, ratio / (1 + ratio)
            for _ in range(families):
                scale = 10 ** rng.uniform(-2, 0, (100, 1))
                common = np.sqrt(shared) * rng.normal(size=(100, 1))
                values = scale * (common + np.sqrt(1 - shared) * rng.normal(size=(100, refits)))
                conclusions = concluded(
                    Estimate(values.mean(1), {REFITS: between_refits(values, ratio)}),
                    np.full(100, refits),
                )
                wrong += bool(conclusions["sign"].any())
            name = "own rows" if not ratio else "shared rows"
            yield f"false changes: 100 scores of {refits} refits, {name}", wrong / families, LEVELS


def power(families: int) -> Iterator[Row]:
    """Power where a z-test with the true variance has .9, at the level of a family of 112."""
    tests = 112
    needed = special.ndtri(1 - LEVEL / tests / 2) + special.ndtri(0.9)
    for refits, ratio in ((1, 0.0), (10, 0.25), (10, 1.0), (10, 2.0)):
        rng = np.random.default_rng(refits)
        total = 1 + ratio**2 / refits if refits > 1 else 1.0
        hits = 0.0
        for _ in range(families):
            value = np.zeros((tests, refits)) + rng.normal(size=(tests, 1))
            value[0] += needed * np.sqrt(total)
            value = value + ratio * rng.normal(size=value.shape)
            parts = {ROWS: Component(np.ones(tests))}
            if refits > 1:
                parts[REFITS] = moderated(between_refits(value))
            hits += Estimate(value.mean(1), parts).p()[0] < LEVEL / tests
        name = f"{refits} refits that vary {ratio:g}" if ratio else "one model"
        yield f"power: {name}", hits / families, f"at least {POWER:g}".replace("0.", ".")


def version_2(families: int) -> Iterator[Row]:
    """P1's powers: refits of .02 and rows of .03, a change of .15, at .05 / 120."""
    for refits in (2, 3, 5, 10):
        rng, draws = np.random.default_rng(refits), 10 * families
        value = 0.15 + 0.03 * rng.normal(size=(draws, 1)) + 0.02 * rng.normal(size=(draws, refits))
        part = between_refits(value)
        error = np.sqrt(0.03**2 + np.asarray(part.variance))
        student = 2 * stats.t.sf(np.abs(value.mean(1)) / error, refits - 1)
        rows = Component(np.full(draws, 0.03**2))
        ours = Estimate(value.mean(1), {ROWS: rows, REFITS: moderated(part)}).p()
        before, now = (float(np.mean(p < LEVEL / 120)) for p in (student, ours))
        yield f"power: .15, {refits} refits (Student's t: {before:.2f})", now, ""


PARTS = (small_groups, held, copies, coverage, households, domains, stored, power, version_2)


def simulation(families: int) -> pd.DataFrame:
    """All other simulated numbers."""
    rows = []
    for part in PARTS:
        for what, simulated, wanted in part(families):
            print(what, simulated, flush=True)
            rows.append({"what": what, "simulated": f"{simulated:.3f}", "wanted": wanted})
    return pd.DataFrame(rows)


def main() -> None:
    """Write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=400)
    families = parser.parse_args().families
    simulation(families).to_csv(RESULTS / "inference_simulation.csv", index=False)
    false_changes(families).to_csv(RESULTS / "inference_false_changes.csv", index=False)


if __name__ == "__main__":
    main()
