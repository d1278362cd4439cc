"""Plug-ins by name with their own parameters, as configuration writes them."""

from functools import cached_property
from typing import Any, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ValidationError,
    model_serializer,
)
from pydantic_core import ErrorDetails

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import MOST_COUNT

# Validation context under which plug-ins are not imported: names and structure only.
OUTLINE = {"outline": True}


def is_outline(info: Any) -> bool:
    """Whether a model is validated without importing its plug-ins."""
    return info.context is not None and "outline" in info.context


class Settings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Base class of the models of configuration: frozen, without unknown fields."""

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise InputError(one_line(error, obj, example(cls))) from None


def one_line(error: ValidationError, written: Any, complete: str = "") -> str:
    """All errors of pydantic in one line: field, what is wrong, and its value.

    Where a field is missing, ``complete`` is an example with all that are required.
    """
    errors = error.errors(include_url=False)
    parts = [
        f"{'.'.join(map(str, keys_of(match, written))) or 'parameters'}: {message(match)}"
        for match in errors
    ]
    if complete and any(match["type"] == "missing" for match in errors):
        parts.append(f"an example: {complete}")
    return "; ".join(parts)


def example(model: type[BaseModel], **given: str) -> str:
    """The required fields of a model, with places for their values, after those that are given.

    >>> class GroupMix(BaseModel):
    ...     attribute: str
    ...     groups: tuple[str, ...]
    ...     seed: int = 0
    >>> example(GroupMix, name="group_mix")
    '{name: group_mix, attribute: ATTRIBUTE, groups: [GROUPS]}'
    """
    required = {
        name: f"[{name.upper()}]" if get_origin(field.annotation) in (list, tuple) else name.upper()
        for name, field in model.model_fields.items()
        if field.is_required()
    }
    return f"{{{', '.join(f'{name}: {value}' for name, value in (given | required).items())}}}"


def keys_of(error: ErrorDetails, written: Any) -> list[Any]:
    """The keys to the value of an error of pydantic, without its names of the kinds of a union."""
    keys = []
    for key in error["loc"]:
        values = dict(enumerate(written)) if isinstance(written, list | tuple) else written
        if isinstance(values, dict) and key in values:
            written = values[key]
            keys.append(key)
    return [*keys, error["loc"][-1]] if error["type"] == "missing" else keys


def message(error: ErrorDetails) -> str:
    """What is wrong, of one error of pydantic, and the value unless it is the whole model."""
    text = error["msg"].removeprefix("Value error, ")
    return text if isinstance(error["input"], dict) else f"{text} (got {error['input']!r:.80})"


def validated(kind: str, name: str, parameters: type[BaseModel], options: dict[str, Any]) -> Any:
    """Parameters of a plug-in; errors name it."""
    try:
        made = parameters.model_validate(options)
    except ValidationError as error:
        complete = example(parameters, name=name)
        raise InputError(f"{kind} {name}: {one_line(error, options, complete)}") from None
    for field in made.model_fields_set:
        value = getattr(made, field)
        if isinstance(value, int) and not field.endswith("seed") and value > MOST_COUNT:
            raise InputError(f"{kind} {name}: {field}: {value}, allowed: up to {MOST_COUNT:,}")
    return made


class Named(BaseModel, frozen=True):
    """A plug-in by name."""

    kind: str
    name: str
    options: dict[str, Any] = {}

    @cached_property
    def parameters(self) -> Any:
        """Its parameters, of its class ``Parameters``."""
        plugin = registry.find(self.kind, self.name)
        return validated(self.kind, self.name, plugin.Parameters, self.options)

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        """Name and all parameters: ``{name: cuma, alpha: 1}``."""
        return {"name": self.name, **self.parameters.model_dump()}


def named(kind: str) -> BeforeValidator:
    """Validator of ``{name: cuma, alpha: 1}``, or a name alone, as a ``Named`` of a kind."""

    def resolved(value: Any, info: Any) -> Named:
        options = dict(value) if isinstance(value, dict) else {"name": value}
        result = value
        if not isinstance(value, Named):
            result = Named(kind=kind, name=str(options.pop("name", "")), options=options)
        if not is_outline(info):
            result.parameters  # noqa: B018 - raises where they are invalid
        return result

    return BeforeValidator(resolved)
