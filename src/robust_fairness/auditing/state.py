"""The file of a monitor: counts as JSON, with a version and a checksum."""

import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import checksum
from robust_fairness.numbers.counts import TWO

VERSION = 1
FORMAT = "robust-fairness monitor"
Count = Annotated[int, Field(ge=0, lt=2**53)]
Table = Annotated[list[Count], Field(min_length=TWO * TWO, max_length=TWO * TWO)]


class State(BaseModel, extra="forbid", strict=True):
    """What the file of a monitor holds: a table of rows by attribute, group and period."""

    format: str
    version: int
    about: dict[str, str]
    kind: str
    periods: list[str]
    reference: int
    counts: dict[str, dict[str, list[Table]]]

    @model_validator(mode="after")
    def _require_periods(self) -> Self:
        number = len({*self.periods})
        tables = [rows for groups in self.counts.values() for rows in groups.values()]
        if not self.reference >= 1 or number != len(self.periods) or not number:
            raise ValueError("periods: allowed: one or more, each once")
        if any(len(rows) != number for rows in tables):
            raise ValueError("counts: allowed: a table per period")
        return self


def written(**fields: Any) -> str:
    """The text of a state with these fields of ``State``."""
    content = {"format": FORMAT, "version": VERSION, **fields}
    return json.dumps(content | {"checksum": checksum(content)}) + "\n"


def read(text: str | bytes, place: str) -> State:
    """The state that ``written`` wrote.

    Raises:
        InputError: it is no state, of another version, or was changed.
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise KeyError("format")
        if content["version"] != VERSION:
            raise InputError(
                f"{place}: state of version {content['version']}, allowed: {VERSION}; make it "
                "again from the tables"
            )
        if content.pop("checksum") != checksum(content):
            raise InputError(
                f"{place}: was changed since it was written; restore it, or make it again from "
                "the tables"
            )
        return State.model_validate(content)
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise InputError(f"{place}: is no state of a monitor") from None
