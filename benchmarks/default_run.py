"""CPU time of the default run, dataset by dataset, against that of another checkout.

Both take turns, one after the other and with one thread, so that what else the machine does slows
both. Every dataset is a run of its own, with start and report. The other checkout has the
environment that its own ``requirements.lock`` asks for.

    python benchmarks/default_run.py --other ../earlier --other-kedro ../earlier/.venv/bin/kedro
"""

import argparse
import sys
from pathlib import Path

import yaml
from _results import Row, cpu_seconds, rounded, save

HERE = Path(__file__).resolve().parents[1]
SETTINGS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "ROBUST_FAIRNESS_MLFLOW": "off"}


def seconds(project: Path, kedro: Path, dataset: str) -> float:
    """CPU seconds of a run of a dataset of the default grid."""
    words = [str(kedro), "run", "--pipelines=robust_fairness", f"--datasets={dataset}"]
    return cpu_seconds(words, project, PYTHONPATH=str(project / "src"), **SETTINGS)


def table(measured: dict[str, tuple[float, float]]) -> list[Row]:
    """A row for each dataset and their sum: seconds of the other checkout and of this one."""
    sums = [sum(times) for times in zip(*measured.values(), strict=True)]
    return [
        {
            "dataset": dataset,
            "other, CPU s": rounded(other),
            "this, CPU s": rounded(this),
            "ratio": rounded(this / other),
        }
        for dataset, (other, this) in {**measured, "all": (sums[0], sums[1])}.items()
    ]


def main() -> None:
    """Print the times of both and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, required=True, help="folder of the checkout")
    parser.add_argument("--other-kedro", type=Path, required=True, help="kedro of its environment")
    parser.add_argument("--datasets", nargs="+", help="default: all of the grid")
    options = parser.parse_args()
    grid = yaml.safe_load((HERE / "conf" / "base" / "experiment.yml").read_text())["datasets"]
    own = Path(sys.executable).with_name("kedro")
    measured = {
        dataset: (
            seconds(options.other.resolve(), options.other_kedro.absolute(), dataset),
            seconds(HERE, own, dataset),
        )
        for dataset in options.datasets or grid
    }
    save(__file__, {"other": options.other.name}, table(measured))


if __name__ == "__main__":
    main()
