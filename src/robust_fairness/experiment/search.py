"""The stages of a search: what is drawn, how, and when a trial is given up."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Range(BaseModel):
    """Numbers between two bounds, both included; whole ones where both bounds are.

    ``log`` draws their logarithm evenly.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
        """Whether its numbers are whole."""
        return isinstance(self.low, int) and isinstance(self.high, int)


class Stage(BaseModel):
    """One stage of a search, around the best trial of the stage before.

    A mapping from fields to lists, without ``space``, is a grid.

    Attributes:
        space: the values of every field that is searched: a list, or a range where values are
            drawn.
        sampler: ``grid`` takes every combination in order; ``random`` draws each field by itself;
            ``tpe`` draws where earlier trials were good (tree-structured Parzen estimator,
            Bergstra et al. 2011).
        trials: how many are drawn; a grid has as many as it has combinations.
        at_once: trials that are drawn together and train together: all unless given, of ``tpe``
            four. Only what was told before can guide a draw.
        seed: of the draws. Each depends on it, on the field's name and on the trial's number
            alone, so that all methods are given the same values, and a further field changes none
            of the others (but for what ``tpe`` learns).
        pruner: ``median`` gives a trial up whose validation loss is above the median of the
            finished ones at the same epoch; ``successive_halving`` one that is not among the best
            half of those that came as far (Jamieson and Talwalkar 2016, in its asynchronous
            form).
        first_trials: trials that ``median`` lets finish before it compares.
        first_epochs: epochs that no trial is given up in.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    space: dict[str, tuple[Any, ...] | Range]
    sampler: Literal["grid", "random", "tpe"] = "grid"
    trials: int | None = Field(None, ge=1)
    at_once: int | None = Field(None, ge=1)
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
            told = f"a range of {ranges[0]}" if ranges else f"trials {self.trials}"
            raise ValueError(f"a grid with {told}, allowed: lists; or sampler random or tpe")
        if self.sampler != "grid" and not self.trials:
            raise ValueError(f"sampler {self.sampler} without trials, allowed: a number of them")
        return self

    @property
    def samples(self) -> list[dict[str, Any]]:
        """Overrides of one field that together show every value, or both ends of a range."""
        return [
            {name: value}
            for name, values in self.space.items()
            for value in ((values.low, values.high) if isinstance(values, Range) else values)
        ]
