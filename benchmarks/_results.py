"""What a benchmark measured, as JSON in benchmarks/results, from which the page is made."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).resolve().parent / "results"

Row = Mapping[str, str | float]


def machine(device: str = "cpu") -> dict[str, Any]:
    """What was measured on."""
    gpu = torch.cuda.get_device_name() if torch.device(device).type == "cuda" else None
    return {
        "device": gpu or platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
    }


def save(script: str, settings: Mapping[str, Any], rows: Sequence[Row], to: Path = FOLDER) -> Path:
    """Write the rows of a table with the machine and the script's options; returns the file."""
    to.mkdir(parents=True, exist_ok=True)
    path = to / f"{Path(script).stem}.json"
    options = {name: str(value) for name, value in settings.items()}
    content = {"machine": machine(), "options": options, "rows": list(rows)}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
