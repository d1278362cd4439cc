"""Natural shift: diagnosis of a pair of domains, and reading a state, as ratios inside one run.

The diagnosis (decomposition, tests, columns, shares, regions) of made-up rows of the size of
ACSIncome is compared with one cross-fitted classifier of the domain, which it contains; reading a
state with reading all of its columns by pandas, and with reading it again.

    python benchmarks/natural_shift.py --rows 5000
"""

import argparse
import io
import time
import zipfile
from collections.abc import Callable

import numpy as np
import pandas as pd

from robust_fairness.datasets.files import Files, default_root
from robust_fairness.datasets.tables.acs import TASKS, archive, member, read_state
from robust_fairness.diagnosis import diagnose
from robust_fairness.diagnosis.pairs import compared
from robust_fairness.samples import Samples
from robust_fairness.training.records import Prediction

LEVELS = (9, 5, 26, 18, 9, 7)  # categories of the one-hot columns
NUMBERS = 4


def two_states(rows: int) -> tuple[Samples, list[Prediction]]:
    """Rows of two domains with predictions of them."""
    rng = np.random.default_rng(0)
    away = np.arange(2 * rows) >= rows
    numbers = rng.normal(size=(2 * rows, NUMBERS)) + 0.2 * away[:, None]
    codes = [rng.choice(levels, 2 * rows) for levels in LEVELS]
    names = [f"number {k}" for k in range(NUMBERS)]
    names += [f"column {k}={level}" for k, levels in enumerate(LEVELS) for level in range(levels)]
    columns = names[:NUMBERS] + [f"column {k}" for k, n in enumerate(LEVELS) for _ in range(n)]
    score = numbers[:, 0] + 0.5 * rng.normal(size=2 * rows)
    x = np.column_stack([numbers, *(np.eye(n)[c] for n, c in zip(LEVELS, codes, strict=True))])
    sex = pd.Categorical.from_codes((rng.random(2 * rows) < 0.5).astype(int), ["f", "m"])
    place = pd.Categorical.from_codes(away.astype(int), ["home", "away"])
    samples = Samples(
        x=x.astype(np.float32),
        y=(score > 0.3 * away).astype(int),
        attributes=pd.DataFrame({"sex": sex, "place": place}),
        id=np.arange(2 * rows),
        splits=pd.DataFrame({"split_0": np.where(away, "ood_test", "test")}),
        features=tuple(names),
        columns=tuple(columns),
        classes=("no", "yes"),
        sensitive=("sex",),
        domain="place",
    )
    outputs = np.column_stack([-numbers[:, 0], numbers[:, 0]]).astype(np.float32)
    parts = {"test": np.flatnonzero(~away), "ood_test": np.flatnonzero(away)}
    return samples, [
        Prediction("default", 0, "split_0", "", part, own, outputs[own])
        for part, own in parts.items()
    ]


def seconds(call: Callable[[], object]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    """Print times and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--state", default="NE")
    options = parser.parse_args()
    samples, predictions = two_states(options.rows)
    rows = [one.rows for one in predictions]
    diagnose("warm-up", *two_states(200)[:1], {"erm": two_states(200)[1]})
    classifier = seconds(lambda: compared(samples, *rows).of_all_columns)
    whole = seconds(lambda: diagnose("two", samples, {"erm": predictions}))
    print(
        f"diagnosis of {options.rows} and {options.rows} rows {whole:.2f} s of CPU time, "
        f"{whole / classifier:.1f} times a cross-fitted classifier of the domain"
    )
    root = default_root()
    if not Files(root).available(archive(options.state)):
        print(f"{archive(options.state)} is missing: reading is not measured")
        return

    def everything() -> pd.DataFrame:
        with zipfile.ZipFile(root / archive(options.state)) as members:
            return pd.read_csv(io.BytesIO(members.read(member(options.state))), low_memory=False)

    plain = seconds(everything)
    first, again = (
        seconds(lambda: read_state(Files(root), options.state, TASKS["Income"])) for _ in range(2)
    )
    print(
        f"reading {options.state} {first:.2f} s, {first / plain:.2f} of reading all columns with "
        f"pandas; again {again:.3f} s"
    )


if __name__ == "__main__":
    main()
