"""Why a value changed: how often parts that did not change are taken to be 0, by simulation.

Two periods of rows with two features and a sex, of which the features, the outcomes given the
features, the decisions given the features, two of them or nothing change. Counted is how often the
95 % interval of a part that did not change covers 0, of the accuracy and of the differences of
rates between the sexes.

Written before the run: at least 94 % but for the binomial error, of 1.7 points with 200 draws.

    python benchmarks/why.py --draws 200
"""

import argparse
from collections.abc import Collection
from itertools import combinations

import numpy as np
import pandas as pd
from _results import FOLDER, save

from robust_fairness.auditing.why.decomposition import ScoredDomains, changes
from robust_fairness.auditing.why.domains import Columns, ComparedRows

PARTS = {"x": "X", "y_given_x": "Y given X", "prediction": "prediction given X"}


def drawn(
    random: np.random.Generator, rows: int, moved: Collection[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, outcomes and decisions of a period in which some parts have moved."""
    sex = random.integers(0, 2, rows)
    first, second = random.normal(size=(2, rows))
    first = first + 0.25 * ("x" in moved) * (1 + sex)
    size = 1.3 * first + 0.5 * second - 0.3
    logit = size + ("y_given_x" in moved) * np.where(sex == 1, -0.8, 0.3)
    y = random.random(rows) < 1 / (1 + np.exp(-logit))
    decided = size - 0.8 * ("prediction" in moved) * (sex == 0) > 0
    return np.column_stack([first, second, sex]), y.astype(float), decided.astype(float)


def domains_of(seed: int, rows: int, moved: Collection[str]) -> tuple[ScoredDomains, np.ndarray]:
    """Two periods of as many rows, and the sex of every row."""
    random = np.random.default_rng(seed)
    periods = [drawn(random, rows, some) for some in ((), moved)]
    values, y, decided = (np.concatenate(part) for part in zip(*periods, strict=True))
    columns = Columns(
        values.astype(np.float32), ("first", "second", "sex"), np.array([False, False, True])
    )
    rows_of_both = ComparedRows(
        np.repeat([False, True], rows), columns, np.arange(2 * rows), np.ones(2 * rows)
    )
    scored = ScoredDomains(rows_of_both, "accuracy", y, decided, decided)
    return scored, values[:, 2].astype(int)


def covered(draws: int, rows: int) -> pd.DataFrame:
    """Coverage of 0 by the parts that did not change, a row per kind of change, value and part."""
    records = []
    for moved in [some for size in range(len(PARTS)) for some in combinations(PARTS, size)]:
        for seed in range(draws):
            scored, sex = domains_of(seed, rows, moved)
            for change in changes(scored, {"sex": (sex, ("f", "m"))}):
                if bool(change.attribute) == (change.metric == "accuracy"):
                    continue
                for name, words in PARTS.items():
                    part = getattr(change, name)
                    if name not in moved:
                        covers = part.low <= 0 <= part.high
                        kind = " and ".join(PARTS[some] for some in moved) or "nothing"
                        records.append((kind, change.metric, words, part.change, part.high, covers))
    table = pd.DataFrame(records, columns=["moved", "value", "part", "change", "high", "covers"])
    table["half"] = table["high"] - table["change"]
    return table.groupby(["moved", "value", "part"], sort=False, as_index=False).agg(
        mean=("change", "mean"), sd=("change", "std"), half=("half", "mean"),
        covered=("covers", "mean"),
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    table = covered(options.draws, options.rows)
    save(__file__, vars(options), table.round(4).to_dict("records"), FOLDER / "simulated")
