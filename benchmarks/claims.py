"""Error rates and power of verdicts on claims, by simulation.

A paper has 4, 8 or 12 claims of 1 to 6 parts. Ten seeds test random fifths of the same rows, so
that splits share most rows; parts of a claim share rows, too. A score is its true value plus the
mean of its test rows, what the training rows did to the model, and noise of the training. An error
is any wrong answer about any part of a paper. In the last cases a paper has 12 claims of two parts,
one of which is plain and one not true, with five and with ten seeds: an error is any claim that is
supported, contradicted or excluded by both. The table is part of docs/inference.md.

    python benchmarks/claims.py --papers 500
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from _results import FOLDER, save

from robust_fairness.numbers.claims import Decided, decided
from robust_fairness.numbers.estimate import (
    FEWEST_REFITS,
    LEVEL,
    REFITS,
    ROWS,
    Component,
    Estimate,
    between_refits,
)

SEEDS, POOL, TESTED = 10, 300, 60
RATIO = TESTED / (POOL - TESTED)
MOST_PARTS = 6
SHARED = 0.5  # correlation of the rows of two parts
TRAINING = 0.7  # variation by training rows, and by seeds, relative to that by test rows
PARTS = (0.2, 0.5)  # shares of claims with one part and with at most three


def papers(rng: np.random.Generator, claims: int) -> np.ndarray:
    """Number of the claim of each part of a paper."""
    draws = rng.random(claims)
    sizes = np.where(
        draws < PARTS[0], 1, np.where(draws < sum(PARTS), rng.integers(2, 4, claims),
                                      rng.integers(4, MOST_PARTS + 1, claims))
    )  # fmt: skip
    return np.repeat(np.arange(claims), sizes)


def scores(rng: np.random.Generator, claim: np.ndarray, seeds: int) -> tuple[np.ndarray, float]:
    """Errors of effects ``[parts, seeds]`` and the standard deviation of one over new data."""

    def drawn() -> np.ndarray:
        common = rng.normal(size=(claim.max() + 1, POOL))[claim]
        own = rng.normal(size=common.shape)
        return np.asarray(np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own)

    rows, trained = drawn(), TRAINING * drawn()
    result = np.empty((len(claim), seeds))
    for seed in range(seeds):
        order = rng.permutation(POOL)
        test, train = order[:TESTED], order[TESTED:]
        # training rows are averaged out as test rows would be
        result[:, seed] = rows[:, test].mean(1) + trained[:, train].mean(1)
    result += TRAINING / np.sqrt(TESTED) * rng.normal(size=result.shape)
    single = 1 / TESTED + TRAINING**2 * (1 / (POOL - TESTED) + 1 / TESTED)
    return result, float(np.sqrt(single))


def judged(
    rng: np.random.Generator,
    claim: np.ndarray,
    truth: np.ndarray,
    says: Sequence[str],
    margin: float,
    seeds: int = SEEDS,
) -> Decided:
    """Verdicts on a paper; truths and margins in standard errors of an effect."""
    errors, single = scores(rng, claim, seeds)
    unit = single * np.sqrt(1 / seeds + RATIO)
    if seeds < FEWEST_REFITS:  # test rows alone
        unit = single
        values = unit * (truth + rng.normal(size=len(claim)))
        effects = Estimate(values, {ROWS: Component(np.full(len(claim), unit**2))})
    else:
        values = unit * truth[:, None] + errors
        effects = Estimate(values.mean(1), {REFITS: between_refits(values, RATIO)})
    return decided(effects, claim, says, np.full(len(claim), margin * unit))  # type: ignore[arg-type]


def one_wrong(rng: np.random.Generator, claim: np.ndarray) -> np.ndarray:
    """The truth where one part of every claim is wrong and the others are plain."""
    truth = np.full(len(claim), 6.0)
    truth[np.unique(claim, return_index=True)[1]] = 0.0
    return truth


def half_true(rng: np.random.Generator, claim: np.ndarray) -> np.ndarray:
    """The truth where every second claim is right."""
    return np.where(claim % 2 == 0, 6.0, one_wrong(rng, claim))


TWO = np.repeat(np.arange(12), 2)  # the claim of each part
PAIRS = {  # truth of the two parts in standard errors, of a margin of 5, and the wrong verdict
    "supported": (16.0, 0.0),
    "contradicted": (-16.0, 0.0),
    "excluded": (-1.0, 5.0),
}

Truth = Callable[[np.random.Generator, np.ndarray], np.ndarray]
CASES: dict[str, tuple[Truth, str, float, str]] = {
    "no claim is true: any part holds": (lambda _, c: 0.0 * c, "above", 4, "holds"),
    "one part of every claim is wrong: it holds": (one_wrong, "above", 4, "holds"),
    "half of the claims are true: a wrong part holds": (half_true, "above", 4, "holds"),
    "no claim is true: any part is reversed": (lambda _, c: 0.0 * c, "above", 4, "reversed"),
    "as large as the margin: any part is excluded": (
        lambda _, c: 2.0 + 0.0 * c, "above", 2, "excluded"
    ),
    "at the margin: any part is within it": (lambda _, c: 4.0 + 0.0 * c, "within", 4, "holds"),
    "at the margin: any part is not below it": (
        lambda _, c: -4.0 + 0.0 * c, "not below", 4, "holds"
    ),
}  # fmt: skip
POWERS: dict[str, tuple[float, str, float, str]] = {
    "all parts 3 standard errors: supported": (3.0, "above", 4, "supported"),
    "all parts 5 standard errors: supported": (5.0, "above", 4, "supported"),
    "all parts 8 standard errors: supported": (8.0, "above", 4, "supported"),
    "no effect, margin of 5 standard errors: excluded": (0.0, "above", 5, "excluded"),
    "no effect, margin of 8 standard errors: excluded": (0.0, "above", 8, "excluded"),
    "no effect, margin of 8 standard errors: within it": (0.0, "within", 8, "supported"),
}


def error_rate(case: str, claims: int, number: int, seeds: int = SEEDS) -> float:
    """Share of papers with any wrong answer."""
    truth_of, says, margin, answer = CASES[case]
    rng = np.random.default_rng([claims, seeds, list(CASES).index(case)])
    wrong = 0
    for _ in range(number):
        claim = papers(rng, claims)
        truth = truth_of(rng, claim)
        states = judged(rng, claim, truth, [says] * len(claim), margin, seeds).states
        null = truth == 0 if says == "above" and answer != "excluded" else np.full(len(claim), True)
        wrong += bool((np.array(states)[null] == answer).any())
    return wrong / number


def wrong_verdicts(verdict: str, seeds: int, number: int) -> float:
    """Share of papers of claims of two parts with any that is wrongly of a verdict."""
    rng = np.random.default_rng([2, seeds, list(PAIRS).index(verdict)])
    truth, says = np.tile(PAIRS[verdict], 12), ["above"] * len(TWO)
    wrong = sum(
        verdict in judged(rng, TWO, truth, says, 5.0, seeds).verdicts for _ in range(number)
    )
    return wrong / number


def power(case: str, claims: int, number: int) -> float:
    """Share of claims with the right verdict."""
    effect, says, margin, verdict = POWERS[case]
    rng = np.random.default_rng([claims, 1, list(POWERS).index(case)])
    right = []
    for _ in range(number):
        claim = papers(rng, claims)
        truth = np.full(len(claim), effect)
        verdicts = judged(rng, claim, truth, [says] * len(claim), margin).verdicts
        right.append(np.mean([name == verdict for name in verdicts]))
    return float(np.mean(right))


def main() -> None:
    """Simulate all cases and save the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--papers", type=int, default=500)
    options = parser.parse_args()
    rows = []
    for title, rate, cases in (
        (f"at most {LEVEL:g}", error_rate, CASES), ("power", power, POWERS)
    ):  # fmt: skip
        for case in cases:
            found = {
                f"{claims} claims": round(rate(case, claims, options.papers), 3)
                for claims in (4, 8, 12)
            }
            rows.append({"simulated": case, **found, "asked for": title})
    for case in list(CASES)[:3]:
        found = {
            f"{claims} claims": round(error_rate(case, claims, options.papers, seeds=3), 3)
            for claims in (4, 8, 12)
        }
        title = f"test rows alone, {case}"
        rows.append({"simulated": title, **found, "asked for": f"at most {LEVEL:g}"})
    for verdict in PAIRS:
        for seeds in (5, 10):
            rate = round(wrong_verdicts(verdict, seeds, options.papers), 3)
            title = f"two parts, {seeds} seeds: any claim is wrongly {verdict}"
            rows.append({"simulated": title, "12 claims": rate, "asked for": f"at most {LEVEL:g}"})
    save(__file__, vars(options), rows, FOLDER / "simulated")


if __name__ == "__main__":
    main()
