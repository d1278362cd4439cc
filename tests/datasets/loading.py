"""How the tests load datasets."""

from pathlib import Path

from robust_fairness.bench.datasets.fetch import command
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples


def load(name: str, root: Path, splits: int = 1, **options: object) -> Samples:
    """The samples of a dataset whose raw files are below ``root``."""
    plugin = find("dataset", name)
    return plugin(plugin.Parameters.model_validate(options)).load(
        Files(root, download=command), splits
    )
