"""Processes that begin with the libraries imported: half of the time of a short ``kedro`` command.

A server imports the libraries once, none of the package, and forks: every process is one of its
own, with its own code of the package, environment and folder.
"""

import atexit
import os
import runpy
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing import forkserver, get_context
from pathlib import Path
from tempfile import mkdtemp

LIBRARIES = [
    "fsspec", "jinja2", "kedro.config", "kedro.io", "kedro.pipeline", "omegaconf",
    "optuna", "pandas", "plotly.express", "plotly.offline", "pyarrow.dataset",
    "pydantic", "requests", "safetensors.torch", "scipy.stats", "skimage", "sklearn.datasets",
    "sklearn.linear_model", "sklearn.metrics", "sklearn.tree", "torch", "torchvision", "IPython",
]  # fmt: skip


def run_python(
    words: list[str], folder: str, environment: dict[str, str], printed: tuple[str, str]
) -> None:
    """What ``python *words`` does, with standard output and error in files."""
    streams = {"stdin": os.devnull, "stdout": printed[0], "stderr": printed[1]}
    for number, (name, path) in enumerate(streams.items()):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
        setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:0] = ["" if words[0] == "-c" else os.getcwd(), *entries]
    try:
        if words[0] == "-m":
            sys.argv = [words[1], *words[2:]]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        elif words[0] == "-c":
            sys.argv = ["-c", *words[2:]]
            exec(words[1], {"__name__": "__main__"})
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    finally:
        atexit._run_exitfuncs()  # a fork of multiprocessing ends without them


class Forked:
    """A process with what tests use of ``subprocess.Popen``."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._printed = tuple(str(Path(mkdtemp()) / name) for name in ("out", "err"))
        for name in self._printed:  # also of a process that is killed before it opens them
            Path(name).touch()
        forkserver.set_forkserver_preload(LIBRARIES)
        arguments = (words, str(folder), environment, self._printed)
        self._process = get_context("forkserver").Process(target=run_python, args=arguments)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("python", timeout or 0)
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return tuple(Path(name).read_text(encoding="utf-8") for name in self._printed)


def killed(code: str, folder: Path, has_begun: Callable[[], bool]) -> None:
    """Run a program, and kill it in its midst."""
    start = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    child = Forked(["-c", start + code], folder, dict(os.environ))
    deadline = time.monotonic() + 300
    while not has_begun():
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL
