"""Images of a family in chunks on disk: resumable, and the same whatever was made before.

A network's numbers may depend on the size of a batch, on the place in it and on the rows beside.
So the network is always given the same batches: number b holds the rows at places
``b * batch`` to ``(b + 1) * batch - 1`` of the family, all of them, whether they are asked for or
not. There is a row at every place, so that no batch has to be filled up with anything else.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

import robust_fairness
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path
from robust_fairness.core.progress import progress
from robust_fairness.generation.families import Family

# The code that decides latents and labels; a change of it makes old chunks unfit.
SOURCES = ("core/draws.py", "generation/*.py", "shifts/*.py")


@runtime_checkable
class Decoder(Protocol):
    """A generator, as far as chunks know it."""

    @property
    def classes(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def shape(self) -> tuple[int, int, int]: ...  # noqa: D102

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Images, uint8 ``[n, *shape]``, of float32 ``[n, *shape]`` and int64 ``[n]``."""


def require_sizes(batch: int, chunk: int) -> None:
    """Check the numbers of rows of a batch and of a chunk."""
    if batch < 1:
        raise InputError(f"batch: {batch} rows, allowed: 1 and more")
    if chunk < 1 or chunk % batch:
        raise InputError(f"chunk: {chunk} places, allowed: a multiple of the batch ({batch})")


@dataclass(frozen=True)
class Chunks:
    """The images at some places of a family, made when asked for and kept on disk.

    Attributes:
        decoder: makes images of latents and labels.
        family: which latents and labels.
        root: folder of all sets of chunks; each has a folder of its own, named by the hash of
            everything that shapes its numbers.
        batch: rows that the decoder is given at once; it shapes the numbers.
        chunk: places of a file, a multiple of ``batch``; it bounds the memory and how much work
            an interruption costs, and shapes no number.
        device: name of the device and of the numbers' type that the decoder works in, such as
            ``cpu float32``; it stands in the hash, since others round otherwise.
    """

    decoder: Decoder = field(repr=False)
    family: Family
    root: Path
    batch: int = 64
    chunk: int = 1024
    device: str = "cpu float32"

    def __post_init__(self) -> None:
        """Check the sizes."""
        require_sizes(self.batch, self.chunk)

    @cached_property
    def content(self) -> str:
        """SHA-256 of everything that shapes the numbers: what the set's folder is called."""
        described = {
            "generator": self.decoder.fingerprint,
            "classes": self.decoder.classes,
            "shape": self.decoder.shape,
            "family": self.family.described(),
            "batch": self.batch,
            "device": self.device,
            "dtype": "uint8",
            "numpy": np.__version__,
            "torch": torch.__version__,
        }
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        package = Path(robust_fairness.__file__).parent
        for source in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
            digest.update(source.read_bytes())
        return digest.hexdigest()

    @property
    def folder(self) -> Path:
        """Where the chunks of this set lie."""
        return self.root / self.content

    def images(self, places: np.ndarray) -> np.ndarray:
        """Images at some places of the family, in the order asked for; missing ones are made.

        Args:
            places: int64 ``[n]``, in any order, also repeated. A batch of which one row is
                asked for is decoded as a whole: ranges are cheap, scattered places are not.

        Returns:
            uint8 ``[n, channels, height, width]``.
        """
        self.make(places)
        found = np.empty((len(places), *self.decoder.shape), dtype=np.uint8)
        for number in np.unique(places // self.chunk).tolist():
            rows = np.flatnonzero(places // self.chunk == number)
            with self._opened(number) as file:
                kept = file.get_tensor("places")
                found[rows] = file.get_tensor("images")[np.searchsorted(kept, places[rows])]
        return found

    def labels(self, places: np.ndarray) -> np.ndarray:
        """Labels at some places of the family, int64 ``[n]`` both; nothing is decoded."""
        return self.family.labels(places, len(self.decoder.classes))

    def make(self, places: np.ndarray) -> None:
        """Make the images at some places that are not on disk yet, chunk by chunk.

        A chunk is written when it is complete, and stays whatever happens to later ones.
        """
        if places.min(initial=0) < 0:
            raise InputError(f"places: {places.min()}, allowed: 0 and larger")
        missing = self._missing(places)
        batches = sum(len(np.unique(wanted // self.batch)) for wanted in missing.values())
        asked = len(np.unique(places // self.batch))
        description = f"{self.family.shift} {self.family.severity:g}"
        for _ in progress(self._made(missing), description, max(asked, batches), asked - batches):
            pass

    def drop(self) -> None:
        """Delete the set from the disk, once its images are kept elsewhere."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        """File of a chunk; files of other chunk sizes have other names."""
        return self.folder / f"{number * self.chunk}+{self.chunk}.safetensors"

    def _missing(self, places: np.ndarray) -> dict[int, np.ndarray]:
        """Places that chunks will have to hold, sorted, of those that lack one asked for."""
        missing = {}
        for number in np.unique(places // self.chunk).tolist():
            asked = np.unique(places[places // self.chunk == number])
            kept = asked[:0]
            if self._path(number).exists():
                with self._opened(number) as file:
                    kept = file.get_tensor("places")
            if not np.isin(asked, kept).all():
                missing[number] = np.union1d(asked, kept)
        return missing

    def _made(self, missing: dict[int, np.ndarray]) -> Iterator[None]:
        """Decode batch by batch and write chunk by chunk; one step a batch."""
        for number, wanted in missing.items():
            images = np.empty((len(wanted), *self.decoder.shape), dtype=np.uint8)
            for batch in np.unique(wanted // self.batch).tolist():
                rows = wanted // self.batch == batch
                images[rows] = self._decoded(batch)[wanted[rows] % self.batch]
                yield
            self._write(number, wanted, images)

    def _decoded(self, batch: int) -> np.ndarray:
        """All images of a batch of the family, uint8 ``[batch, channels, height, width]``."""
        shape = self.decoder.shape
        places = np.arange(batch * self.batch, (batch + 1) * self.batch)
        latents = self.family.latents(places, prod(shape)).reshape(-1, *shape)
        decoded = self.decoder.decode(
            torch.from_numpy(latents), torch.from_numpy(self.labels(places))
        )
        if decoded.dtype != torch.uint8 or decoded.shape != latents.shape:
            raise InputError(
                f"generator: decoded to {decoded.dtype} {tuple(decoded.shape)}, "
                f"allowed: torch.uint8 {latents.shape}"
            )
        return decoded.cpu().numpy()

    def _write(self, number: int, places: np.ndarray, images: np.ndarray) -> None:
        path = self._path(number)
        try:
            with atomic_path(path) as aside:
                arrays = {"places": places, "images": images}
                save_file(arrays, aside, metadata={"content": self.content})
        except (OSError, SafetensorError) as error:
            first = str(error).splitlines()[0]
            raise InputError(
                f"{path}: chunk not written ({first}); finished chunks are kept, "
                "the same work goes on from there"
            ) from error

    def _opened(self, number: int) -> safe_open:
        """An open chunk."""
        path = self._path(number)
        try:
            file = safe_open(path, framework="np")
            content = (file.metadata() or {}).get("content")
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path}: corrupted chunk ({error}); delete it") from error
        if content != self.content:
            raise InputError(f"{path}: chunk of another set; delete it")
        return file
