"""A copy of the project in which tests run real ``kedro`` processes."""

import compileall
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import yaml

from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core.samples import Samples
from tests.forking import Forked

ROOT = Path(__file__).parents[1]
Started = subprocess.Popen | Forked


# Options of Python for the programs that pages name.
PROGRAMS: dict[str, list[str]] = {"python": [], "robust-fairness": ["-m", "robust_fairness"]}
# Runs several commands in one process, which imports torch once.
COMMANDS = """
import json, sys
from pathlib import Path
from kedro.framework.cli.cli import KedroCLI, _init_plugins

_init_plugins()
commands, status = KedroCLI(project_path=Path.cwd()), int(sys.argv[2])
if status:
    sys.stderr = sys.stdout
for words in json.loads(sys.argv[1]):
    print("$", *words, flush=True)
    try:
        commands.main(words)
    except SystemExit as end:
        if (end.code or 0) != status:
            raise
"""


def copy_configuration(folder: Path) -> Path:
    """Copy ``conf`` without a user's own files, those in ``conf/local``, below a folder."""
    conf = folder / "conf"
    shutil.copytree(ROOT / "conf", conf, ignore=shutil.ignore_patterns("local"))
    (conf / "local").mkdir()
    return conf


@cache
def shipped_configuration() -> Path:
    """A copy of ``conf`` without a user's own files, for tests that only read it."""
    return copy_configuration(Path(mkdtemp()))


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of every block of code of a page of the documentation."""
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@dataclass
class Project:
    """The copy.

    Attributes:
        root: its folder.
    """

    root: Path

    @classmethod
    def copied_to(cls, folder: Path) -> "Project":
        """Copy code and shipped configuration, no data.

        The code is compiled once, not in every copy; files of the type checker are left out.
        """
        compileall.compile_dir(ROOT / "src", quiet=2)
        ignored = shutil.ignore_patterns("*jaxtyping*")
        shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
        copy_configuration(folder)
        for name in ("pyproject.toml", ".telemetry"):
            shutil.copy(ROOT / name, folder / name)
        return cls(folder)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of its processes: its own code, no MLflow unless a test wants it."""
        left = ("MLFLOW_", "KEDRO_", "ROBUST_FAIRNESS_CHECKPOINTS", "COVERAGE_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(left)}
        return kept | {
            # As with an activated environment: Kedro starts `ipython` by its name.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(self.root / "src"),
            "ROBUST_FAIRNESS_MLFLOW": "off",
            "PYTHONWARNINGS": "ignore",
        }

    def start(self, *words: str, folder: str = ".", **environment: str) -> Started:
        """Start ``kedro`` with these words, in a folder of the project."""
        return self._start("-m", "kedro", *words, folder=folder, **environment)

    def _start(self, *words: str, folder: str = ".", **environment: str) -> Started:
        """Start Python: from nothing where libraries read another number of threads."""
        place, variables = self.root / folder, self.environment | environment
        if variables.get("OMP_NUM_THREADS") == os.environ.get("OMP_NUM_THREADS"):
            return Forked(list(words), place, variables)
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=place,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def kedro(self, *words: str, status: int = 0, folder: str = ".", **environment: str) -> str:
        """Run ``kedro`` to its end, check the exit status, return what it printed."""
        return "".join(_end(self.start(*words, folder=folder, **environment), status))

    def python(self, *words: str, status: int = 0) -> str:
        """Run Python to its end, check the exit status, return what it printed."""
        return "".join(_end(self._start(*words), status))

    def console(self, *words: str, folder: str = ".") -> str:
        """Run ``robust-fairness`` to its end, return what it printed."""
        return "".join(
            self._start("-m", "robust_fairness", *words, folder=folder).communicate(timeout=300)
        )

    def commands(self, *commands: str, status: int = 0, **environment: str) -> dict[str, str]:
        """Run several commands of ``kedro`` in one process; what each prints, by command.

        All end with the same status; of errors it is standard error, too.
        """
        words = (json.dumps([shlex.split(command) for command in commands]), str(status))
        printed, _ = _end(self._start("-c", COMMANDS, *words, **environment), 0)
        return dict(zip(commands, re.split(r"^\$ .*\n", printed, flags=re.M)[1:], strict=True))

    def configure(self, name: str, change: dict) -> None:
        """Merge a change into a file of ``conf``; a value of None deletes a key."""
        path = self.root / "conf" / name
        merged = _merge(yaml.safe_load(path.read_text()) if path.exists() else {}, change)
        path.write_text(yaml.safe_dump(merged, sort_keys=False))

    def follow(self, page: str) -> None:
        """Write the named files of a page and run the commands that follow the first of them."""
        written, raw = False, str(self.root / "data" / "01_raw")  # that of the example
        for language, text in blocks(page):
            named = re.match(r"# (\S+\.(?:py|yml))\n", text)
            if named:
                (self.root / named[1]).write_text(text)
                written = True
            elif language == "sh" and written:
                for line in text.splitlines():
                    program, *words = shlex.split(line)
                    _end(self._start(*PROGRAMS[program], *words, ROBUST_FAIRNESS_DATA=raw), 0)

    def file(self, name: str, run: str) -> Path:
        """File of a run, ``metrics.parquet`` say, below ``data``."""
        (path,) = (self.root / "data").rglob(f"{name}/{run}/{Path(name).name}")
        return path

    def metrics(self, run: str) -> pd.DataFrame:
        """The tidy table of a run."""
        return pd.read_parquet(
            self.root / "data" / "08_reporting" / "metrics.parquet" / run / "metrics.parquet"
        )

    def samples(self, dataset: str, run: str) -> Samples:
        """Samples of a dataset of a run."""
        path = self.file(f"{dataset}/samples.safetensors", run)
        samples: Samples = SamplesDataset(filepath=str(path)).load()
        return samples


@contextmanager
def hearing_interrupts() -> Iterator[None]:
    """Processes started within it can be interrupted.

    Background jobs of a shell ignore SIGINT, and so do their children, unless there is a handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(child: Started, status: int) -> tuple[str, str]:
    """Wait for a process, check its exit status, return what it printed.

    Raises:
        TimeoutExpired: it did not end within 300 s; it is killed.
    """
    try:
        out, err = child.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        child.kill()
        raise
    assert child.returncode == status, out + err
    return out, err


def _merge(old: dict, change: dict) -> dict:
    merged = dict(old or {})
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def small(project: Project) -> Project:
    """Shrink the smoke grid to one dataset with two methods and one seed."""
    project.configure(
        "smoke/experiment.yml",
        {
            "seeds": 1,
            "datasets": {
                "diabetes": {"methods": {"erm": {}, "cuma": {"trials": []}}},
                "diabetes_continuous": None,
                "biased_digits": None,
                "digits_extend": None,
                "digits_imbalanced": None,
                "generated_scenes": None,
            },
        },
    )
    return project
