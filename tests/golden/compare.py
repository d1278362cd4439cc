"""Compare texts and pages of two checkouts on this machine, which goldens do not have.

    python -m tests.golden.compare OTHER_FOLDER FOLDER [--audits 20]

Both checkouts audit the tables of ``audits``, as a library and on the command line: compared are
what the console shows, pages, model cards and every file that is written, byte by byte, and with
them the tables of the last run in ``data`` of both, if there are any. Says what differs and where
its first line does; the exit status is then 1. The Python is that of the environment that runs it.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
SHOWN = 160  # characters of a line


def texts(audits: int) -> dict[str, str]:
    """Texts of the package that is imported, by name."""
    from click.testing import CliRunner

    from robust_fairness.auditing.export import model_card
    from robust_fairness.cli.audit import audit as command
    from tests.golden.audits import audited, case

    made = {}
    for number in range(audits):
        judged = audited(number).judged(case(number).gates)
        made |= {
            f"audit {number}, console": str(judged), f"audit {number}, page": judged.to_html(),
            f"audit {number}, model card": model_card(judged),
        }  # fmt: skip
        options = case(number).options
        if not isinstance(options["y_pred"], str) or "continuous" in options:
            continue
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            case(number).table.to_csv("table.csv", index=False)
            columns = ["--target", "y", "--prediction", "p", "--attributes", "sex"]
            kind = (
                ["--prediction-is", "score", "--threshold", "0.25"]
                if "prediction_is" in options
                else []
            )
            kind += ["--labels", options["labels"]] if "labels" in options else []
            words = ["table.csv", *columns, *kind, "--fail-if", case(number).gates[0]]
            done = CliRunner().invoke(command, words)
            shown = done.output.replace(str(Path.cwd()), "")
            made[f"command {number}, console"] = f"{shown}\nstatus {done.exit_code}"
            for path in sorted(Path().rglob("*")):
                if path.is_file() and path.name != "table.csv":
                    made[f"command {number}, {path}"] = path.read_text(encoding="utf-8")
            os.chdir(ROOT)
    return made


def of_checkout(folder: Path, audits: int) -> dict[str, str]:
    """Texts of a checkout, made by a process of its own, and hashes of the tables of its run."""
    if not (folder / "src" / "robust_fairness").is_dir():
        raise SystemExit(f"{folder}: no checkout, it has no src/robust_fairness")
    paths = {"PYTHONPATH": os.pathsep.join([str(folder / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.golden.compare", "--texts", "--audits", str(audits)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr}")
    return {**json.loads(done.stdout), **tables(folder / "data")}


def tables(data: Path) -> dict[str, str]:
    """Hashes of the contents of a run's tables, of the last version of each."""
    import pandas as pd

    newest = {}
    for path in sorted(data.rglob("*.parquet")):
        kept = path.parents[1] if path.parents[1].suffix else path
        newest[f"table {kept.relative_to(data)}"] = path
    return {
        name: hashlib.sha256(pd.read_parquet(path).to_csv(index=False).encode()).hexdigest()
        for name, path in newest.items()
    }


def differences(here: dict[str, str], there: dict[str, str]) -> list[str]:
    """What differs, with the first line that does."""
    said = []
    for name in sorted({*here, *there}):
        if name not in here or name not in there:
            said.append(f"{name}: only in the {'first' if name in here else 'second'} checkout")
        elif here[name] != there[name]:
            lines = zip_longest(here[name].splitlines(), there[name].splitlines(), fillvalue="")
            number, pair = next(
                (number, pair) for number, pair in enumerate(lines, 1) if pair[0] != pair[1]
            )
            said.append(f"{name}, line {number}:\n  {pair[0][:SHOWN]}\n  {pair[1][:SHOWN]}")
    return said


def main() -> None:
    """Compare both checkouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--audits", type=int, default=20)
    parser.add_argument("--texts", action="store_true", help="write the texts of this process")
    arguments = parser.parse_args()
    if arguments.texts:
        warnings.simplefilter("ignore")
        print(json.dumps(texts(arguments.audits)))
        return
    if len(arguments.folders) != 2:  # noqa: PLR2004
        parser.error("two folders are needed")
    here, there = (of_checkout(f.absolute(), arguments.audits) for f in arguments.folders)
    said = differences(here, there)
    print("\n".join([*said, f"{len(here)} texts and tables, {len(said)} differ"]))
    sys.exit(bool(said))


if __name__ == "__main__":
    main()
