"""What a benchmark measured, as JSON in benchmarks/results, from which the page is made."""

import json
import os
import platform
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

FOLDER = Path(__file__).resolve().parent / "results"

Row = Mapping[str, str | int | float]


def machine(device: str = "cpu") -> dict[str, Any]:
    """What was measured on; ``load`` is the number of processes that wanted a core before."""
    gpu = torch.cuda.get_device_name() if torch.device(device).type == "cuda" else None
    return {
        "device": gpu or f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
    }


def save(
    script: str, settings: Mapping[str, Any], rows: Sequence[Row], folder: Path = FOLDER
) -> None:
    """Print the rows of a table and write them with the machine and the script's options."""
    print(pd.DataFrame(rows).to_string(index=False))
    folder.mkdir(parents=True, exist_ok=True)
    options = {name: str(value) for name, value in settings.items()}
    content = {"machine": machine(), "options": options, "rows": list(rows)}
    path = folder / f"{Path(script).stem}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")


def peak_mib() -> float:
    """Largest resident set of this process so far, libraries included (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_seconds(words: Sequence[str], folder: Path, **variables: str) -> float:
    """CPU time of a command and of the processes that it started and waited for.

    Raises:
        CalledProcessError: it failed.
    """
    environment = {**os.environ, **variables}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rounded(value: float, count: int = 3) -> float:
    """A number with so many significant digits."""
    return float(f"{value:.{count}g}")
