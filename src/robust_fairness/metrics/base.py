"""What plug-ins declare metrics with, under its former name."""

from robust_fairness.numbers.quantities import (  # noqa: F401
    NO_ROWS,
    Measure,
    NotApplicable,
    Quantity,
    RowValues,
    Score,
    Undefined,
    measure,
    quantity,
)
