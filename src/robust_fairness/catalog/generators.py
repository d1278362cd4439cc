"""Trained generators, which save and load themselves."""

from importlib import import_module
from pathlib import Path
from typing import Any

from robust_fairness.catalog.atomic import AtomicDataset

MODULE = "robust_fairness.bench.generation.generator"


class GeneratorDataset(AtomicDataset):
    """A ``Generator`` in one safetensors file, its settings in the header.

    The module is imported when a file is read: listing the catalog needs neither torch nor the
    library of the network.
    """

    def read(self, path: Path) -> Any:
        return import_module(MODULE).load(path)

    def write(self, data: Any, path: Path) -> None:
        data.save(path)
