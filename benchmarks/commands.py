"""CPU time of Kedro's commands that only list, here and in an empty new project of Kedro.

Both are measured in turn. The bound is 3 CPU seconds beyond those of the empty project.

    python benchmarks/commands.py --repeats 5
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from _results import cpu_seconds, rounded, save

COMMANDS = ("--help", "registry list", "catalog list-patterns", "catalog describe-datasets")
ROOT = Path(__file__).resolve().parents[1]
KEDRO = (sys.executable, "-m", "kedro")
ANSWERS = "project_name: Plain\nrepo_name: plain\npython_package: plain\n"


def plain_project(folder: Path) -> Path:
    """A new project of Kedro without pipelines."""
    answers = folder / "answers.yml"
    answers.write_text(ANSWERS)
    cpu_seconds([*KEDRO, "new", f"--config={answers}", "--telemetry=no"], folder)
    return folder / "plain"


def main() -> None:
    """Print the CPU time of every command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        plain = plain_project(Path(folder))
        for command in COMMANDS:
            words = [*KEDRO, *command.split()]
            pairs = [
                (cpu_seconds(words, plain), cpu_seconds(words, ROOT))
                for _ in range(options.repeats)
            ]
            empty, ours = (median(times) for times in zip(*pairs, strict=True))
            rows.append(
                {
                    "command": f"kedro {command}",
                    "empty project, CPU s": rounded(empty),
                    "here, CPU s": rounded(ours),
                    "ratio": rounded(ours / empty, 2),
                    "beyond, CPU s": rounded(ours - empty, 2),
                }
            )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
