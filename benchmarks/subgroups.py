"""The search for the worst subgroup of an audit, by simulation: false finds and power.

Tables have four attributes with four values each, of unequal shares, and a model that is wrong in a
fifth of the rows. Without a worse subgroup, at most 5 % of the tables may say that there is one in
any of three rates, and the intervals of all three have to cover 0. Else a subgroup of two or three
attributes is planted, in which the model is wrong more often; counted is how often the search says
that some subgroup is worse, and how often it names the planted one.

    python benchmarks/subgroups.py --tables 500 --planted 100
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from _results import FOLDER, Row, rounded, save

from robust_fairness.auditing.door import check
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.search import searched
from robust_fairness.numbers.estimate import LEVEL

ATTRIBUTES, VALUES, SHARES = ["a", "b", "c", "d"], list("wxyz"), [0.4, 0.3, 0.2, 0.1]
WRONG = 0.2
PLANTED = {2: {"a": "x", "b": "y"}, 3: {"a": "x", "b": "x", "c": "x"}}  # 6 and 2.7 % of the rows
OPTIONS = Options("y", "p", ATTRIBUTES)
WEIGHTS = {
    "equal": lambda _, rows: np.ones(rows),
    "1 and 4": lambda random, rows: random.choice([1.0, 4.0], rows),
    "lognormal": lambda random, rows: random.lognormal(size=rows),
}


def drawn(rows: int, size: int, excess: float, weights: str, seed: int) -> Predictions:
    """A table in which a subgroup of so many attributes is wrong more often."""
    random = np.random.default_rng([seed, rows])
    table = pd.DataFrame({name: random.choice(VALUES, rows, p=SHARES) for name in ATTRIBUTES})
    planted = np.all([table[name] == value for name, value in PLANTED.get(size, {}).items()], 0)
    y = (random.random(rows) < 0.4).astype(int)
    wrong = random.random(rows) < WRONG + np.where(planted, excess, 0)
    table = table.assign(y=y, p=np.where(wrong, 1 - y, y), w=WEIGHTS[weights](random, rows))
    options = Options("y", "p", ATTRIBUTES, sample_weight=None if weights == "equal" else "w")
    return check(table, options)


def simulated(without: int, planted: int) -> Iterator[Row]:
    """Rows by setting, from so many tables without and with a worse subgroup."""
    settings = [(rows, 0, 0.0, weights) for weights in WEIGHTS for rows in (1000, 10_000)]
    settings += [
        (rows, size, excess, "equal")
        for rows in (3000, 10_000)
        for size in PLANTED
        for excess in (0.1, 0.2)
    ]
    for rows, size, excess, weights in settings:
        said, named, covered, tables = 0, 0, 0, planted if size else without
        for seed in range(tables):
            worst = searched(drawn(rows, size, excess, weights, seed), OPTIONS)
            shown = [each for each in worst if each.p < LEVEL]
            said += bool(shown)
            covered += all(each.low <= 0 <= each.high for each in worst)
            named += any(
                dict(zip(each.attributes, each.values, strict=True)) == PLANTED.get(size)
                for each in shown
            )
        yield {
            "rows": rows, "tables": tables, "weights": weights,
            "planted": f"{size} attributes" if size else "none", "more errors": excess,
            "says one": rounded(said / tables), "names it": rounded(named / tables) if size else "",
            "intervals cover 0": "" if size else rounded(covered / tables),
        }  # fmt: skip
        print(
            rows, size, excess, weights, said / tables, named / tables, covered / tables, flush=True
        )


def main() -> None:
    """Simulate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--planted", type=int, default=100)
    arguments = parser.parse_args()
    rows = [*simulated(arguments.tables, arguments.planted)]
    save(__file__, vars(arguments), rows, FOLDER / "simulated")


if __name__ == "__main__":
    main()
