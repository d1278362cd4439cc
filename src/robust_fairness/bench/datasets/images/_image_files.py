"""Images in a folder or a zip file, decoded to arrays of one size."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd
from PIL import Image, UnidentifiedImageError
from pydantic import BaseModel, PositiveInt, field_validator

from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import ZIP_DAMAGE, Files

JPEG = {".jpg": "JPEG"}
# formats of users' images, by suffix in lower case
COMMON = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}
CHANNELS = 3
AT_ONCE = 512  # images decoded before the next are read

Size = tuple[int, int]  # height, width
Crop = Size | Literal["square"] | None
Look = Callable[[int, np.ndarray], None]
MOST_PIXELS = 2**26  # of an image, 8,192 x 8,192
MOST_BYTES = 2**28  # of an image file


class ImageFileParameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of images that are read from files.

    Attributes:
        only_present: use the rows whose image is available; otherwise a missing image is an error.
        crop: what is cut out around the centre of an image: its largest square, a height and a
            width in pixels, or None for the whole image.
        size: height and width that it is resized to; a single number is both.
    """

    only_present: bool = False
    crop: Literal["square"] | tuple[PositiveInt, PositiveInt] | None = "square"
    size: tuple[PositiveInt, PositiveInt] = (128, 128)

    @field_validator("size", mode="before")
    @classmethod
    def _of_a_square(cls, size: object) -> object:
        return (size, size) if isinstance(size, int) else size


@dataclass(frozen=True)
class ImageSource:
    """Images of one place.

    Attributes:
        place: the folder, by its path below the data root.
        names: file names of the images.
        read: bytes of the image of a name.
        formats: Pillow's names of the formats that they may have, by suffix.
    """

    place: str
    names: set[str]
    read: Callable[[str], bytes]
    formats: Mapping[str, str]


def _folder(path: Path, place: str, formats: Mapping[str, str], depth: int) -> ImageSource:
    files = path.glob("/".join("*" * depth))
    names = {file.relative_to(path).as_posix() for file in files if file.suffix.lower() in formats}
    return ImageSource(place, names, lambda name: (path / name).read_bytes(), formats)


def _zip(
    archive: zipfile.ZipFile, place: str, formats: Mapping[str, str], depth: int
) -> ImageSource:
    members: dict[str, str] = {}
    for member in archive.namelist():
        path = PurePosixPath(member)
        name = "/".join(path.parts[-depth:])
        if path.suffix.lower() in formats and members.setdefault(name, member) != member:
            raise InputError(
                f"{archive.filename}: two images are named {name}; names must be unique"
            )

    def read(name: str) -> bytes:
        size = archive.getinfo(members[name]).file_size
        if size > MOST_BYTES:
            raise InputError(f"{size:,} bytes uncompressed, allowed: up to {MOST_BYTES:,}")
        return archive.read(members[name])

    return ImageSource(place, set(members), read, formats)


@contextmanager
def opened(
    files: Files, place: str, formats: Mapping[str, str] = MappingProxyType(JPEG), depth: int = 1
) -> Iterator[ImageSource]:
    """The images of a folder below the data root, or of the zip file of that name.

    Args:
        files: finds the folder.
        place: the folder, by its path below the data root.
        formats: Pillow's names of the formats that images may have, by suffix in lower case;
            files of other suffixes are ignored.
        depth: number of last parts of its path that name an image; 1 takes the files of the
            folder, 2 those of its folders (``person/person_0001.jpg``).
    """
    path, archive = files.root / place, files.root / f"{place}.zip"
    if path.is_dir():
        yield _folder(path, place, formats, depth)
    elif archive.is_file():
        try:
            content = zipfile.ZipFile(archive)
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(f"{archive}: not a readable zip file: {error}") from error
        with content:
            yield _zip(content, place, formats, depth)
    else:
        raise InputError(
            f"{place} is missing: looked for the folder {path} and for {archive}. "
            f"{files.remedy(place)}"
        )


def joined(sources: Mapping[str, ImageSource]) -> ImageSource:
    """Images of several places as one, each named by the key of its place and its name there."""
    formats = {suffix: kind for each in sources.values() for suffix, kind in each.formats.items()}
    names = {f"{key}/{name}" for key, each in sources.items() for name in each.names}

    def read(name: str) -> bytes:
        key, _, source_name = name.partition("/")
        return sources[key].read(source_name)

    return ImageSource(" + ".join(each.place for each in sources.values()), names, read, formats)


def present(
    names: pd.Index, source: ImageSource, annotations: str, parameters: ImageFileParameters
) -> np.ndarray:
    """Which of the images that a file of annotations names are available, bool ``[n]``.

    All must be, unless ``only_present`` is set.
    """
    there = names.isin(list(source.names))
    if not there.any():
        raise InputError(
            f"{annotations}: none of its {len(names)} images is among the {len(source.names)} of "
            f"{source.place}"
        )
    if not there.all() and not parameters.only_present:
        raise InputError(
            f"{source.place}: {(~there).sum()} images in {annotations} are missing, first "
            f"{names[~there][0]}; only_present: true uses the others"
        )
    return there


def with_images(
    table: pd.DataFrame, source: ImageSource, annotations: str, parameters: ImageFileParameters
) -> pd.DataFrame:
    """The rows, indexed by image, whose image is available; every image must have a row."""
    unknown = sorted(source.names - set(table.index))
    if unknown:
        raise InputError(
            f"{source.place}: {len(unknown)} images without a row in {annotations}, first "
            f"{unknown[0]}"
        )
    return table.loc[present(table.index, source, annotations, parameters)]


def decode(
    source: ImageSource,
    names: Sequence[str],
    parameters: ImageFileParameters,
    files: Files,
    look: Look | None = None,
) -> np.ndarray:
    """Images cropped around their centre and resized, uint8 ``[n, 3, height, width]`` RGB.

    The SHA-256 of the bytes of all image files, in order, is recorded in ``files``.

    Args:
        source: where they are.
        names: file names, in the order of the rows.
        parameters: crop and size.
        files: records the checksum.
        look: called with each block of uncropped images, in order: the first row, and uint8
            ``[block, 3, height, width]`` of one size.
    """
    images = np.empty((len(names), CHANNELS, *parameters.size), dtype=np.uint8)
    digest = hashlib.sha256()
    formats = tuple(dict.fromkeys(source.formats.values()))

    def fill(row: int, content: bytes) -> np.ndarray | None:
        with _naming(names[row], row, formats):
            whole = _decoded(content, parameters.crop, formats)
            images[row] = _channels_first(_cut(whole, parameters.size, parameters.crop))
            return None if look is None else _channels_first(whole)

    with ThreadPoolExecutor() as pool:  # Pillow decodes outside of Python's lock
        for start in range(0, len(names), AT_ONCE):
            rows = range(start, min(start + AT_ONCE, len(names)))
            contents = []
            for row in rows:
                with _naming(names[row], row, formats):
                    contents.append(source.read(names[row]))
                digest.update(contents[-1])
            wholes = list(pool.map(fill, rows, contents))  # which raises the first error
            if look is not None:
                look(start, _of_one_size([whole for whole in wholes if whole is not None], start))
    files.sources[source.place] = digest.hexdigest()
    return images


@contextmanager
def _naming(name: str, row: int, formats: tuple[str, ...]) -> Iterator[None]:
    """Make errors of reading and decoding name the image and its row."""
    try:
        yield
    except (*ZIP_DAMAGE, Image.DecompressionBombError, InputError) as error:
        # Pillow's own message of an unknown format has a memory address.
        unknown = f"no {' or '.join(formats)} file"
        reason = unknown if isinstance(error, UnidentifiedImageError) else error
        raise InputError(f"image {name} (row {row}): {reason}") from error


def _decoded(content: bytes, crop: Crop, formats: tuple[str, ...]) -> Image.Image:
    """One image, if it is as large as what is cut out of it."""
    with Image.open(BytesIO(content), formats=formats) as image:
        if image.mode.startswith(("I", "F")):  # conversion would cut these off at 255
            raise InputError(f"pixels of mode {image.mode}, allowed: 8 bits per channel")
        if image.width * image.height > MOST_PIXELS:
            raise InputError(
                f"{image.height} x {image.width} pixels, allowed: up to {MOST_PIXELS:,} in all"
            )
        _window(image.height, image.width, crop)
        return image.convert("RGB")


def _cut(whole: Image.Image, size: Size, crop: Crop) -> Image.Image:
    """What is cut out around the centre of an image, resized."""
    height, width = _window(whole.height, whole.width, crop)
    left, top = (whole.width - width) // 2, (whole.height - height) // 2
    cut = whole.crop((left, top, left + width, top + height))
    return cut.resize(size[::-1], Image.Resampling.BILINEAR)


def _channels_first(image: Image.Image) -> np.ndarray:
    """Pixels, uint8 ``[3, height, width]``."""
    return np.asarray(image).transpose(2, 0, 1)


def _of_one_size(wholes: list[np.ndarray], start: int) -> np.ndarray:
    """Images in one array, ``[n, 3, height, width]``; ``start`` is the row of the first."""
    first = wholes[0].shape[1:]
    for row, whole in enumerate(wholes, start):
        if whole.shape[1:] != first:
            raise InputError(
                f"image in row {row}: {' x '.join(map(str, whole.shape[1:]))} pixels, expected "
                f"{' x '.join(map(str, first))}, as in row {start}"
            )
    return np.stack(wholes)


def _window(height: int, width: int, crop: Crop) -> Size:
    """Height and width of what is cut out of an image."""
    if crop == "square":
        return min(height, width), min(height, width)
    rows, columns = crop or (height, width)
    if rows > height or columns > width:
        raise InputError(f"{height} x {width} pixels, smaller than the crop of {rows} x {columns}")
    return rows, columns
