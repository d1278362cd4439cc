"""``rf.audit``: the audit of a table of predictions, as a notebook shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pandas.api.types import is_integer, is_number, is_scalar

from robust_fairness.auditing.audit import Audit, audited_tables
from robust_fairness.auditing.predictions import Options
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.extras import needed_by
from robust_fairness.core.frames import as_pandas, rows_of, with_column, with_columns
from robust_fairness.numbers.metrics import Metric
from robust_fairness.numbers.quantities import DEFINITIONS

COLUMNS = (
    "y_true", "y_pred", "sensitive_features", "control_features", "sample_weight", "unit",
)  # fmt: skip
FURTHER = {
    field.name: field for field in fields(Options) if field.name not in (*COLUMNS, "functions")
}
KINDS = get_type_hints(Options)


def audit(
    frame: Any = None,
    *,
    y_pred: Any,
    sensitive_features: Any,
    y_true: Any = None,
    sample_weight: Any = None,
    unit: Any = None,
    control_features: Any = (),
    reference: Any = None,
    name: str = "table",
    **options: Any,
) -> Audit:
    """Audit predictions: rates and gaps of every group with 95 % intervals; deterministic.

    Args:
        frame: a data frame of pandas, polars or Arrow with a row per prediction; not needed where
            the other arguments are values rather than names of columns.
        y_pred: name of a column, or one value per row; or the columns of the probabilities of the
            classes, named after them.
        sensitive_features: names of columns, a frame, columns by name, or one label per row.
        y_true: name of a column, or one value per row; None: only what needs no labels is scored.
        sample_weight: likewise, weights.
        unit: likewise, units whose rows are not independent, such as households.
        control_features: as sensitive features, strata within which gaps are compared too.
        reference: a frame of earlier predictions with the same columns, to compare with.
        name: name of the table, for the page and for messages.
        **options: further fields of ``robust_fairness.auditing.Options``, such as ``metrics``,
            ``pos_label``, ``threshold``, ``bins`` or ``intersections``. ``metrics`` are names,
            functions ``f(y_true, y_pred)`` with or without ``sample_weight``, or both in a list;
            or functions by name. Classes are numbers there, of two the positive one 1.

    Raises:
        InputError: a column or option does not exist, is constant or has values that do not fit,
            values have a pandas index in another order than the frame, or both frames do not have
            the same classes and kinds of columns.
    """
    options = {option: _allowed(option, value) for option, value in options.items()}
    named = frame is not None
    if not named:
        for role, values in {"y_true": y_true, "y_pred": y_pred}.items():
            if isinstance(values, str):
                raise InputError(f"{role}: {values!r} is the name of a column, which needs a table")
        frame = {"y_pred": y_pred}
    table = as_pandas(frame)
    rows = {"table": rows_of(frame, table)}
    several = isinstance(y_pred, Sequence) and not isinstance(y_pred, str) and len(y_pred) > 0
    if not several or any(not isinstance(name, str) or name not in table for name in y_pred):
        table, y_pred = with_column(table, "y_pred", y_pred, rows)
    columns: dict[str, Any] = {"y_true": y_true, "sample_weight": sample_weight, "unit": unit}
    for role, values in columns.items():
        if values is not None:
            table, columns[role] = with_column(table, role, values, rows)
    table, attributes = with_columns(table, "sensitive_features", sensitive_features, rows, named)
    table, strata = with_columns(table, "control_features", control_features, rows)
    columns["control_features"] = strata
    if "metrics" in options:
        options |= _metrics(options["metrics"])
    chosen = Options(y_pred=y_pred, sensitive_features=attributes, **columns, **options)
    if reference is None and chosen.features:
        raise InputError("features: why values changed needs a reference")
    earlier = None if reference is None else as_pandas(reference)
    done = audited_tables(table, chosen, name, earlier, "reference")
    if not chosen.features:
        return done
    with needed_by("features", "features"):
        from robust_fairness.auditing.why.periods import explained
    return explained(done)


def _allowed(option: str, value: Any) -> Any:
    """The value of an option: of its type, texts as text, a single one of several in a tuple."""
    if option not in FURTHER:
        raise InputError(f"audit: {unknown_name('option', option, FURTHER)}")
    kind = KINDS[option]
    of, *others = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if value is None and type(None) in others:
        return None
    if get_origin(of) is Literal and value not in get_args(of):
        raise InputError(f"{option}: {value!r}, allowed: {', '.join(map(str, get_args(of)))}")
    if of is bool and not isinstance(value, bool | np.bool_):
        raise InputError(f"{option}: {value!r}, allowed: True, False")
    if of is int and not (is_integer(value) and value >= 0):
        raise InputError(f"{option}: {value!r}, allowed: a whole number from 0 on")
    if of is float and not is_number(value):
        raise InputError(f"{option}: {value!r}, allowed: a number")
    if of is str:
        return str(value)
    if of == Sequence[str] and option != "metrics":
        return tuple(map(str, [value] if is_scalar(value) else value))
    return value


def _metrics(metrics: Any) -> dict[str, Any]:
    """Names of metrics, and functions by name, of what a user gives as ``metrics``."""
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        named = dict(metrics)
    else:
        try:
            named = {_name(metric): metric for metric in metrics}
        except TypeError:
            raise InputError(
                f"metrics: {metrics!r}, allowed: names of metrics, functions of y_true and y_pred, "
                "or both in a list or by name"
            ) from None
    functions = {
        name: metric for name, metric in named.items() if callable(metric) and not _is_ours(metric)
    }
    ours = [metric for name, metric in named.items() if name not in functions]
    names = [getattr(metric, "__name__", metric) for metric in ours]
    return {"metrics": names, "functions": functions}


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    if not callable(metric):
        raise InputError(
            f"metrics: {metric!r}, allowed: a name of a metric or a function of y_true and y_pred"
        )
    return str(getattr(metric, "__name__", type(metric).__name__))


def _is_ours(function: Any) -> bool:
    """Whether a function is a metric of this package or of a plug-in."""
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", "") == Metric.__module__:
        return True
    return name in DEFINITIONS and DEFINITIONS[name].function is function


# The signature that ``help`` and editors show has the further options by name.
_plain = signature(audit)
_named = [
    Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default={} if field.default is MISSING else field.default,
        annotation=field.type,
    )
    for name, field in FURTHER.items()
]
audit.__signature__ = _plain.replace(  # type: ignore[attr-defined]
    parameters=[*list(_plain.parameters.values())[:-1], *_named]
)
