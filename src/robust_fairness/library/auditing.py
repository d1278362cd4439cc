"""``rf.audit``: the audit of a table of predictions, as a notebook shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from robust_fairness.auditing.predictions import SMALL, Options, PredictionKind, check
from robust_fairness.auditing.result import Audit, audited, listed
from robust_fairness.core.errors import InputError
from robust_fairness.core.frames import as_pandas, sensitive_columns, with_column, with_columns

THEN = "reference"


def audit(
    frame: Any = None,
    *,
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    replicate_weights: Sequence[str] = (),
    membership: Mapping[str, Sequence[str]] | None = None,
    reference: Any = None,
    metrics: str | Sequence[str] = ("conventional",),
    pos_label: Any = None,
    neg_labels: Sequence[Any] = (),
    drop_unlabelled: bool = False,
    prediction_is: PredictionKind = "auto",
    threshold: float | None = None,
    continuous: bool = False,
    types: Mapping[str, Any] | None = None,
    bins: Mapping[str, Any] | None = None,
    intersections: bool = False,
    small: int = SMALL,
    suppress: int = 0,
    name: str = "table",
) -> Audit:
    """Audit predictions: rates and gaps of every group with 95 % intervals; deterministic.

    Args:
        frame: a data frame of pandas, polars or Arrow with a row per prediction; not needed where
            the other arguments are values rather than names of columns.
        y_true: name of a column, or one value per row.
        y_pred: likewise, or the columns of the probabilities of the classes, named after them.
        sensitive_features: names of columns, a frame, columns by name, or one label per row.
        sample_weight: name of a column of weights, or one weight per row.
        replicate_weights: columns of replicate weights for successive differences (Census Bureau).
        membership: attributes of which only probabilities are known: columns, one per group.
        reference: a frame of earlier predictions with the same columns, to compare with.
        metrics: names of metrics; ``conventional`` and ``all`` are sets of them.
        pos_label: value of the positive class of a binary target; default: 1, True or yes,
            beside 0 or -1, False or no.
        neg_labels: values of the other class, or ``rest``, needed if there are several.
        drop_unlabelled: leave out rows without target or prediction.
        prediction_is: kind of the predictions, see ``robust_fairness.auditing.Options``.
        threshold: lowest probability (default 0.5) or score of the positive class.
        continuous: whether the target is continuous.
        types: ``number`` or ``category`` by attribute, where its values do not tell.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        suppress: groups with fewer rows are not shown.
        name: name of the table, for the page and for messages.

    Raises:
        InputError: a column does not exist, is constant or has values that do not fit, values have
            a pandas index in another order than the frame, or both frames do not have the same
            classes and kinds of columns.
    """
    if frame is None:
        if isinstance(y_true, str):
            raise InputError(f"y_true: {y_true!r} is the name of a column, which needs a table")
        frame, sensitive_features = {"y_true": y_true}, sensitive_columns(sensitive_features)
    table, target = with_column(as_pandas(frame), "y_true", y_true)
    several = (
        isinstance(y_pred, Sequence) and y_pred and all(isinstance(one, str) for one in y_pred)
    )
    if several and not isinstance(y_pred, str) and set(y_pred) <= set(table):
        prediction = y_pred
    else:
        table, prediction = with_column(table, "y_pred", y_pred)
    weight = None
    if sample_weight is not None:
        table, weight = with_column(table, "sample_weight", sample_weight)
    table, attributes = with_columns(table, sensitive_features)
    options = Options(
        target, prediction, attributes, None if pos_label is None else str(pos_label), continuous,
        prediction_is, threshold, types or {}, bins or {}, listed(metrics), intersections, small,
        suppress, weight, replicate_weights, membership or {}, drop_unlabelled,
        tuple(map(str, neg_labels)),
    )  # fmt: skip
    if reference is None:
        return audited(check(table, options, name), options, name)
    earlier = as_pandas(reference)
    options = options.with_edges_of(earlier, THEN)
    then = check(earlier, options, THEN)
    return audited(check(table, options, name), options, name, then, THEN)
