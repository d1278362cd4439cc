"""Features of boxes in images: GQA's HDF5 files, converted once into memory-mapped arrays.

The official files (Hudson and Manning 2019, *GQA*, object features) are ``gqa_objects_0.h5`` to
``gqa_objects_15.h5``, each with ``features`` ``[image, 100, 2048]``, and
``gqa_objects_info.json``, which has of every image its ``file``, its row there (``idx``) and its
number of boxes (``objectsNum``). The first boxes are taken as they are ordered in the file;
``bboxes``, ``width`` and ``height`` are not read. Of 120 GB of single precision, 36 boxes of the
images of the balanced questions in half precision keep 12 GB.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap

from robust_fairness.compute.locks import LOCK, locked
from robust_fairness.compute.progress import progress
from robust_fairness.core.errors import InputError, first_line
from robust_fairness.core.files import atomic_path, sha256_of
from robust_fairness.samples.questions import COUNTS_FILE, FEATURES_FILE, Boxes

if TYPE_CHECKING:
    import h5py

INFO, FEATURES = "gqa_objects_info.json", "features"
ROW = ("idx", "index")  # the official name and, in its absence, the plain one
PROMISED = "objectsNum"
MANIFEST_FILE = "boxes.json"
FORMAT = 2  # of what is written; a change of it makes old maps unfit
HALF, COUNT = np.dtype("<f2"), np.dtype("<i2")
CACHE_BYTES = 2**24  # of unpacked chunks of an HDF5 file

logger = logging.getLogger(__name__)


def convert(features: Path, images: Sequence[str], boxes: int, target: Path) -> Boxes:
    """Features of the first ``boxes`` boxes of images, in half precision, in a folder of their own.

    What was converted before is returned at once; an interrupted conversion starts again. The
    folder's name is the hash of the table of images, the images and their order, and boxes; if an
    HDF5 file has changed, its content is converted again. It is complete when ``boxes.json``
    exists. Folders may be deleted at any time, and so may the HDF5 files once they are converted.

    A box of zeros at the end of those promised counts as absent: detectors of GQA's kind find no
    such features. Numbers below half precision's range become zero, those above it are refused:
    the official features are averages behind a ReLU, below 100.

    Args:
        features: folder of ``gqa_objects_info.json`` and of the files it names.
        images: ids of the images, in the order of the rows.
        boxes: most boxes of an image that are kept.
        target: folder of all converted arrays.
    """
    if not images:
        raise InputError("images: at least one is needed")
    if not 1 <= boxes <= np.iinfo(COUNT).max:
        raise InputError(f"boxes: {boxes}, allowed: 1 to {np.iinfo(COUNT).max}")
    places = _places(features / INFO, images)
    numbers = sorted(set(places.file.tolist()))
    sources = {number: features / f"gqa_objects_{number}.h5" for number in numbers}
    request = {
        "format": FORMAT,
        "boxes": boxes,
        "table": sha256_of(features / INFO),
        "pictures": list(images),
    }
    name = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    folder = target / name
    if (before := _kept(folder, sources)) is not None:
        return before
    shape = (len(images), boxes, _width(sources, places, images))
    try:
        with locked(folder / LOCK, inf):  # a conversion takes minutes
            if (before := _kept(folder, sources)) is not None:
                return before
            (folder / MANIFEST_FILE).unlink(missing_ok=True)
            manifest: dict[str, Any] = {
                "request": request,
                "sources": _identities(sources),
                "shape": shape,
            }
            counts = _converted(sources, places, images, shape, folder)
            fewer = counts < np.minimum(places.promised, boxes)
            if fewer.any():
                logger.warning(
                    "%s: %d of %d images end with boxes of zeros, which are excluded; the first "
                    "is %s", folder, fewer.sum(), len(fewer), images[int(fewer.argmax())],
                )  # fmt: skip
            manifest["sha256"] = _checksum(folder)
            with atomic_path(folder / MANIFEST_FILE) as temporary:
                temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return Boxes(str(folder), shape, manifest["sha256"])


def _kept(folder: Path, sources: Mapping[int, Path]) -> Boxes | None:
    """What was converted before, if it is whole and of the sources that there are."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        boxes = Boxes(str(folder), tuple(manifest["shape"]), manifest["sha256"])
        opened = replace(boxes)  # what is returned is not mapped yet
        whole = (opened.features.dtype, opened.counts.dtype) == (HALF, COUNT)
    except (OSError, ValueError, InputError):
        return None
    same = _identities(sources).items() <= manifest["sources"].items()
    return boxes if whole and same else None


def _identities(sources: Mapping[int, Path]) -> dict[str, list[int]]:
    """Size and modification time (nanoseconds) of the files that there are."""
    status = {path.name: path.stat() for path in sources.values() if path.is_file()}
    return {name: [file.st_size, file.st_mtime_ns] for name, file in status.items()}


class _Places(NamedTuple):
    """Where the features of images are, int64 ``[image]`` each.

    ``promised`` is the number of boxes that the row is said to hold.
    """

    file: np.ndarray
    row: np.ndarray
    promised: np.ndarray


def _places(info: Path, images: Sequence[str]) -> _Places:
    """Where the features of the images are, in their order."""
    try:
        table = json.loads(info.read_bytes())
    except OSError as error:
        raise InputError(f"{info}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # no JSON, or no text
        raise InputError(f"{info}: not JSON: {error}") from error
    if not isinstance(table, dict):
        raise InputError(f"{info}: must be an object with an entry per image")
    missing = [image for image in dict.fromkeys(images) if image not in table]
    if missing:
        raise InputError(
            f"{info}: no entry of image {missing[0]!r}, and of {len(missing)} of {len(images)} "
            "images in questions"
        )
    result = [_place(info, image, table[image]) for image in images]
    return _Places(*np.array(result, dtype=np.int64).T)


def _place(info: Path, image: str, entry: object) -> tuple[int, int, int]:
    """File, row and number of boxes of one image."""
    fields = entry if isinstance(entry, dict) else {}
    row = next((name for name in ROW if name in fields), ROW[0])

    def number(name: str) -> int:
        value = fields.get(name)
        if type(value) is not int or not 0 <= value < 2**31:  # true is no number
            raise InputError(
                f"{info}, image {image!r}, {name}: {value!r}, allowed: integers from 0"
            )
        return value

    return number("file"), number(row), number(PROMISED)


def _width(sources: Mapping[int, Path], places: _Places, images: Sequence[str]) -> int:
    """Numbers of a box, after a look at every file: nothing is converted before all fit."""
    widths: dict[int, Path] = {}
    for number, path in sources.items():
        with _opened(path) as dataset:
            rows, boxes, width = dataset.shape
        here = np.flatnonzero(places.file == number)
        for name, values, allowed in (
            ("row", places.row[here], rows - 1),
            (PROMISED, places.promised[here], boxes),
        ):
            if (values > allowed).any():
                worst = int(values.argmax())
                raise InputError(
                    f"{path}, image {images[here[worst]]!r}, {name}: {values[worst]}, allowed: at "
                    f"most {allowed}, since its {FEATURES} have the shape {rows} x {boxes} x "
                    f"{width}"
                )
        widths.setdefault(width, path)
    if len(widths) > 1:
        result = ", ".join(f"{width} in {path.name}" for width, path in widths.items())
        raise InputError(f"{FEATURES}: widths differ between files ({result}); they must be equal")
    return next(iter(widths))


@contextmanager
def _opened(path: Path) -> Iterator["h5py.Dataset"]:
    """The features of a file, open."""
    import h5py

    if not path.is_file():
        raise InputError(f"{path}: is missing; all files that {INFO} names are needed")
    try:
        file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    except OSError as error:
        raise InputError(
            f"{path}: corrupted or truncated HDF5 file: {first_line(error)}"
        ) from error
    with file:
        dataset = file.get(FEATURES)
        if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind != "f":
            raise InputError(f"{path}: must contain an array of real numbers named {FEATURES}")
        if dataset.ndim != 3 or 0 in dataset.shape:
            raise InputError(
                f"{path}: {FEATURES} of shape {dataset.shape}, expected image x box x number"
            )
        yield dataset


def _converted(
    sources: Mapping[int, Path],
    places: _Places,
    images: Sequence[str],
    shape: tuple[int, int, int],
    folder: Path,
) -> np.ndarray:
    """Write both arrays of a folder, in the order of the files; the number of boxes, ``[image]``.

    The features are written, not mapped: a full disk would kill a process that has mapped them.
    """
    counts = np.zeros(len(images), COUNT)
    order = np.lexsort((places.row, places.file)).tolist()
    with ExitStack() as stack:
        datasets = {number: stack.enter_context(_opened(path)) for number, path in sources.items()}
        temporary = stack.enter_context(atomic_path(folder / FEATURES_FILE))
        start = open_memmap(temporary, "w+", HALF, shape).offset  # zeros
        file = stack.enter_context(temporary.open("r+b"))
        for image in progress(order, "features of boxes", len(order)):
            number = int(places.file[image])
            row, promised = int(places.row[image]), int(places.promised[image])
            try:
                read = datasets[number][row, : min(promised, shape[1])]
            except (OSError, RuntimeError) as error:
                path = sources[number]
                raise InputError(f"{path}: corrupted HDF5 file: {first_line(error)}") from error
            kept = _half(read, f"{sources[number]}, image {images[image]!r}")
            counts[image] = len(kept)
            file.seek(start + image * shape[1] * shape[2] * HALF.itemsize)
            file.write(kept.tobytes())
    with atomic_path(folder / COUNTS_FILE) as temporary, temporary.open("wb") as counts_file:
        np.save(counts_file, counts)
    return counts


def _half(boxes: np.ndarray, place: str) -> np.ndarray:
    """Boxes without those of zeros at the end, float16 ``[box, number]``."""
    filled = np.flatnonzero(boxes.any(axis=1))
    kept = boxes[: filled[-1] + 1] if len(filled) else boxes[:0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half: np.ndarray = kept.astype(HALF)
    if not np.isfinite(half).all():
        wrong = kept[~np.isfinite(half)][0]
        raise InputError(
            f"{place}, {FEATURES}: {wrong:g}, allowed: at most {np.finfo(HALF).max:g}, the largest "
            "number of half precision"
        )
    return half


def _checksum(folder: Path) -> str:
    """SHA-256 of both arrays as they are on the disk."""
    digest = hashlib.sha256()
    for name in (FEATURES_FILE, COUNTS_FILE):
        with (folder / name).open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
