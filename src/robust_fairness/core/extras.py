"""Extras of the installation, and which of them brings a package that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from robust_fairness.core.errors import InputError

# Packages as they are imported, by extra; ``all`` has the extras before it.
PACKAGES = {
    "parquet": ("pyarrow",),
    "train": (
        "fairlearn", "jaxtyping", "optuna", "pooch", "pytorch_metric_learning", "safetensors",
        "sklearn", "skops", "threadpoolctl", "torch", "tqdm",
    ),
    "images": ("PIL", "skimage", "torchvision"),
    "questions": ("h5py",),
    "generation": ("diffusers",),
    "trees": ("lightgbm", "xgboost"),
    "dask": ("cryptography", "dask", "distributed"),
    "viz": ("kedro_viz",),
    "all": (
        "cloudpickle", "fsspec", "kedro", "kedro_datasets", "mlflow", "omegaconf", "pandera",
        "parse", "plotly", "pluggy",
    ),
}  # fmt: skip
EXTRA_OF = {package: extra for extra, packages in PACKAGES.items() for package in packages}


def command(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "robust-fairness[{extra}]"'


def extra_of(error: ModuleNotFoundError) -> str | None:
    """The extra that brings the missing module; None if none does."""
    return EXTRA_OF.get((error.name or "").partition(".")[0])


@contextmanager
def needed_by(what: str, extra: str | None = None) -> Iterator[None]:
    """Say in one line which extra a missing package of the block belongs to.

    Args:
        what: what needs the package.
        extra: named instead of the extra of the package, where more than that will be missing.

    Raises:
        InputError: a package of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = extra_of(error)
        if missing is None:
            raise
        raise InputError(f"{what} needs: {command(extra or missing)}") from None
