"""Files of CIFAR-10: the official binary version, and arrays in a NumPy archive.

The pickles of the "python version" are never read.
"""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files

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
MOST_BYTES = 2**30  # of all arrays of a NumPy archive
# a RuntimeError is an encrypted member, a MemoryError an array that declares too large a shape
DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError, RuntimeError,
    NotImplementedError, MemoryError,
)  # fmt: skip
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
    try:
        with tarfile.open(fileobj=content, mode="r:") as archive:
            for name in names:
                member = archive.extractfile(name.removeprefix("cifar10/"))
                result[name] = b"" if member is None else member.read()
    except KeyError as error:
        raise InputError(f"{ARCHIVE}: {error.args[0]}") from error
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{ARCHIVE}: corrupted or truncated: {error}") from error
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
    result = _loaded(files, name)
    wanted = {"images", "labels"}
    if missing := sorted(wanted - set(result)):
        raise InputError(f"{name}: no array {missing[0]}; required: {', '.join(sorted(wanted))}")
    images, labels, names = result["images"], result["labels"], result.get("filenames")
    if images.dtype != np.uint8 or images.shape[1:] != (SIZE, SIZE, CHANNELS) or not len(images):
        raise InputError(
            f"{name}, images: {images.dtype} {images.shape}, expected uint8 (n, {SIZE}, {SIZE}, "
            f"{CHANNELS})"
        )
    for array, kinds, kind in ((labels, "iu", "whole numbers"), (names, "U", "text")):
        if array is not None and (array.dtype.kind not in kinds or array.shape != images.shape[:1]):
            field = "labels" if array is labels else "filenames"
            raise InputError(
                f"{name}, {field}: {array.dtype} {array.shape}, expected {kind} ({len(images)},)"
            )
    classes = result.get("class_names")
    if classes is not None and classes.tolist() != list(CLASSES):
        raise InputError(f"{name}, class_names: must be {', '.join(CLASSES)}, in this order")
    images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    return images, _known(name, labels.astype(np.int64)), names


def _loaded(files: Files, name: str) -> dict[str, np.ndarray]:
    """All arrays of a NumPy archive, none of which may be pickled."""
    content = files.content(name)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            size = sum(member.file_size for member in members.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"{size:,} bytes uncompressed, allowed: up to {MOST_BYTES:,}")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except DAMAGE as error:
        # an array alone, which is no context, is a TypeError
        raise InputError(
            f"{name}: not a valid NumPy archive: {str(error).splitlines()[0]}"
        ) from error


def _known(name: str, labels: np.ndarray) -> np.ndarray:
    """The labels, checked to be classes."""
    wrong = np.flatnonzero((labels < 0) | (labels >= len(CLASSES)))
    if len(wrong):
        raise InputError(
            f"{name}: label {labels[wrong[0]]} of image {wrong[0]}, "
            f"allowed: 0 to {len(CLASSES) - 1}"
        )
    return labels
