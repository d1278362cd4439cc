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
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap

from robust_fairness.compute.progress import progress
from robust_fairness.core.errors import InputError, first_line
from robust_fairness.core.files import LOCK, atomic_path, locked
from robust_fairness.samples.questions import COUNTS_FILE, FEATURES_FILE, Boxes

if TYPE_CHECKING:
    import h5py

INFO, FEATURES = "gqa_objects_info.json", "features"
ROW = ("idx", "index")  # the official name and, in its absence, the plain one
PROMISED = "objectsNum"
MOST_RATIO = 1000  # of an array to what a file keeps of it
MANIFEST_FILE, PROGRESS_FILE = "boxes.json", "progress.json"
FORMAT = 1  # of what is written; a change of it makes old maps unfit
HALF, COUNT = np.dtype("<f2"), np.dtype("<i2")
BLOCK_BYTES = 2**26  # of rows that are read at once; shapes no number
PIECES, PIECE_BYTES = 64, 2**16  # of a file above WHOLE bytes, that identify it
WHOLE = 2**26

logger = logging.getLogger(__name__)


def convert(features: Path, images: Sequence[str], boxes: int, target: Path) -> Boxes:
    """Features of the first ``boxes`` boxes of images, in half precision, in a folder of their own.

    What was converted before is returned at once; an interrupted conversion is resumed, to the
    same bytes. The folder's name is the hash of the request: images and their order, boxes, and
    the identity of the source files. It is complete when ``boxes.json`` exists. Folders may be
    deleted at any time, and so may the HDF5 files, all of them, once they are converted.

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
    if not any(path.is_file() for path in sources.values()):
        before = _of_deleted_sources(features / INFO, images, boxes, target)
        if before is not None:
            return before
    width = _width(sources, places, images)
    request = {
        "format": FORMAT,
        "boxes": boxes,
        "sources": {path.name: _identity(path) for path in (features / INFO, *sources.values())},
        "pictures": list(images),
    }
    name = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    shape = (len(images), boxes, width)
    conversion = _Conversion(sources, places, tuple(images), shape, target / name, request)
    try:
        with locked(conversion.folder / LOCK, inf):  # a conversion takes minutes
            return conversion.kept() or conversion.made()
    except OSError as error:
        raise InputError(
            f"{conversion.folder}: cannot be written ({error.strerror or error}); finished parts "
            "are kept, and the same command resumes"
        ) from error


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
    found = [_place(info, image, table[image]) for image in images]
    return _Places(*np.array(found, dtype=np.int64).T)


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
        found = ", ".join(f"{width} in {path.name}" for width, path in widths.items())
        raise InputError(f"{FEATURES}: widths differ between files ({found}); they must be equal")
    return next(iter(widths))


@contextmanager
def _opened(path: Path) -> Iterator["h5py.Dataset"]:
    """The features of a file, open."""
    import h5py

    if not path.is_file():
        raise InputError(f"{path}: is missing; all files that {INFO} names are needed")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise InputError(
            f"{path}: corrupted or truncated HDF5 file: {first_line(error)}"
        ) from error
    with file:
        _require_own(file, path)
        dataset = file.get(FEATURES)
        if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind != "f":
            raise InputError(f"{path}: must contain an array of real numbers named {FEATURES}")
        if dataset.ndim != 3 or 0 in dataset.shape:
            raise InputError(
                f"{path}: {FEATURES} of shape {dataset.shape}, expected image x box x number"
            )
        held = dataset.id.get_storage_size()
        if dataset.is_virtual or dataset.external or dataset.nbytes > MOST_RATIO * held:
            raise InputError(
                f"{path}: {FEATURES} declares {dataset.nbytes:,} bytes and the file has {held:,} "
                "of them, allowed: features that the file itself has"
            )
        yield dataset


def _require_own(file: Any, path: Path) -> None:
    """Require that the features are no link, which may lead to any file."""
    import h5py

    kind = file.get(FEATURES, getclass=True, getlink=True)
    if kind not in (None, h5py.HardLink):
        raise InputError(f"{path}: {FEATURES} is a link, allowed: an array of the file itself")


def _identity(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, of a large one also its modification time.

    The checksum of a large file is that of pieces that are spread over it evenly, its ends
    included: all of GQA's files would take minutes to read.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size <= WHOLE:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            return {"bytes": status.st_size, "sha256": sha256}
        digest = hashlib.sha256()
        for start in np.linspace(0, status.st_size - PIECE_BYTES, PIECES, dtype=np.int64):
            file.seek(int(start))
            digest.update(file.read(PIECE_BYTES))
    return {"bytes": status.st_size, "changed": status.st_mtime_ns, "sha256": digest.hexdigest()}


def _of_deleted_sources(
    info: Path, images: Sequence[str], boxes: int, target: Path
) -> Boxes | None:
    """What was converted of files that are gone, if only one map is of this request."""
    wanted = {"boxes": boxes, "pictures": list(images), "format": FORMAT}
    table = _identity(info)["sha256"]
    found = []
    for path in sorted(target.glob(f"*/{MANIFEST_FILE}")):
        manifest = _json(path)
        request = manifest.get("request", {})
        if wanted.items() <= request.items() and request["sources"][INFO]["sha256"] == table:
            shape = (len(images), boxes, manifest["shape"][2])
            if _fit(_arrays(path.parent, shape)):
                found.append(Boxes(str(path.parent), shape, manifest["sha256"]))
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class _Array:
    """A file of NumPy's format that is written row by row, in any order.

    It is written, not mapped: a full disk would kill a process that has mapped the file.
    """

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]

    def fits(self) -> bool:
        """Whether the file has an array of this type and shape."""
        try:
            found = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return False
        return (found.dtype, found.shape) == (self.dtype, self.shape)

    def begin(self) -> None:
        """Write the file with zeros, which take no space on most disks."""
        with atomic_path(self.path) as temporary:
            open_memmap(temporary, "w+", self.dtype, self.shape)

    def write(self, file: IO[bytes], row: int, numbers: np.ndarray) -> None:
        """Write one row to the open file."""
        content = numbers.astype(self.dtype, copy=False).tobytes()
        file.seek((row - self.shape[0]) * len(content), os.SEEK_END)
        file.write(content)


def _arrays(folder: Path, shape: tuple[int, int, int]) -> tuple[_Array, _Array]:
    return (
        _Array(folder / FEATURES_FILE, HALF, shape),
        _Array(folder / COUNTS_FILE, COUNT, shape[:1]),
    )


def _fit(arrays: Sequence[_Array]) -> bool:
    return all(array.fits() for array in arrays)


@dataclass(frozen=True)
class _Conversion:
    """One request, and how far it has come."""

    sources: Mapping[int, Path]  # by number
    places: _Places
    images: tuple[str, ...]
    shape: tuple[int, int, int]  # images, boxes, numbers of a box
    folder: Path
    request: Mapping[str, Any]  # of which the folder's name is the hash

    @property
    def arrays(self) -> tuple[_Array, _Array]:
        return _arrays(self.folder, self.shape)

    def kept(self) -> Boxes | None:
        """What was converted before, if it is whole."""
        manifest = _json(self.folder / MANIFEST_FILE)
        if manifest.get("request") != self.request or not _fit(self.arrays):
            return None
        return Boxes(str(self.folder), self.shape, manifest["sha256"])

    def made(self) -> Boxes:
        """Convert what is missing.

        Raises:
            InputError: a source is damaged, or holds what half precision cannot.
            OSError: something cannot be written.
        """
        (self.folder / MANIFEST_FILE).unlink(missing_ok=True)
        done = self._done()
        order = np.lexsort((self.places.row, self.places.file))
        total = len(order)
        for _ in progress(self._written(order, done), "features of boxes", total, done):
            pass
        self._warn()
        digest = hashlib.sha256()
        for array in self.arrays:
            with array.path.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        manifest = {"shape": self.shape, "sha256": digest.hexdigest(), "request": self.request}
        with atomic_path(self.folder / MANIFEST_FILE) as temporary:
            temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        (self.folder / PROGRESS_FILE).unlink(missing_ok=True)
        return Boxes(str(self.folder), self.shape, digest.hexdigest())

    def _done(self) -> int:
        """Number of images converted before; without any, the files are created."""
        done = _json(self.folder / PROGRESS_FILE).get("pictures")
        if type(done) is int and 0 <= done <= self.shape[0] and _fit(self.arrays):
            return done
        (self.folder / PROGRESS_FILE).unlink(missing_ok=True)  # before the arrays it counts
        for array in self.arrays:
            array.begin()
        return 0

    def _written(self, order: np.ndarray, done: int) -> Iterator[None]:
        """Convert block by block, in the order of the files; one step per image.

        A block is recorded as done after it is on the disk, so that a kill loses one at most.
        """
        features, counts = self.arrays
        with features.path.open("r+b") as features_file, counts.path.open("r+b") as counts_file:
            for block in self._blocks(order[done:]):
                for image, kept in self._converted(block):
                    row = np.zeros(self.shape[1:], dtype=HALF)
                    row[: len(kept)] = kept
                    features.write(features_file, image, row)
                    counts.write(counts_file, image, np.array(len(kept), dtype=COUNT))
                for file in (features_file, counts_file):
                    file.flush()
                    os.fsync(file.fileno())
                done += len(block)
                with atomic_path(self.folder / PROGRESS_FILE) as temporary:
                    temporary.write_text(json.dumps({"pictures": done}), encoding="utf-8")
                yield from (None for _ in block)

    def _blocks(self, order: np.ndarray) -> Iterator[np.ndarray]:
        """Images that are read at once: rows of one file that fit in ``BLOCK_BYTES``."""
        for number in np.unique(self.places.file[order]):
            here = order[self.places.file[order] == number]
            with _opened(self.sources[number]) as dataset:
                row_bytes = min(self.shape[1], dataset.shape[1]) * self.shape[2]
                span = max(1, BLOCK_BYTES // (row_bytes * dataset.dtype.itemsize))
                chunk = dataset.chunks[0] if dataset.chunks else 1
            # a chunk of the file is read once, if it is no larger than a block
            span -= span % chunk if span > chunk else 0
            cuts = np.flatnonzero(np.diff(self.places.row[here] // span)) + 1
            yield from np.split(here, cuts)

    def _converted(self, block: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Images of a block and their boxes, float16 ``[box, number]``."""
        path = self.sources[self.places.file[block[0]]]
        rows = self.places.row[block]
        for image, read in zip(block.tolist(), _read(path, rows, self.shape[1]), strict=True):
            promised = read[: self.places.promised[image]]
            filled = np.flatnonzero(promised.any(axis=1))
            kept = promised[: filled[-1] + 1] if len(filled) else promised[:0]
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                half = kept.astype(HALF)
            if not np.isfinite(half).all():
                wrong = kept[~np.isfinite(half)][0]
                raise InputError(
                    f"{path}, image {self.images[image]!r}, {FEATURES}: {wrong:g}, allowed: at "
                    f"most {np.finfo(HALF).max:g}, the largest number of half precision"
                )
            yield image, half

    def _warn(self) -> None:
        """Warn of images with fewer boxes than promised."""
        counts = np.load(self.folder / COUNTS_FILE, allow_pickle=False)
        fewer = counts < np.minimum(self.places.promised, self.shape[1])
        if fewer.any():
            logger.warning(
                "%s: %d of %d images end with boxes of zeros, which are excluded; the first is %s",
                self.folder,
                fewer.sum(),
                len(fewer),
                self.images[int(fewer.argmax())],
            )


def _json(path: Path) -> dict[str, Any]:
    """The object of a JSON file; an empty one where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path, rows: np.ndarray, boxes: int) -> np.ndarray:
    """The first boxes of sorted rows of a file, ``[row, box, number]``."""
    distinct, place = np.unique(rows, return_inverse=True)
    with _opened(path) as dataset:
        try:
            found: np.ndarray = dataset[distinct, :boxes]
        except (OSError, RuntimeError) as error:
            raise InputError(f"{path}: corrupted HDF5 file: {first_line(error)}") from error
    return found[place]
