"""CIFAR-10: 60,000 small photographs of ten classes (Krizhevsky 2009).

Read from the official binary version, or from NumPy archives of the same images.
"""

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt

from robust_fairness.bench.datasets.base import ImageDataset, labelled
from robust_fairness.bench.datasets.images import _cifar
from robust_fairness.bench.samples.splits import (
    Fraction,
    SplitParameters,
    random_splits,
    require_every_class,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, RawPath
from robust_fairness.core.samples import Samples

TRAINING, TEST = range(2)

RawPaths = Annotated[tuple[RawPath, ...], Field(min_length=1)]


class Cifar10(ImageDataset):
    """Images of 3 x 32 x 32, the official test images as the test part.

    ``id`` is the name of an image where the files have names, else its place in the files, those
    of the training first.
    """

    class Parameters(SplitParameters):
        """Parameters of CIFAR-10.

        Attributes:
            train_files: files of training images: batches of the binary version (``.bin``), looked
                for in ``cifar-10-binary.tar.gz`` as well, or ``.npz`` archives with the arrays
                ``images``, ``labels`` and, if any, ``filenames``.
            test_files: files of test images, which are the test part of every split.
            train_rows: rows of the training part, validation included, chosen at random; all if
                None.
            test_rows: rows of the test part, chosen at random; all if None.
        """

        train_files: RawPaths = _cifar.TRAINING
        test_files: RawPaths = _cifar.TEST
        train_rows: PositiveInt | Fraction | None = None  # type: ignore[assignment]
        test_rows: PositiveInt | Fraction | None = None
        val_fraction: Fraction = 0.1
        sensitive: tuple[Literal["class"], ...] = ("class",)

    def required_files(self) -> tuple[str, ...]:
        return (*self.parameters.train_files, *self.parameters.test_files)

    def missing_files(self, files: Files) -> list[str]:
        """The official archive stands for the official files."""
        missing = super().missing_files(files)
        others = [name for name in missing if name not in (*_cifar.TRAINING, *_cifar.TEST)]
        served = len(others) == len(missing) or files.available(_cifar.ARCHIVE)
        return others if served else [*others, _cifar.ARCHIVE]

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        read = _cifar.read(files, (*parameters.train_files, *parameters.test_files))
        x, y, ids_of_files = zip(*read, strict=True)
        sizes = [len(labels) for labels in y]
        training = sum(sizes[: len(parameters.train_files)])
        test = sum(sizes) - training
        ids = _ids(ids_of_files, training + test)
        chosen = np.concatenate(
            [
                _chosen("train_rows", training, parameters.train_rows, parameters.seed, TRAINING),
                training + _chosen("test_rows", test, parameters.test_rows, parameters.seed, TEST),
            ]
        )
        known = int((chosen < training).sum())
        frame = random_splits(len(chosen), splits, parameters, known)
        codes = np.concatenate(y)[chosen]
        labels = pd.Series(pd.Categorical.from_codes(codes, pd.Index(_cifar.CLASSES)))
        require_every_class(frame, labels)
        images, attributes = np.concatenate(x)[chosen], {"class": labels}
        return labelled(
            images, labels, attributes, frame, parameters.sensitive, files, id=ids[chosen]
        )


def _chosen(field: str, count: int, asked: float | None, seed: int, part: int) -> np.ndarray:
    """Places of so many random rows of ``count``, in their order; all where None is asked."""
    rows = count if asked is None else asked
    if isinstance(rows, float):
        rows = round(rows * count)
    if not 1 <= rows <= count:
        raise InputError(f"{field}: {asked} of {count} rows, allowed: 1 to {count} rows")
    if rows == count:
        return np.arange(count)
    # three numbers: a stream that none of the splits uses
    generator = np.random.default_rng([seed, part, 1])
    return np.sort(generator.permutation(count)[:rows])


def _ids(of_files: tuple[np.ndarray | None, ...], count: int) -> np.ndarray:
    """Names of all images, or their places where no file has names."""
    names = [array for array in of_files if array is not None]
    if not names:
        return np.arange(count)
    if len(names) < len(of_files):
        raise InputError(
            "filenames: present in some of the files only; they must be in all or in none"
        )
    joined = np.concatenate(names)
    result, counts = np.unique(joined, return_counts=True)
    if len(result) < len(joined):
        raise InputError(
            f"filenames: {result[counts > 1][0]} occurs {counts.max()} times; names must be unique "
            "over training and test files"
        )
    return joined
