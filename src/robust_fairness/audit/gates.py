"""Gates: conditions that fail an audit, such as ``delta_eo[sex]>0.1``."""

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.metrics.renamed import RENAMED

FORM = re.compile(
    r"\s*(?P<metric>[a-z][a-z0-9_]*)\s*(\[(?P<attribute>.+)\])?\s*(?P<sign>>=|<=|>|<)"
    r"\s*(?P<limit>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)\s*"
)
EXAMPLES = "delta_eo>0.1 or delta_eo[sex]>=0.1 or accuracy_by_group<0.7"
SHORT = {"dp": "delta_dp", "eo": "delta_eo", "eopp": "delta_eopp"}
COMPARED = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}


@dataclass(frozen=True)
class Gate:
    """A condition that fails an audit."""

    text: str
    metric: str
    attribute: str
    sign: str
    limit: float

    def failures(self, rows: pd.DataFrame) -> list[str]:
        """One line for each value that meets the condition or is missing."""
        own = rows[rows["metric"] == self.metric]
        if self.attribute:
            own = own[own["attribute"] == self.attribute]
        if own.empty:
            return [f"{self.text}: the audit has no such row"]
        reasons = []
        for row, value in zip(own.itertuples(), own["value"].to_numpy(), strict=True):
            where = ", ".join(filter(None, (str(row.attribute), str(row.group))))
            place = f"{self.metric}{f' ({where})' if where else ''}"
            if np.isnan(value):
                reasons.append(f"{self.text}: {place} has no value: {row.note}")
            elif COMPARED[self.sign](value, self.limit):
                reasons.append(f"{self.text}: {place} is {value:.6g}")
        return reasons


def parse(text: str) -> Gate:
    """The gate of a text: a metric, optionally an attribute, a comparison and a number."""
    found = FORM.fullmatch(text)
    if found is None or not np.isfinite(float(found["limit"])):
        raise InputError(
            f"gate {text!r}, allowed: a metric, a comparison and a number, such as {EXAMPLES}"
        )
    metric = SHORT.get(found["metric"], found["metric"])
    return Gate(
        text.strip(), metric, (found["attribute"] or "").strip(), found["sign"],
        float(found["limit"]),
    )  # fmt: skip


def require_known(gate: Gate, metrics: Collection[str], attributes: Collection[str]) -> None:
    """Check that an audit has the metric and the attribute of a gate."""
    if gate.metric in RENAMED:
        raise InputError(
            f"gate {gate.text!r}: metric {gate.metric!r} is now called {RENAMED[gate.metric]!r}"
        )
    if gate.metric not in metrics:
        raise InputError(f"gate {gate.text!r}: {unknown_name('metric', gate.metric, metrics)}")
    if gate.attribute and gate.attribute not in attributes:
        problem = unknown_name("attribute", gate.attribute, attributes)
        raise InputError(f"gate {gate.text!r}: {problem}")
