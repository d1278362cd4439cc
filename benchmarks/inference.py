"""Error rates, coverage and power of the engine of inference, by simulation.

Families of changes of gaps between two groups are drawn with rows, refits that vary .25 to 4 times
as much as rows (with unequal variances), and domains. The table is written into docs/inference.md.

    python benchmarks/inference.py --families 400
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

from robust_fairness.core import tables
from robust_fairness.inference import (
    LEVEL,
    POWER,
    REFITS,
    ROWS,
    Component,
    Estimate,
    Rates,
    between_domains,
    between_refits,
    contrast,
    gap,
    holm,
    interval,
    moderated,
)
from robust_fairness.inference.gaps import with_moderated
from robust_fairness.inference.moments import covariance_by_unit
from robust_fairness.inference.verdicts import judged, tested

PAGE = Path(__file__).resolve().parents[1] / "docs" / "inference.md"
UNEQUAL = (0.5, 1.0, 2.0)  # factors of the standard deviation between refits
OF = gap("largest", 2)
MARGIN = 0.05
RATE = 0.6


Row = dict[str, object]


def _row(what: str, simulated: float, wanted: str) -> Row:
    return {"what": what, "simulated": simulated, "wanted": wanted}


def family(
    rng: np.random.Generator, tests: int, refits: int, rows: int, ratio: float, change: float
) -> tuple[Rates, Rates]:
    """Rates of two groups at home and elsewhere, where one group's rate changes."""
    deviation = ratio * np.sqrt(RATE * (1 - RATE) / rows)
    scale = deviation * rng.choice(UNEQUAL, (tests, 1, 1))
    found = []
    for shift in (0.0, change):
        share = rng.binomial(rows, [RATE + shift, RATE], (tests, 2)) / rows
        value = share[..., None] + scale * rng.normal(size=(tests, 2, refits))
        n = np.full((tests, 2), float(rows))
        found.append(Rates(value, share * (1 - share) / (rows - 1), n))
    return found[0], found[1]


def false_changes(families: int) -> Iterator[Row]:
    """Families with any change that is called significant though none is there."""
    for refits, tests in ((1, 30), (1, 400), (5, 30), (5, 400), (10, 30), (10, 400)):
        for ratio in (0.25, 1.0, 4.0) if refits > 1 else (0.0,):
            rng = np.random.default_rng(tests + refits)
            wrong = 0
            for _ in range(families):
                home, away = family(rng, tests, refits, 1000, ratio, 0.0)
                places = away.corrected(), home.corrected()
                signed = with_moderated(contrast(*places, OF.functions, OF.functions))
                wrong += bool((holm(signed.p().min(-1)) < LEVEL).any())
            what = f"{tests} tests, {refits} refits" if refits > 1 else f"{tests} tests, one model"
            more = f" that vary {ratio:g}" if refits > 1 else ""
            yield _row(
                f"false changes: {what}{more}",
                wrong / families,
                "at most .05",
            )


def false_held(families: int) -> Iterator[Row]:
    """Families with any test called held though every change is the margin."""
    for refits, rows in ((1, 3000), (5, 3000), (10, 30_000)):
        rng = np.random.default_rng(refits)
        wrong = 0
        for _ in range(families):
            found = judged(tested(*family(rng, 30, refits, rows, 0.5, MARGIN), OF, MARGIN))
            wrong += bool((found["state"] == "held").any())
        yield _row(
            f"false *held*: 30 tests, {refits} refits, {rows:,} rows",
            wrong / families,
            "at most .05",
        )


def coverage(families: int) -> Iterator[Row]:
    """Least coverage of the interval of a gap, over base rates and gaps, of each number of rows."""
    draws = 20 * families
    for kind, name in (("largest", "equalized odds"), ("sum", "Delta-EO")):
        of = gap(kind, 2, 2)  # type: ignore[arg-type]
        for rows in (30, 100, 300, 1000, 10_000):
            least = 1.0
            for base in (0.05, 0.1, 0.3, 0.5):
                for one, other in ((0.0, 0.0), (0.1, 0.0), (0.3, 0.1)):
                    rng = np.random.default_rng(rows)
                    truth = np.array([0.6 + one, 0.6, 0.2 + other, 0.2])
                    positives = rng.binomial(rows, base, (draws, 2))
                    n = np.concatenate([positives, rows - positives], 1)
                    low, high = interval(
                        Rates.of_counts(rng.binomial(n, truth), n.astype(float)), of
                    )
                    known, true = np.isfinite(low), of.of(truth)
                    if known.sum() >= draws / 10:
                        inside = (low[known] <= true) & (true <= high[known])
                        least = min(least, inside.mean())
            yield _row(
                f"coverage of {name}: {rows:,} rows",
                least,
                "at least .94",
            )


def households(families: int) -> Iterator[Row]:
    """Coverage of a difference of two groups whose rows share households of 1 to 6."""
    rng, inside = np.random.default_rng(6), []
    for _ in range(5 * families):
        unit = np.repeat(np.arange(300), rng.integers(1, 7, 300))
        group = rng.integers(0, 2, len(unit))
        latent = rng.normal(size=300)[unit] + rng.normal(size=len(unit))
        values = (latent > 0.5).astype(float)
        covariance = covariance_by_unit(values, group, 2, unit)
        error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        difference = values[group == 0].mean() - values[group == 1].mean()
        inside.append(abs(difference) <= special.ndtri(1 - LEVEL / 2) * error)
    yield _row(
        "coverage: households of 1 to 6",
        np.mean(inside),
        "at least .94",
    )


def domains(families: int) -> Iterator[Row]:
    """False changes of means over pairs of domains, families of 30."""
    for number in (3, 5, 8, 14):
        rng, names = np.random.default_rng(number), np.arange(number)
        sources, targets = (one.ravel() for one in np.meshgrid(names, names, indexing="ij"))
        wrong = 0
        for _ in range(families):
            source, target = rng.normal(size=(2, 30, number))
            values = source[:, sources] + target[:, targets] + rng.normal(size=(30, number**2))
            values[:, sources == targets] = np.nan
            part = between_domains(values, sources, targets)
            p = Estimate(np.nanmean(values, 1), {"domains": part}).p()
            wrong += bool((holm(p) < LEVEL).any())
        yield _row(
            f"false changes: 30 tests, {number} domains",
            wrong / families,
            "at most .05",
        )


def power(families: int) -> Iterator[Row]:
    """Power where a z-test with the true variance has .9, at the level of a family of 112."""
    tests = 112
    needed = special.ndtri(1 - LEVEL / tests / 2) + special.ndtri(0.9)
    for refits, ratio in ((1, 0.0), (10, 0.25), (10, 1.0), (10, 2.0)):
        rng = np.random.default_rng(refits)
        total = 1 + ratio**2 / refits if refits > 1 else 1.0
        found = 0.0
        for _ in range(families):
            value = np.zeros((tests, refits)) + rng.normal(size=(tests, 1))
            value[0] += needed * np.sqrt(total)
            value = value + ratio * rng.normal(size=value.shape)
            parts = {ROWS: Component(np.ones(tests))}
            if refits > 1:
                parts[REFITS] = moderated(between_refits(value))
            found += Estimate(value.mean(1), parts).p()[0] < LEVEL / tests
        name = f"{refits} refits that vary {ratio:g}" if ratio else "one model"
        yield _row(
            f"power: {name}",
            found / families,
            f"at least {POWER:g}".replace("0.", "."),
        )


def version_2(families: int) -> Iterator[Row]:
    """P1's powers: refits of .02 and rows of .03, a change of .15, at .05 / 120."""
    for refits in (2, 3, 5, 10):
        rng, counts = np.random.default_rng(refits), np.zeros(2)
        draws = 10 * families
        value = 0.15 + 0.03 * rng.normal(size=(draws, 1)) + 0.02 * rng.normal(size=(draws, refits))
        part = between_refits(value)
        error = np.sqrt(0.03**2 + np.asarray(part.variance))
        student = 2 * stats.t.sf(np.abs(value.mean(1)) / error, refits - 1)
        ours = Estimate(
            value.mean(1), {ROWS: Component(np.full(draws, 0.03**2)), REFITS: moderated(part)}
        ).p()
        counts = [np.mean(p < LEVEL / 120) for p in (student, ours)]
        yield _row(
            f"power: .15, {refits} refits (before: {counts[0]:.2f})",
            counts[1],
            "",
        )


def table(families: int) -> pd.DataFrame:
    """All simulated numbers."""
    parts = (false_changes, false_held, coverage, households, domains, power, version_2)
    rows = []
    for part in parts:
        for row in part(families):
            print(row, flush=True)
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=400)
    families = parser.parse_args().families
    found = table(families)
    shown = found.assign(simulated=found["simulated"].map("{:.3f}".format))
    page = PAGE.read_text(encoding="utf-8")
    made = tables.in_page(page, {"simulation": lambda: shown})
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
