"""A world of toys about whose images questions are asked.

Toys stand beside pieces of furniture; of every toy there is at most one in an image. Its color,
its material and what stands to its left are drawn independently, given the toy: so the answers
of a local group have a known distribution, from which the best possible accuracy follows.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

TOYS = ("ball", "boat", "car", "doll", "drum", "kite")
COLORS = ("black", "blue", "green", "red", "white", "yellow")
MATERIALS = ("metal", "paper", "plastic", "wood")
FURNITURE = ("bench", "chair", "desk", "shelf", "table")

# What is drawn of a toy, and the values it can have.
COLOR, MATERIAL, LEFT = "color", "material", "left"
ASPECTS = {COLOR: COLORS, MATERIAL: MATERIALS, LEFT: FURNITURE}
# What is asked: one of the aspects, or a question whose answer is yes or no.
VERIFY, EXIST = "verify", "exist"
FAMILIES = (*ASPECTS, VERIFY, EXIST)
YES, NO = "yes", "no"

PARTS = ("train", "val", "testdev")
FALL = 3  # the long tail: each value is this much rarer than the one before
WIDTH = len(TOYS) + len(FURNITURE) + sum(map(len, ASPECTS.values()))  # things that a box can show
PRIORS_STREAM = len(PARTS)  # draws of the parts have the streams before


class WorldParameters(BaseModel, extra="forbid", frozen=True):
    """Everything that a world is drawn from.

    Attributes:
        train_scenes: images of the training questions.
        questions: questions on every image.
        objects: toys in an image, each with a piece of furniture: twice as many boxes.
        features: width of the features of a box, at least 26: one for each thing that it can show.
        noise: standard deviation of what is added to the features, which are 1 where a box shows a
            thing and else 0; up to 0.1 it takes nothing from the best accuracy.
        mistakes: probability that a box shows another color, material or left neighbour than the
            true one, with equal probabilities.
        bias: how far values follow the long tail of their toy: 0 draws uniformly, 1 each three
            times as rare as the one before it.
        seed: of all draws.
    """

    train_scenes: PositiveInt = 400
    val_scenes: PositiveInt = 150
    test_scenes: PositiveInt = 200
    questions: PositiveInt = 8
    objects: Annotated[int, Field(ge=1, lt=len(TOYS))] = 3
    features: Annotated[int, Field(ge=WIDTH)] = 32
    noise: Annotated[float, Field(ge=0, le=0.1)] = 0.05
    mistakes: Annotated[float, Field(ge=0, le=0.5)] = 0.02
    bias: Annotated[float, Field(ge=0, le=1)] = 0.9
    seed: NonNegativeInt = 0

    @property
    def scenes(self) -> dict[str, int]:
        """Number of images of every part."""
        return dict(zip(PARTS, (self.train_scenes, self.val_scenes, self.test_scenes), strict=True))


@dataclass(frozen=True)
class Scenes:
    """Images of one part.

    Attributes:
        toys: places in ``TOYS``, int64 ``[n, 6]``: first those that are there, then the others.
        true: what the toys that are there are like, by aspect int64 ``[n, objects]``.
        shown: what their boxes show, by aspect int64 ``[n, objects]``.
    """

    toys: np.ndarray
    true: dict[str, np.ndarray]
    shown: dict[str, np.ndarray]


class Question(NamedTuple):
    """A question on one image.

    Attributes:
        scene: number of the image in its part.
        family: one of ``FAMILIES``.
        place: which toy of the image is asked about; -1 for one that is not there.
        toy: its name.
        color: the color that is asked about (``verify``), else "".
        answer: the true one.
        wording: which one of two.
    """

    scene: int
    family: str
    place: int
    toy: str
    color: str
    answer: str
    wording: int


def long_tail(values: int, bias: float) -> np.ndarray:
    """Probabilities from the most to the least frequent value, float64 ``[values]``."""
    tail = float(FALL) ** -np.arange(values)
    probabilities: np.ndarray = bias * tail / tail.sum() + (1 - bias) / values
    return probabilities


def priors(world: WorldParameters) -> dict[str, np.ndarray]:
    """Probabilities of the values of every aspect, float64 ``[toy, value]`` with rows of sum 1.

    Which value is common differs from toy to toy.
    """
    generator = np.random.default_rng([world.seed, PRIORS_STREAM])
    return {
        aspect: generator.permuted(
            np.tile(long_tail(len(values), world.bias), (len(TOYS), 1)), axis=1
        )
        for aspect, values in ASPECTS.items()
    }


def yes_share(world: WorldParameters) -> float:
    """Probability that the answer to a yes or no question is yes."""
    return float(long_tail(2, world.bias)[0])


def draw(world: WorldParameters, part: str) -> tuple[Scenes, list[Question]]:
    """Images of a part and the questions on them, in the order of the images."""
    generator = np.random.default_rng([world.seed, PARTS.index(part)])
    scenes = _scenes(world, world.scenes[part], generator)
    return scenes, _questions(world, scenes, generator)


def _scenes(world: WorldParameters, count: int, generator: np.random.Generator) -> Scenes:
    toys = generator.permuted(np.tile(np.arange(len(TOYS)), (count, 1)), axis=1)
    true, shown = {}, {}
    for aspect, probabilities in priors(world).items():
        values = probabilities.shape[1]
        limits = probabilities.cumsum(axis=1)[toys[:, : world.objects]]
        drawn = (generator.random((count, world.objects, 1)) > limits[..., :-1]).sum(axis=-1)
        wrong = generator.random(drawn.shape) < world.mistakes
        true[aspect] = drawn
        shown[aspect] = np.where(wrong, _other(drawn, values, generator), drawn)
    return Scenes(toys, true, shown)


def _other(drawn: np.ndarray, values: int, generator: np.random.Generator) -> np.ndarray:
    moved: np.ndarray = (drawn + generator.integers(1, values, drawn.shape)) % values
    return moved


def _questions(
    world: WorldParameters, scenes: Scenes, generator: np.random.Generator
) -> list[Question]:
    shape = (len(scenes.toys), world.questions)
    families = generator.integers(len(FAMILIES), size=shape)
    places = generator.integers(world.objects, size=shape)
    absent = generator.integers(world.objects, len(TOYS), size=shape)
    yes = generator.random(shape) < yes_share(world)
    wordings = generator.integers(2, size=shape)
    true = {
        aspect: np.take_along_axis(values, places, axis=1) for aspect, values in scenes.true.items()
    }
    asked = np.where(yes, true[COLOR], _other(true[COLOR], len(COLORS), generator))
    questions = []
    for row in np.ndindex(shape):
        family = FAMILIES[families[row]]
        place = -1 if family == EXIST and not yes[row] else int(places[row])
        toy = TOYS[scenes.toys[row[0], absent[row] if place < 0 else place]]
        color = COLORS[asked[row]] if family == VERIFY else ""
        answer = (YES if yes[row] else NO) if family in (VERIFY, EXIST) else ""
        answer = answer or ASPECTS[family][true[family][row]]
        questions.append(Question(row[0], family, place, toy, color, answer, int(wordings[row])))
    return questions
