"""The best expected accuracies on the questions of a world, from its parameters."""

from typing import NamedTuple

import numpy as np

from robust_fairness.bench.datasets.questions._scenes import (
    ASPECTS,
    COLOR,
    COLORS,
    EXIST,
    FAMILIES,
    VERIFY,
    WorldParameters,
    priors,
    yes_share,
)


class Accuracies(NamedTuple):
    """Of models that see image and question, or only one of the two."""

    both: float
    question: float
    image: float


def best_accuracies(world: WorldParameters) -> Accuracies:
    """Expected accuracies of the best guesses over all that can be drawn.

    Every family and every toy is asked about equally often. A question for a value is answered
    best by its most probable value, given the toy and, where the image is seen, what its box
    shows. The toys of an image are always shown correctly. From an image alone no answer is more
    probable than yes.
    """
    both, question = {EXIST: 1.0}, {EXIST: yes_share(world)}
    for aspect, probabilities in priors(world).items():
        seen = probabilities[:, :, None] * _channel(world, len(ASPECTS[aspect]))
        both[aspect] = float(seen.max(axis=1).sum(axis=-1).mean())
        question[aspect] = float(probabilities.max(axis=1).mean())
    both[VERIFY], question[VERIFY] = _verified(world)
    return Accuracies(
        float(np.mean(list(both.values()))),
        float(np.mean(list(question.values()))),
        yes_share(world) * 2 / len(FAMILIES),
    )


def _channel(world: WorldParameters, values: int) -> np.ndarray:
    """Probability that a value is shown as another, float64 ``[true, shown]``."""
    others = np.full((values, values), world.mistakes / (values - 1))
    np.fill_diagonal(others, 1 - world.mistakes)
    return others


def _verified(world: WorldParameters) -> tuple[float, float]:
    """Best accuracies on questions whether a toy has a color, with and without its image."""
    yes, colors = yes_share(world), len(COLORS)
    same = np.eye(colors)
    asked = np.stack([yes * same, (1 - yes) * (1 - same) / (colors - 1)])  # [answer, true, asked]
    joint = priors(world)[COLOR][:, None, :, None] * asked  # [toy, answer, true, asked]
    seen = np.einsum("tvca,cs->tvas", joint, _channel(world, colors))
    both = seen.max(axis=1).sum(axis=(-1, -2)).mean()
    return float(both), float(joint.sum(axis=2).max(axis=1).sum(axis=-1).mean())
