"""Random numbers of a stack of replicas."""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

PURPOSES = ("weights", "heads", "batches", "dropout", "augmentation", "mining", "target")


class Randomness:
    """Random numbers for a stack of replicas: one generator per seed.

    Replicas of the same seed (trials) see the same numbers, so that they differ by their
    hyperparameters only; and the numbers of a replica do not depend on its neighbours in the stack.

    Args:
        seeds: seed of every replica.
        purpose: one of ``PURPOSES``, whose streams are independent.
        device: where the numbers are drawn; the stream depends on it.
    """

    def __init__(
        self, seeds: Sequence[int], purpose: str, device: torch.device | str = "cpu"
    ) -> None:
        self.seeds = tuple(seeds)
        distinct = sorted(set(seeds))
        self.generators = []
        for seed in distinct:
            sequence = np.random.SeedSequence([seed, PURPOSES.index(purpose)])
            generator = torch.Generator(device)
            generator.manual_seed(int(sequence.generate_state(1, np.uint64)[0] >> 1))
            self.generators.append(generator)
        self._which = torch.tensor([distinct.index(seed) for seed in seeds], device=device)
        self.device = torch.device(device)

    def spread(self, draws: Sequence[Tensor]) -> Tensor:
        """The draw of every replica's seed, ``[replica, ...]``, from one draw per generator."""
        if len(self.seeds) == 1:  # no copy, which may take gigabytes
            return draws[0][None]
        return torch.stack(list(draws))[self._which]

    def integer(self) -> int:
        """A number below 2^63 from the generator of the first seed, to seed others."""
        first = self.generators[0]
        return int(torch.randint(2**62, (), generator=first, device=self.device))

    def integers(self, shape: Sequence[int], below: int) -> Tensor:
        """Uniform integers from 0 to below ``below``, int64 ``[replica, *shape]``."""
        size, device = tuple(shape), self.device
        return self.spread(
            [torch.randint(below, size, generator=g, device=device) for g in self.generators]
        )

    def uniform(self, shape: Sequence[int], bound: float) -> Tensor:
        """Uniform numbers in [-bound, bound), ``[replica, *shape]`` of the default dtype."""
        empty = (torch.empty(*shape, device=self.device) for _ in self.generators)
        pairs = zip(empty, self.generators, strict=True)
        return self.spread([item.uniform_(-bound, bound, generator=g) for item, g in pairs])

    def normal(self, shape: Sequence[int]) -> Tensor:
        """Standard normal numbers, ``[replica, *shape]`` of the default dtype."""
        return self.spread(
            [torch.randn(*shape, generator=g, device=self.device) for g in self.generators]
        )

    def bernoulli(self, shape: Sequence[int], probability: float) -> Tensor:
        """True with the given probability, bool ``[replica, *shape]``.

        Sixteen random bits decide each entry (four entries a draw, which is several times faster
        than torch's own): the probability is met to 1 / 65,536.
        """
        entries = prod(shape)
        bits = torch.empty(
            len(self.generators), -(-entries // 4), dtype=torch.int64, device=self.device
        )
        for row, generator in zip(bits, self.generators, strict=True):
            row.random_(-(2**63), None, generator=generator)
        below = round(probability * 2**16) - 2**15
        drawn = bits.view(torch.int16)[:, :entries] < below
        return drawn.view(-1, *shape)[self._which]

    def state(self) -> Tensor:
        """State of all generators, uint8 ``[seeds, bytes]``, for a checkpoint."""
        return torch.stack([generator.get_state() for generator in self.generators])

    def restore(self, state: Tensor) -> None:
        """Continue from ``state``."""
        for generator, item in zip(self.generators, state, strict=True):
            generator.set_state(item.cpu().clone())


class DropoutNoise:
    """Random numbers of layers for one batch: each layer draws once, so two passes share them."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._masks: dict[int, Tensor] = {}

    def dropped(self, layer: torch.nn.Module, x: Tensor, rate: float) -> Tensor:
        """Activations ``[replica, row, ...]`` times the mask of ``layer``: 0 or 1 / (1 - rate)."""
        if rate == 0:
            return x
        if id(layer) not in self._masks:
            kept = self._randomness.bernoulli(x.shape[1:], 1 - rate)
            self._masks[id(layer)] = kept.to(x.dtype).div_(1 - rate)
        return x * self._masks[id(layer)]

    def uniform(self, layer: torch.nn.Module, shape: Sequence[int]) -> Tensor:
        """Numbers in [0, 1) of ``layer``, ``[replica, *shape]`` of the default dtype."""
        if id(layer) not in self._masks:
            self._masks[id(layer)] = self._randomness.uniform(shape, 0.5) + 0.5
        return self._masks[id(layer)]
