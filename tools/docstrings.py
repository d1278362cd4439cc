"""Formulas of docstrings, as they are written: nothing on the site can typeset them."""

import re
from typing import Any

from griffe import Extension, Object

FORMULA = re.compile(
    r"^([ ]*)\.\. math::[ ]*(.*(?:\n(?:\1[ ]+\S.*|[ ]*(?=\n\1[ ]+\S)))*)", re.MULTILINE
)
INLINE = re.compile(r":(?:math|class|func|mod):`([^`]*)`")


class Formulas(Extension):
    """Makes blocks of code of formulas."""

    def on_object(self, *, obj: Object, **others: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring:
            text = FORMULA.sub(_block, obj.docstring.value)
            obj.docstring.value = INLINE.sub(r"`\1`", text)


def _block(match: re.Match[str]) -> str:
    lines = [line.strip() for line in match[2].splitlines()]
    text = "\n".join(f"{match[1]}{line}" for line in lines if line)
    return f"{match[1]}```text\n{text}\n{match[1]}```"
