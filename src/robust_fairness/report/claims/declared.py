"""Claims as the ``claims.yml`` of a paper declares them, see ``papers``."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, PositiveFloat, ValidationError, model_validator

from robust_fairness.bench.experiment.yaml_source import FASTER
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.claims import Says

PAPERS = (
    "equalized_robustness", "bias_mitigation", "kernel_fairness", "latent_shift",
    "fair_metric_learning",
)  # fmt: skip
Rows = Mapping[str, Any]


class Part(BaseModel, extra="forbid", frozen=True):
    """An effect that must be as a claim says; what it lacks is that of its claim."""

    part: str = ""
    rows: Rows = Field(default_factory=dict)
    first: Rows = Field(default_factory=dict)
    second: Rows = Field(default_factory=dict)
    expect: Says | None = None
    margin: PositiveFloat | Literal["half"] | None = None
    published: float | None = None
    std: float | None = None
    known_before: Literal["yes", "partly", "no"] | None = None

    @property
    def size(self) -> float:
        """The margin as a number."""
        return abs(self.published or 0) / 2 if self.margin == "half" else float(self.margin or 0)


class Claim(Part):
    """A claim of a paper; ``papers`` says what its fields are."""

    claim: str
    at: str
    effect: str
    known: str
    average: Literal["dataset"] | None = None
    note: str = ""
    cost: str = ""
    command: str = ""
    apart: str = ""
    parts: tuple[Part, ...] = ()
    default_run: tuple[Part, ...] = ()

    @model_validator(mode="after")
    def _decidable(self) -> "Claim":
        for part in [*self.each(), *(self.of_default_run().each() if self.default_run else ())]:
            named = f"part {part.part!r}" if part.part else "the claim"
            if part.expect is None:
                raise ValueError(f"{named} needs expect")
            if part.known_before is None:
                raise ValueError(f"{named} needs known_before")
            if not part.size > 0:
                raise ValueError(f"{named} needs a margin, or half of a published effect")
        for parts in (self.parts, self.default_run):
            if len({part.part for part in parts}) < len(parts):
                raise ValueError("two parts have the same name")
        return self

    def of_default_run(self) -> "Claim":
        """The claim with the parts that the default run answers instead of its own."""
        return self.model_copy(update={"parts": self.default_run})

    def each(self) -> list[Part]:
        """Its parts, or itself as one, with all fields of both."""
        shared = {name: getattr(self, name) for name in Part.model_fields}
        result = []
        for part in self.parts or (Part(),):
            given = {name: getattr(part, name) for name in part.model_fields_set}
            sides = {
                name: {**shared[name], **given.get(name, {})}
                for name in ("rows", "first", "second")
            }
            result.append(Part.model_construct(**{**shared, **given, **sides}))
        return result


def read(text: str, place: str = "claims.yml") -> tuple[Claim, ...]:
    """The claims of a file.

    Raises:
        InputError: a claim has a mistake; the message names the file, the claim and the field.
    """
    claims = []
    for number, fields in enumerate(yaml.load(text, FASTER) or (), 1):  # a safe loader
        try:
            claims.append(Claim.model_validate(fields))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "fields"
            name = fields.get("claim", number) if isinstance(fields, dict) else number
            says = first["msg"].removeprefix("Value error, ")
            raise InputError(f"{place}: claim {name!r}, {field}: {says}") from None
    return tuple(claims)


@cache
def written() -> dict[str, tuple[Claim, ...]]:
    """All claims of the five papers, those that are listed apart among them."""
    folder = files("robust_fairness.papers")
    return {
        paper: read((folder / paper / "claims.yml").read_text(encoding="utf-8"), paper)
        for paper in PAPERS
    }


@cache
def listed() -> dict[str, tuple[Claim, ...]]:
    """The claims of the five papers that can fail."""
    return {
        paper: tuple(claim for claim in claims if not claim.apart)
        for paper, claims in written().items()
    }
