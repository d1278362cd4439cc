"""A generator: a class-conditional decoder of latents, complete in one safetensors file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float, Int, UInt8
from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError
from safetensors.torch import save_file
from torch import Tensor

from robust_fairness.bench.compute.process import device_named, same_every_time
from robust_fairness.bench.compute.weight_files import require_fit, safetensors_of
from robust_fairness.bench.generation import edm, songunet, unet
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path

HEADER = "robust_fairness"
KIND = "generator"
# How files of torch.save, of pickle and of numpy begin. None of them is ever read.
FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x80": "a pickle", b"\x93NUMPY": "a numpy file"}
NETWORK = "those of its settings' network"  # the weights that are allowed
LONGEST_MESSAGE = 200  # letters of a library's own words
# Generators of this package (tools/digits_generator.py), by the name that replaces a file.
BUNDLED = {"digits": Path(__file__).with_name("digits.safetensors")}

Device = Literal["auto", "cpu", "cuda"]


def _architecture(network: object) -> str:
    """Which of the networks some parameters describe: those of UNet2DModel name none."""
    named = "architecture" in network if isinstance(network, Mapping) else None
    return "song" if named or isinstance(network, songunet.SongUNetParameters) else "unet"


Network = Annotated[
    Annotated[unet.UNetParameters, Tag("unet")]
    | Annotated[songunet.SongUNetParameters, Tag("song")],
    Discriminator(_architecture),
]


class GeneratorSettings(BaseModel, extra="forbid", frozen=True):
    """Everything about a generator except its weights."""

    classes: tuple[str, ...] = Field(min_length=1)
    shape: tuple[int, int, int]
    network: Network = unet.UNetParameters()
    preconditioning: edm.Preconditioning = edm.Preconditioning()
    sampler: edm.Sampler = edm.Sampler()

    def build(self, seed: int = 0) -> unet.Network | songunet.SongUNet:
        """The network with fresh weights."""
        channels, *size = self.shape
        arguments = channels, (size[0], size[1]), len(self.classes), seed
        if isinstance(self.network, songunet.SongUNetParameters):
            return songunet.build(self.network, *arguments)
        return unet.build(self.network, *arguments)


class Generator:
    """Decodes latents to images of a class, deterministically.

    Weights have the names of diffusers' UNet2DModel, or of ``songunet``; they are averages over
    the training.
    """

    def __init__(
        self, settings: GeneratorSettings, weights: Mapping[str, Tensor], device: Device = "auto"
    ) -> None:
        self.settings = settings
        self.device = device_named(device, "generator")
        self.weights = {
            name: weights[name].detach().to("cpu", torch.float32, copy=True).contiguous()
            for name in sorted(weights)
        }
        with torch.device("meta"):  # no memory is taken for what the settings declare
            network = settings.build()
        require_fit("generator", network.unet.state_dict(), self.weights, NETWORK)
        network.unet.load_state_dict(self.weights, assign=True)
        network = network.to(self.device, getattr(torch, settings.sampler.precision))
        network = network.eval().requires_grad_(False)
        called: Any = torch.compile(network) if settings.sampler.compiled else network
        self._denoiser = edm.Denoiser(called, settings.preconditioning)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.settings.classes

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.settings.shape

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over settings and weights: the same latents and labels, the same images."""
        described = _as_json(self.settings.model_dump(mode="json"))
        digest = hashlib.sha256(described.encode())
        for name, weight in self.weights.items():
            digest.update(f"{name} {tuple(weight.shape)}".encode())
            digest.update(weight.numpy().data)
        return digest.hexdigest()

    def decode(
        self, latents: Float[Tensor, "n c h w"], labels: Int[Tensor, " n"]
    ) -> UInt8[Tensor, "n c h w"]:
        """Images of latents at the scale of N(0, I), decoded in one batch.

        The last bits of an image may depend on the size of the batch, by which libraries choose
        their algorithms.
        """
        if latents.shape[1:] != self.shape:
            raise InputError(
                f"generator: latents of shape {tuple(latents.shape[1:])}, allowed: {self.shape}"
            )
        last = len(self.classes) - 1
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) <= last:
            raise InputError(
                f"generator: labels {int(labels.min())} to {int(labels.max())}, "
                f"allowed: 0 to {last}"
            )
        with torch.inference_mode(), same_every_time():
            images = edm.heun(
                self._denoiser,
                latents.to(self.device, torch.float32),
                labels.to(self.device),
                edm.schedule(self.settings.sampler),
            )
            if not images.isfinite().all():
                raise InputError("generator: its images are not finite; the weights are invalid")
            return edm.to_pixels(images).to(latents.device)

    def grid(self, columns: int, seed: int = 0) -> UInt8[Tensor, "classes columns c h w"]:
        """Some images of every class, from the same latents in every class."""
        draws = torch.Generator().manual_seed(seed)
        latents = torch.randn(columns, *self.shape, generator=draws)
        count = len(self.classes)
        labels = torch.arange(count).repeat_interleave(columns)
        images = self.decode(latents.repeat(count, 1, 1, 1), labels)
        return images.unflatten(0, (count, columns))

    def save(self, path: Path) -> None:
        """Write one safetensors file, see ``write``."""
        write(path, self.settings.model_dump(mode="json"), self.weights)


def load(path: Path, device: Device = "auto", classes: Sequence[str] | None = None) -> Generator:
    """Read a generator from its file, or one of ``BUNDLED``; nothing in it is ever executed."""
    path = BUNDLED.get(str(path), path)
    _require_safetensors(path)
    metadata, weights = safetensors_of(path)
    try:
        settings = GeneratorSettings.model_validate(written_settings(metadata, path))
    except ValidationError as error:
        result = error.errors(include_url=False)[0]
        where = ".".join(map(str, result["loc"])) or "settings"
        raise InputError(f"{path}: {where}: {result['msg']}"[:LONGEST_MESSAGE]) from None
    if classes is not None and settings.classes != tuple(classes):
        raise InputError(
            f"{path}: {len(settings.classes)} classes ({', '.join(settings.classes):.80}), "
            f"allowed: {len(classes)} ({', '.join(classes):.80})"
        )
    try:
        return Generator(settings, weights, device)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _require_safetensors(path: Path) -> None:
    """Raise an error for other kinds of files, by their first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; allowed: a safetensors file") from None
    for magic, kind in FOREIGN.items():
        # A safetensors file begins with the length of its header in eight bytes, then a brace.
        if start.startswith(magic) and start[8:] != b"{":
            raise InputError(
                f"{path}: {kind}, which could execute code, allowed: a safetensors file; "
                "published files are converted by robust-fairness convert-edm"
            )


def write(path: Path, settings: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Write one safetensors file: weights, and settings as JSON in its header."""
    with atomic_path(path) as temporary:
        save_file(dict(weights), temporary, metadata={HEADER: _as_json(settings)})


def _as_json(settings: Mapping[str, Any]) -> str:
    return json.dumps({"kind": KIND, **settings}, sort_keys=True)


def written_settings(metadata: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Settings in the header of a generator's file, not validated."""
    try:
        settings: dict[str, Any] = json.loads(metadata.get(HEADER, ""))
        kind = settings.pop("kind")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        kind = ""
    if kind != KIND:
        raise InputError(f"{path}: no settings of a generator in its header, allowed: a generator")
    return settings
