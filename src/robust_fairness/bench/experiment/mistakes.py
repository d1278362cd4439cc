"""The mistakes of a configuration, collected so that they are reported together."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from robust_fairness.bench.experiment.plugins import OUTLINE, example, keys_of, message
from robust_fairness.bench.experiment.yaml_source import Node
from robust_fairness.core.errors import Collected, Mistake

Model = TypeVar("Model", bound=BaseModel)
# What is allowed, by the type of pydantic's error.
ALLOWED = {
    "dict_type": "names with fields", "model_type": "names with fields", "name_type": "a name",
    "list_type": "a list", "tuple_type": "a list",
}  # fmt: skip


class Mistakes(Collected):
    """Mistakes of the configuration with file and line.

    Attributes:
        fully: whether models are validated with their plug-ins.
    """

    def __init__(self, fully: bool) -> None:
        super().__init__()
        self.fully = fully
        self.noted: set[tuple[str, ...]] = set()

    def note(self, text: str, place: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(text, place, hint))

    def unknown(self, kind: str, name: str, of: str, place: str, allowed: Collection[str]) -> None:
        """Note a name that is not one of ``allowed``, with the nearest of them, or all."""
        near = get_close_matches(name, list(allowed), n=3, cutoff=0.65)
        hint = (
            f"Did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"Allowed: {', '.join(sorted(allowed)) or 'none'}."
        )
        self.note(f"Unknown {kind} {name!r}{f' for {of}' if of else ''}", place, hint)

    def validated(self, model: type[Model], written: object, of: str, node: Node) -> Model | None:
        """The model of a dictionary; None, and mistakes, where it is invalid."""
        context = None if self.fully else OUTLINE
        try:
            # not ``model_validate``, which raises an error without the fields' places
            result: Model = model.__pydantic_validator__.validate_python(written, context=context)
        except ValidationError as error:
            self._note(error, written, model, of, node)
            return None
        return result

    def _note(
        self, error: ValidationError, written: object, model: type[BaseModel], of: str, node: Node
    ) -> None:
        """Note all that is wrong with a node; a value that many cells share, once."""
        for item in error.errors(include_url=False):
            keys, kind, context = keys_of(item, written), item["type"], item.get("ctx", {})
            names, place = [str(key) for key in keys], node.place_of(keys)
            mistake = (*names, message(item), place)
            if place and mistake in self.noted:
                continue
            self.noted.add(mistake)
            if kind == "extra_forbidden" and len(names) == 1:
                self.unknown("field", names[0], of, place, model.model_fields)
            else:
                text, hint = message(item), context.get("hint", "")
                if kind in ALLOWED:
                    text = f"{item['input']!r:.80}, allowed: {ALLOWED[kind]}"
                if kind == "missing":
                    field = f"{{{names[-1]}: {names[-1].upper()}}}"
                    hint = f"An example: {example(model) if len(names) == 1 else field}."
                if kind == "tuple_type" and not isinstance(item["input"], dict | None):
                    key = f"{names[-1]}: " if isinstance(keys[-1], str) else ""
                    hint = f"Write `{key}[{item['input']}]`."
                field = " of ".join(filter(None, [".".join(names), of]))
                self.note(f"{field}: {text}", place, hint)
