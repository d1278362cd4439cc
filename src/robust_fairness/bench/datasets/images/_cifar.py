"""Files of CIFAR-10: the official binary version, and arrays in a NumPy archive.

The pickles of the "python version" are never read.
"""

import io
import tarfile
from collections.abc import Mapping, Sequence

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, as_official, most_unpacked, require_size

CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer",
    "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
FOLDER = "cifar10/cifar-10-batches-bin"
TRAINING = tuple(f"{FOLDER}/data_batch_{number}.bin" for number in range(1, 6))
TEST = (f"{FOLDER}/test_batch.bin",)
ARCHIVE = "cifar10/cifar-10-binary.tar"  # as fetched: the same name and .gz
SIZE = 32
CHANNELS = 3
RECORD = 1 + CHANNELS * SIZE * SIZE  # a label, then red, green and blue, row by row

# Images uint8 [n, 3, 32, 32], labels int64 [n], names str [n] or None where there are none.
Images = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def read(files: Files, names: Sequence[str]) -> list[Images]:
    """Images, labels and names of every file.

    Official files that are not there by themselves are taken from the archive in which they are
    served.
    """
    absent = [name for name in names if name in (*TRAINING, *TEST) and not files.has(name)]
    served = _members(files, absent) if absent else {}
    return [_read(files, name, served) for name in names]


def _read(files: Files, name: str, served: Mapping[str, bytes]) -> Images:
    """One file, of the archive where it is served."""
    if name.endswith(".npz"):
        return _arrays(files, name)
    if name.endswith(".bin"):
        return _batch(name, served[name] if name in served else files.content(name))
    raise InputError(
        f"{name}: unknown format, allowed: .bin (a batch of the binary version), .npz (arrays)"
    )


def _members(files: Files, names: Sequence[str]) -> dict[str, bytes]:
    """Contents of files of the official archive."""
    content = io.BytesIO(files.content(ARCHIVE))
    result = {}
    with as_official(ARCHIVE), tarfile.open(fileobj=content, mode="r:") as archive:
        for name in names:
            member = archive.extractfile(name.removeprefix("cifar10/"))
            result[name] = b"" if member is None else member.read()
    return result


def _batch(name: str, content: bytes) -> Images:
    """A batch of the binary version."""
    rows, rest = divmod(len(content), RECORD)
    if rest or not rows:
        raise InputError(
            f"{name}: {len(content)} bytes; expected {RECORD} per image and at least one image"
        )
    records = np.frombuffer(content, np.uint8).reshape(rows, RECORD)
    labels = _known(name, records[:, 0].astype(np.int64))
    return records[:, 1:].reshape(rows, CHANNELS, SIZE, SIZE), labels, None


def _arrays(files: Files, name: str) -> Images:
    """``images`` [n, 32, 32, 3], ``labels`` [n] and, where there are any, ``filenames`` [n]."""
    content = files.content(name)
    with as_official(name), np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for entry in arrays.zip.infolist():
            require_size(entry.file_size, most_unpacked(entry.compress_size), name)
        images, labels, names = arrays["images"], arrays["labels"], arrays.get("filenames")
        classes = arrays.get("class_names", np.array(CLASSES)).tolist()
    of_pixels = images.dtype == np.uint8 and images.shape[1:] == (SIZE, SIZE, CHANNELS)
    of_images = labels.shape == images.shape[:1] and labels.dtype.kind in "iu"
    if not (of_pixels and of_images and len(images)):
        raise InputError(
            f"{name}: images {images.dtype} {images.shape} and labels {labels.dtype} "
            f"{labels.shape}, expected uint8 (n, {SIZE}, {SIZE}, {CHANNELS}) and whole numbers (n,)"
        )
    if names is not None and (names.dtype.kind != "U" or names.shape != labels.shape):
        raise InputError(f"{name}, filenames: {names.dtype} {names.shape}, expected text (n,)")
    if classes != list(CLASSES):
        raise InputError(f"{name}, class_names: must be {', '.join(CLASSES)}, in this order")
    images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return images, _known(name, labels.astype(np.int64)), names


def _known(name: str, labels: np.ndarray) -> np.ndarray:
    """The labels, checked to be classes."""
    if labels.min() < 0 or labels.max() >= len(CLASSES):
        raise InputError(
            f"{name}: labels from {labels.min()} to {labels.max()}, allowed: 0 to "
            f"{len(CLASSES) - 1}"
        )
    return labels
