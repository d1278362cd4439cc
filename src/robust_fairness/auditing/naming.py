"""Names of options in messages: of the command line, or arguments of ``rf.audit``."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Arguments whose options of the command have other names.
COMMAND = {
    "y_true": "--target", "y_pred": "--prediction", "sensitive_features": "--attributes",
    "sample_weight": "--weight", "pos_label": "--positive", "neg_labels": "--negative",
    "types": "--category, --number", "control_features": "--control",
}  # fmt: skip
_of_command: ContextVar[bool] = ContextVar("of_command", default=False)


@contextmanager
def of_command() -> Iterator[None]:
    """Messages name the options of the command within the block."""
    token = _of_command.set(True)
    try:
        yield
    finally:
        _of_command.reset(token)


def option(name: str, value: str = "") -> str:
    """How an option is written, with its value in the syntax of Python.

    >>> option("pos_label"), option("prediction_is", "'score'")
    ('pos_label', "prediction_is='score'")
    >>> with of_command():
    ...     option("pos_label"), option("prediction_is", "'score'")
    ('--positive', '--prediction-is score')
    """
    if not _of_command.get():
        return f"{name}={value}" if value else name
    flag = COMMAND.get(name, f"--{name.replace('_', '-')}")
    plain = "" if value == "True" else value.strip("'")
    return f"{flag} {plain}".strip()


def bins_of(attribute: str, cuts: str) -> str:
    """How bins of an attribute are written: edges with commas, a number, or a unit of dates.

    >>> bins_of("age", "30,60"), bins_of("born", "year")
    ("bins={'age': [30, 60]}", "bins={'born': 'year'}")
    """
    if _of_command.get():
        return f"--bins '{attribute}={cuts}'"
    written = f"[{cuts.replace(',', ', ')}]" if "," in cuts else cuts
    return f"bins={{{attribute!r}: {written if cuts[0].isdigit() else repr(cuts)}}}"


def as_category(attribute: str) -> str:
    """How an attribute is declared a category."""
    types = f"types={{{attribute!r}: 'category'}}"
    return f"--category {attribute}" if _of_command.get() else types
