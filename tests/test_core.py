"""The core alone: names, commands, messages, and numbers of an audit against closed forms.

Needs only pytest, so that ``make core`` runs it in an environment without any extra. With extras
installed, processes with their packages blocked stand in for such an environment.
"""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packaging.specifiers import SpecifierSet

import robust_fairness as rf
from robust_fairness.__main__ import main
from robust_fairness.core import files
from robust_fairness.core.extras import DISTRIBUTIONS, fits, requirements

# Runs code in a process that cannot import some packages.
BLOCKING = """
import sys
from importlib.abc import MetaPathFinder

blocked = set(sys.argv[1].split(","))

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in blocked & sys.modules.keys():
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[2:]
exec(sys.argv[0])
"""
EXTRAS = {name.replace("-", "_") for needed in requirements().values() for name in needed}
PLATFORM = ("fcntl", "resource", "pwd", "grp", "termios")  # of POSIX, not of Windows


def core(
    code: str, *words: str, allowed: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a process with nothing but the core and some modules."""
    blocked = ",".join({*EXTRAS, *DISTRIBUTIONS, *PLATFORM} - {*allowed})
    quiet = "ignore:only soft file lock"  # Windows, which this stands in for, has its own lock
    command = [sys.executable, "-W", quiet, "-c", BLOCKING, blocked, code, *words]
    return subprocess.run(
        command, capture_output=True, check=False, encoding="utf-8", env=os.environ | environment
    )


COMMAND = "from robust_fairness.__main__ import main; main()"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two sexes with true positive rates .9 and .6, three regions, and one row without a sex."""
    counts = {("f", 1, 1): 90, ("f", 1, 0): 10, ("f", 0, 1): 20, ("f", 0, 0): 80,
              ("m", 1, 1): 120, ("m", 1, 0): 80, ("m", 0, 1): 20, ("m", 0, 0): 180,
              (None, 1, 1): 1}  # fmt: skip
    rows = [key for key, count in counts.items() for _ in range(count)]
    frame = pd.DataFrame(rows, columns=["sex", "y", "p"])
    return frame.assign(region=np.resize(["north", "south", "west"], len(frame)))


@pytest.fixture(scope="module")
def file(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("core") / "t.csv"
    table.to_csv(path, index=False)
    return path


EXPECTED = {
    ("", "accuracy"): 471 / 601,
    ("sex", "equal_opportunity_difference"): 0.3,
    ("sex", "demographic_parity_difference"): 110 / 200 - 140 / 400,
    ("sex", "equalized_odds_difference"): 0.3,
    ("sex", "worst_group_accuracy"): 300 / 400,
}


def wilson(share: float, n: int) -> tuple[float, float]:
    z = 1.959963984540054
    middle, half = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + (z / 2 / n) ** 2)
    return (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)


def values(rows: pd.DataFrame) -> Mapping[tuple[str, str], float]:
    of_all = rows[rows["group"].fillna("") == ""].fillna({"attribute": ""})
    return dict(
        zip(zip(of_all["attribute"], of_all["metric"], strict=True), of_all["value"], strict=True)
    )


def test_the_audit_has_the_numbers_of_closed_forms(table: pd.DataFrame) -> None:
    audit = rf.audit(table, y_true="y", y_pred="p", sensitive_features=["sex", "region"])
    rows = audit.to_frame()
    for place, expected in EXPECTED.items():
        assert values(rows)[place] == pytest.approx(expected), place
    accuracy = rows[rows["metric"] == "accuracy"].iloc[0]
    assert (accuracy["low"], accuracy["high"]) == pytest.approx(wilson(471 / 601, 601))


def test_metrics_are_functions_of_arrays(table: pd.DataFrame) -> None:
    known = table.dropna()
    gap = rf.metrics.equal_opportunity_difference(
        known["y"], known["p"], sensitive_features=known["sex"]
    )
    assert gap == pytest.approx(0.3)


def test_the_command_has_the_same_numbers(file: Path) -> None:
    """In a process that can import nothing but the core, and no module of POSIX."""
    words = ("audit", str(file), "--target=y", "--prediction=p", "--attributes=sex,region")
    done = core(COMMAND, *words, f"--output={file.parent}", "--force", "--model-card",
                "--fail-if=equalized_odds_difference[sex]>0.5")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Yes: the equalized odds difference by sex is ")
    rows = pd.read_csv(file.with_name("t_audit.csv"))
    for place, expected in EXPECTED.items():
        assert values(rows)[place] == pytest.approx(expected), place
    assert "Audit of t.csv" in file.with_name("t_audit.html").read_text(encoding="utf-8")
    printed = core(COMMAND, *words, "--format=json", "--force", f"--output={file.parent}")
    assert {row["metric"] for row in json.loads(printed.stdout)["rows"]} >= {"accuracy"}


def test_a_console_of_few_letters_shows_every_name(table: pd.DataFrame, tmp_path: Path) -> None:
    """As that of Windows in Western Europe."""
    table["sex"] = table["sex"].map({"f": "dame", "m": "άνδρας"})
    table.to_csv(tmp_path / "t.csv", index=False)
    done = core(COMMAND, "audit", str(tmp_path / "t.csv"), "--target=y", "--prediction=p",
                "--attributes=sex", f"--output={tmp_path}", PYTHONIOENCODING="cp1252:strict",
                PYTHONUTF8="0")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert r"worst group: sex \u03ac" in done.stdout
    assert "άνδρας" in (tmp_path / "t_audit.html").read_text(encoding="utf-8")


def test_files_of_other_processes_stay_where_these_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows a signal of number 0 would end the process."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    leftover = tmp_path / f".t.csv.{files.HOST}.{ended.pid}.part"
    for is_posix in (False, True):
        leftover.touch()
        monkeypatch.setattr(files, "IS_POSIX", is_posix)
        with monkeypatch.context() as patched:
            if not is_posix:
                patched.setattr(os, "kill", None)
            with files.atomic_path(tmp_path / "t.csv") as path:
                path.write_text("a")
        assert leftover.exists() == (not is_posix)


@pytest.mark.parametrize(
    ("code", "words", "message"),
    [
        (COMMAND, ("run",), '`robust-fairness run` needs: pip install "robust-fairness[all]"'),
        (COMMAND, ("demo",), '`robust-fairness demo` needs: pip install "robust-fairness[all]"'),
        (COMMAND, ("audit", "t.parquet", "--target=y", "--prediction=p", "--attributes=sex"),
         't.parquet: a Parquet file needs: pip install "robust-fairness[parquet]"'),
        (COMMAND, ("audit", "t.csv", "--target=y", "--prediction=p", "--attributes=sex",
                   "--reference=t.csv", "--features=x"),
         '--features needs: pip install "robust-fairness[features]"'),
        ("import robust_fairness as rf; rf.Cuma", (),
         'robust_fairness.Cuma needs: pip install "robust-fairness[train]"'),
        ("import robust_fairness as rf; rf.load", (),
         'robust_fairness.load needs: pip install "robust-fairness[train]"'),
        ("import robust_fairness as rf; rf.cuma", (), "has no attribute 'cuma'"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_in_one_line(
    tmp_path: Path, code: str, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    (tmp_path / "t.csv").write_text("sex,x,y,p\n" + "f,1,0,1\nm,2,1,1\nf,3,1,0\nm,4,0,0\n" * 9)
    done = core(f"import os; os.chdir({str(tmp_path)!r})\n{code}", *words)
    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert message in last
    if code == COMMAND:
        assert done.stderr.count("\n") == 1


def test_why_values_changed_needs_scikit_learn_only(table: pd.DataFrame, tmp_path: Path) -> None:
    """Without torch and all other packages of extras."""
    pytest.importorskip("sklearn")
    known = table.dropna().assign(x=range(len(table.dropna())))
    for name in ("then.csv", "now.csv"):
        known.to_csv(tmp_path / name, index=False)
    words = (
        "audit",
        str(tmp_path / "now.csv"),
        "--target=y",
        "--prediction=p",
        "--features=x",
        "--attributes=sex",
        f"--reference={tmp_path / 'then.csv'}",
        f"--output={tmp_path}",
    )
    done = core(COMMAND, *words, allowed=("sklearn", "threadpoolctl", "cloudpickle"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "why: no change of accuracy or of a gap excludes 0" in done.stdout
    assert {"X", "Y given X"} <= {*pd.read_csv(tmp_path / "now_why.csv")["part"]}


@pytest.mark.parametrize(
    "words", [(), ("--version",), ("list", "methods"), ("list", "metrics"), ("cite",)]
)
def test_commands_of_the_core(words: tuple[str, ...]) -> None:
    done = core(COMMAND, *words)
    assert "Traceback" not in done.stderr
    expected = {
        (): "Commands:",
        ("--version",): rf.__version__,
        ("list", "methods"): "cuma ",
        ("list", "metrics"): "accuracy ",
        ("cite",): "@inproceedings{hardt2016",
    }
    assert expected[words] in done.stdout + done.stderr


def test_names_are_listed_and_explained() -> None:
    """Also in the core, where classes cannot be loaded."""
    assert {"audit", "metrics", "train", "Cuma", "GroupDro"} <= set(dir(rf))
    done = core(
        "import robust_fairness as rf, inspect; print(inspect.signature(rf.audit)); help(rf)"
    )
    assert done.returncode == 0, done.stderr
    assert "sensitive_features" in done.stdout and "rf.audit(frame" in done.stdout
    assert all(f" {name}" in done.stdout for name in dir(rf) if name[0].isupper())


@pytest.mark.parametrize("bounds", sorted({b for n in requirements().values() for b in n.values()}))
def test_versions_fit_as_in_packaging(bounds: str) -> None:
    versions = ("0.1", "1.7.0", "1.7.9", "1.8", "2.11.0+cpu", "3", "5.24", "6.0", "12.5", "13.0.1")
    assert [fits(version, bounds) for version in versions] == [
        SpecifierSet(bounds).contains(version) for version in versions
    ]


def test_a_package_of_an_extra_in_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robust_fairness.core.extras.version", lambda name: "0.1")
    with pytest.raises(AttributeError, match=r"load needs [\w-]+>=[\d.]+, not 0\.1: pip install"):
        _ = rf.load
    with pytest.raises(SystemExit, match=r"`robust-fairness run` needs .*, not 0\.1: pip install"):
        main(["run"])


def test_an_installation_without_its_data_says_so(tmp_path: Path) -> None:
    package = Path(rf.__file__).parent
    shutil.copytree(
        package,
        tmp_path / "site" / package.name,
        ignore=lambda folder, names: [
            name for name in names if Path(folder, name).is_file() and not name.endswith(".py")
        ],
    )
    begin = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
    done = core(f"{begin}import robust_fairness as rf; rf.audit")
    assert ".yml: not in this installation; install robust-fairness again" in done.stderr
    done = core(f"{begin}{COMMAND}", "list", "methods")
    assert done.stderr.count("\n") == 1
    assert "parameters.yml: not in this installation" in done.stderr


def test_importing_the_package_imports_nothing() -> None:
    done = core("import sys, robust_fairness; print(*sys.modules)")
    assert "robust_fairness" in done.stdout.split()
    assert not {"numpy", "pandas", "pydantic", "click"}.intersection(done.stdout.split())
