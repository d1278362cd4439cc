"""Images of a family in chunks on disk: resumable, and independent of what was decoded before.

The last bits of a network's outputs may depend on the size and the rows of a batch. So the network
always gets the same batches: number b has the rows at places ``b * batch`` to
``(b + 1) * batch - 1`` of the family, all of them, whether they are requested or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.compute.process import progress
from robust_fairness.bench.generation.families import Family
from robust_fairness.core.errors import InputError, first_line


@runtime_checkable
class Decoder(Protocol):
    """The part of a generator that chunks use."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def device(self) -> torch.device: ...

    def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Images, uint8 ``[n, *shape]``, of float32 ``[n, *shape]`` and int64 ``[n]``."""


@dataclass(frozen=True)
class Chunks:
    """The images at some places of a family, decoded on request and kept on disk.

    Attributes:
        root: folder of all sets of chunks; each has a folder named by the hash of everything that
            determines its numbers.
        batch: rows that the decoder gets together; it affects the numbers.
        chunk: places of a file, a multiple of ``batch``; it bounds the memory and the work that
            an interruption costs, and affects no number.
        device: name of the device and of the decoder's number type, such as ``cpu float32``,
            part of the hash.
    """

    decoder: Decoder = field(repr=False)
    family: Family
    root: Path
    batch: int = 64
    chunk: int = 1024
    device: str = "cpu float32"

    @cached_property
    def content(self) -> str:
        """SHA-256 of everything that determines the numbers, the name of the set's folder."""
        described = {
            "generator": self.decoder.fingerprint,
            "classes": self.decoder.classes,
            "shape": self.decoder.shape,
            "family": self.family.described(),
            "batch": self.batch,
            "device": self.device,
        }
        return checkpoints.key({}, described)

    @property
    def folder(self) -> Path:
        return self.root / self.content

    def images(self, places: np.ndarray) -> np.ndarray:
        """Images at some places of the family, in the same order; missing ones are decoded.

        Args:
            places: int64 ``[n]``, in any order, also repeated. Batches are decoded as a whole, so
                ranges cost less than scattered places.

        Returns:
            uint8 ``[n, channels, height, width]``.
        """
        self.make(places)
        result = np.empty((len(places), *self.decoder.shape), dtype=np.uint8)
        for number in np.unique(places // self.chunk).tolist():
            rows = np.flatnonzero(places // self.chunk == number)
            kept, images = self._kept(number)
            result[rows] = images[np.searchsorted(kept, places[rows])]
        return result

    def labels(self, places: np.ndarray) -> np.ndarray:
        """Labels at some places of the family, int64 ``[n]`` both; nothing is decoded."""
        return self.family.labels(places, len(self.decoder.classes))

    def make(self, places: np.ndarray) -> None:
        """Decode the images at some places that are not on disk yet, chunk by chunk.

        A chunk is written when it is complete, and kept if a later one fails.
        """
        if places.min(initial=0) < 0:
            raise InputError(f"places: {places.min()}, allowed: 0 or more")
        missing = self._missing(places)
        batches = sum(len(np.unique(wanted // self.batch)) for wanted in missing.values())
        asked = len(np.unique(places // self.batch))
        description = f"{self.family.shift} {self.family.severity:g}"
        for _ in progress(self._made(missing), description, max(asked, batches), asked - batches):
            pass

    def _path(self, number: int) -> Path:
        """File of a chunk; files of other chunk sizes have other names."""
        return self.folder / f"{number * self.chunk}+{self.chunk}.safetensors"

    def _missing(self, places: np.ndarray) -> dict[int, np.ndarray]:
        """Sorted places of the chunks that have to be written, by number of the chunk."""
        missing = {}
        for number in np.unique(places // self.chunk).tolist():
            asked = np.unique(places[places // self.chunk == number])
            kept, _ = self._kept(number)
            if not np.isin(asked, kept).all():
                missing[number] = np.union1d(asked, kept)
        return missing

    def _made(self, missing: dict[int, np.ndarray]) -> Iterator[None]:
        """Decode batch by batch and write chunk by chunk; yields after each batch."""
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
        chunk = {"places": torch.from_numpy(places), "images": torch.from_numpy(images)}
        try:
            checkpoints.write(path, self.content, chunk)
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{path}: chunk not written ({first_line(error)}); finished chunks are kept, "
                "and the next attempt continues from there"
            ) from error

    def _kept(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Places and images of a chunk on disk; none of a missing or damaged one."""
        chunk = checkpoints.read(self._path(number), self.content)
        if chunk is None:
            return np.zeros(0, np.int64), np.zeros((0, *self.decoder.shape), np.uint8)
        return chunk["places"].numpy(), chunk["images"].numpy()
