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
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from pydantic import AliasChoices, BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from robust_fairness.bench.compute.process import progress
from robust_fairness.core.errors import InputError, first_line
from robust_fairness.core.files import LOCK, atomic_path, locked, sha256_of
from robust_fairness.core.questions import COUNTS_FILE, FEATURES_FILE, Boxes

INFO, FEATURES = "gqa_objects_info.json", "features"
MANIFEST_FILE = "boxes.json"
FORMAT = 3  # of what is written; a change of it makes old maps unfit
HALF, COUNT = np.dtype("<f2"), np.dtype("<i2")
CACHE_BYTES = 2**24  # of unpacked chunks of an HDF5 file

logger = logging.getLogger(__name__)


class Place(BaseModel, strict=True, frozen=True):
    """Where the features of an image are: number of the file, row in it, number of boxes."""

    file: NonNegativeInt
    row: NonNegativeInt = Field(validation_alias=AliasChoices("idx", "index"))
    promised: NonNegativeInt = Field(validation_alias="objectsNum")


PLACES = TypeAdapter(dict[str, Place])


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
    places = _places(features / INFO, images)
    sources = {
        place.file: features / f"gqa_objects_{place.file}.h5"
        for place in sorted(places, key=_position)
    }
    request = [FORMAT, boxes, sha256_of(features / INFO), list(images)]
    folder = target / hashlib.sha256(json.dumps(request).encode()).hexdigest()
    try:
        with locked(folder / LOCK, inf):  # a conversion takes minutes
            if (before := _kept(folder, sources)) is not None:
                return before
            (folder / MANIFEST_FILE).unlink(missing_ok=True)
            identities = _identities(sources)
            shape = _write(sources, places, images, boxes, folder)
            sha256 = checksum(folder)
            manifest = {"shape": shape, "sha256": sha256, "sources": identities}
            with atomic_path(folder / MANIFEST_FILE) as temporary:
                temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error
    return Boxes(str(folder), shape, sha256)


def checksum(folder: Path) -> str:
    """SHA-256 of both arrays as they are on the disk."""
    digest = hashlib.sha256()
    for name in (FEATURES_FILE, COUNTS_FILE):
        with (folder / name).open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def _places(info: Path, images: Sequence[str]) -> list[Place]:
    """Where the features of the images are, in their order."""
    try:
        table = PLACES.validate_json(info.read_bytes())
        return [table[image] for image in images]
    except OSError as error:
        raise InputError(f"{info}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{info}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except KeyError as error:
        raise InputError(
            f"{info}: no entry of image {error}, and of {len({*images} - {*table})} of "
            f"{len(images)} images in questions"
        ) from error


def _position(place: Place) -> tuple[int, int]:
    return place.file, place.row


def _kept(folder: Path, sources: Mapping[int, Path]) -> Boxes | None:
    """What was converted before, if it is whole and of the sources that there are."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        boxes = Boxes(str(folder), tuple(manifest["shape"]), manifest["sha256"])
        whole = (boxes.features.dtype, boxes.counts.dtype) == (HALF, COUNT)
    except (OSError, ValueError):
        return None
    same = _identities(sources).items() <= manifest["sources"].items()
    return Boxes(boxes.folder, boxes.shape, boxes.sha256) if whole and same else None  # not mapped


def _identities(sources: Mapping[int, Path]) -> dict[str, list[int]]:
    """Size and modification time (nanoseconds) of the files that there are."""
    status = {path.name: path.stat() for path in sources.values() if path.is_file()}
    return {name: [file.st_size, file.st_mtime_ns] for name, file in status.items()}


def _write(
    sources: Mapping[int, Path],
    places: Sequence[Place],
    images: Sequence[str],
    boxes: int,
    folder: Path,
) -> tuple[int, int, int]:
    """Write both arrays of a folder, in the order of the files; the shape of the features.

    The features are written, not mapped: a full disk would kill a process that has mapped them.
    """
    counts = np.zeros(len(images), COUNT)
    order = sorted(range(len(images)), key=lambda image: _position(places[image]))
    with ExitStack() as stack:
        datasets = {n: stack.enter_context(_features(path)) for n, path in sources.items()}
        shape = (len(images), boxes, datasets[places[0].file].shape[-1])
        temporary = stack.enter_context(atomic_path(folder / FEATURES_FILE))
        start = open_memmap(temporary, "w+", HALF, shape).offset  # zeros
        output = stack.enter_context(temporary.open("r+b"))
        for image in progress(order, "features of boxes", len(order)):
            place = places[image]
            try:
                read = datasets[place.file][place.row, : min(place.promised, boxes)]
                half = _half(read, shape[1:])
            except (OSError, RuntimeError, ValueError, IndexError) as error:
                where = f"{sources[place.file]}, image {images[image]!r}, {FEATURES}"
                raise InputError(f"{where}: {first_line(error)}") from error
            counts[image] = max(np.flatnonzero(read.any(axis=1)) + 1, default=0)
            output.seek(start + image * half.nbytes)
            output.write(half.tobytes())
    with atomic_path(folder / COUNTS_FILE) as temporary, temporary.open("wb") as counts_file:
        np.save(counts_file, counts)
    fewer = [row for row, place in enumerate(places) if counts[row] < min(place.promised, boxes)]
    if fewer:
        logger.warning(
            "%s: %d of %d images end with boxes of zeros, which are excluded; the first is %s",
            folder, len(fewer), len(images), images[fewer[0]],
        )  # fmt: skip
    return shape


@contextmanager
def _features(path: Path) -> Iterator[Any]:
    """The features of a file, open."""
    import h5py

    if not path.is_file():
        raise InputError(f"{path}: is missing; all files that {INFO} names are needed")
    try:
        file = h5py.File(path, "r", rdcc_nbytes=CACHE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: no readable HDF5 file: {first_line(error)}") from error
    with file:
        if FEATURES not in file:
            raise InputError(f"{path}: no array {FEATURES}")
        yield file[FEATURES]


def _half(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Boxes in half precision, and zeros after the last one."""
    half = np.zeros(shape, HALF)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        half[: len(boxes)] = boxes
    if not np.isfinite(half).all():
        raise ValueError(f"{np.abs(boxes).max():g}, allowed: at most {np.finfo(HALF).max:g}")
    return half
