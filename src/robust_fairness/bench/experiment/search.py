"""The stages of a search: what is drawn, how, and when a trial is pruned."""

from math import prod
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

MOST_TRIALS = 100_000  # of a stage


class Range(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Numbers between two bounds, both included; whole ones where both bounds are.

    ``log`` draws their logarithm evenly.
    """

    low: int | float
    high: int | float
    log: bool = False

    @model_validator(mode="after")
    def _bounds_fit(self) -> "Range":
        if not self.low < self.high:
            raise ValueError(f"low {self.low} and high {self.high}, allowed: low below high")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low} with log, allowed: above 0")
        return self

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


Values = Annotated[
    Annotated[tuple[Any, ...], Tag("list")] | Annotated[Range, Tag("range")],
    Discriminator(lambda values: "range" if isinstance(values, dict | Range) else "list"),
]


class Stage(BaseModel, extra="forbid", frozen=True):
    """One stage of a search, around the best trial of the stage before.

    A mapping from fields to lists, without ``space``, is a grid.

    Attributes:
        space: the values of every searched field: a list, or a range where values are drawn.
        sampler: ``grid`` takes every combination in order; ``random`` draws each field
            independently; ``tpe`` draws where earlier trials were good (tree-structured Parzen
            estimator, Bergstra et al. 2011).
        trials: number of drawn trials.
        at_once: number of trials that are drawn and trained together; by default all, with
            ``tpe`` four. Only finished trials guide a draw.
        seed: of the draws. A draw depends on it, the field's name and the trial's number only,
            so that all methods get the same values (but for what ``tpe`` learns).
        pruner: ``median`` prunes a trial whose validation loss is above the median of the
            finished trials at the same epoch; ``successive_halving`` one that is not in the best
            half of those that reached the epoch (asynchronous, Jamieson and Talwalkar 2016).
        first_trials: trials that ``median`` lets finish before it compares.
        first_epochs: epochs in which no trial is pruned.
    """

    space: dict[str, Values]
    sampler: Literal["grid", "random", "tpe"] = "grid"
    trials: int | None = Field(None, ge=1, le=MOST_TRIALS)
    at_once: int | None = Field(None, ge=1, le=MOST_TRIALS)
    seed: int = Field(0, ge=0)
    pruner: Literal["none", "median", "successive_halving"] = "none"
    first_trials: int = Field(4, ge=1)
    first_epochs: int = Field(5, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _lists_are_a_grid(cls, value: Any) -> Any:
        if isinstance(value, dict) and "space" not in value:
            return {"space": value}
        return value

    @model_validator(mode="after")
    def _sampler_fits(self) -> "Stage":
        empty = [name for name, values in self.space.items() if values == ()]
        if empty or not self.space:
            raise ValueError(
                f"no value of {', '.join(empty) or 'any field'}, allowed: at least one"
            )
        ranges = [name for name, values in self.space.items() if isinstance(values, Range)]
        if self.sampler == "grid" and (ranges or self.trials):
            result = f"a range of {ranges[0]}" if ranges else f"trials {self.trials}"
            raise ValueError(f"a grid with {result}, allowed: lists; or sampler random or tpe")
        if self.sampler != "grid" and not self.trials:
            raise ValueError(f"sampler {self.sampler} without trials, allowed: a number of them")
        if self.size > MOST_TRIALS:
            raise ValueError(f"a grid of {self.size:,} trials, allowed: up to {MOST_TRIALS:,}")
        return self

    @property
    def size(self) -> int:
        """Number of trials."""
        return self.trials or prod(len(tuple(values)) for values in self.space.values())

    @property
    def samples(self) -> list[dict[str, Any]]:
        """Overrides of one field that together show every value, or both ends of a range."""
        return [
            {name: value}
            for name, values in self.space.items()
            for value in ((values.low, values.high) if isinstance(values, Range) else values)
        ]
