"""What an audit found: values, changes, and verdicts of gates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd

from robust_fairness.auditing import gates
from robust_fairness.auditing.change_parts import Why
from robust_fairness.auditing.changes import MIX
from robust_fairness.auditing.control import Between, controlled_name
from robust_fairness.auditing.gates import Judgement, Rule
from robust_fairness.auditing.metric_names import SELECTIONS, require_offered
from robust_fairness.auditing.monitor import Monitor
from robust_fairness.auditing.naming import as_category
from robust_fairness.auditing.power import Power
from robust_fairness.auditing.predictions import Options, Predictions, attribute_name
from robust_fairness.auditing.search import Worst
from robust_fairness.auditing.strata import InStrata, as_rows, name_in_each
from robust_fairness.auditing.who import Figure, figure_of
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import CONSTANT
from robust_fairness.metrics import Undefined
from robust_fairness.metrics.classification import balanced_accuracy
from robust_fairness.numbers.intervals import Compared


@dataclass(frozen=True)
class AuditFindings:
    """Scores of predictions with their uncertainty, and what follows from them.

    Attributes:
        rows: values, with the columns ``scores.AUDIT``.
        predictions: the predictions that they are of.
        options: what is scored.
        name: name of the table or of the period.
        changed: changes since an earlier period, with the columns ``changes.CHANGES``.
        then: name of that period; "" without one.
        assumption: of estimated values, or of labelled rows among others.
        judgements: verdicts of gates, the worst first.
        monitor: gaps over periods; None where the table has none.
        earlier: the predictions of the earlier period; None without one.
        why: its changes taken apart; None without features.
        power: what the rows show with a probability of 80 %.
        between: differences of groups that are others within strata of the control features.
        worst: the worst subgroup of every rate, where one was searched for.
        strata: largest gaps in a stratum of the control features.
        label_selection: what shows that the labelled rows are no random part of all.
        compared: what gaps compare, by attribute and metric.
    """

    rows: pd.DataFrame
    predictions: Predictions
    options: Options
    name: str = "table"
    changed: pd.DataFrame | None = None
    then: str = ""
    assumption: str = ""
    judgements: Sequence[Judgement] = ()
    monitor: Monitor | None = None
    earlier: Predictions | None = None
    why: Why | None = None
    between: Sequence[Between] = ()
    power: Sequence[Power] = ()
    worst: Sequence[Worst] = ()
    strata: Sequence[InStrata] = ()
    label_selection: Sequence[str] = ()
    compared: Mapping[tuple[str, str], Compared] = field(default_factory=dict)

    @cached_property
    def figure(self) -> Figure | None:
        """The groups of the gap that the audit begins with, and who differs; see ``who``."""
        return figure_of(self)

    def changes(self) -> pd.DataFrame:
        """Every value then and now, and its change, with the columns ``changes.CHANGES``.

        Raises:
            InputError: the audit has no reference.
        """
        if self.changed is None:
            raise InputError("changes: this audit has no reference; allowed: audit(reference=...)")
        return self.changed.copy()

    def judgements_of(
        self, conditions: str | Sequence[str], rule: Rule = "estimate", intervals: str = gates.PLAIN
    ) -> list[Judgement]:
        """Verdicts of conditions that must not hold, by the intervals of the audit, worst first.

        Args:
            conditions: such as ``equalized_odds_difference[sex]>0.1``.
            rule: what fails a gate, see ``Gate.judgements``.
            intervals: which intervals the audit has, in words.
        """
        judgements: list[Judgement] = []
        without = {
            name: f"{name} is taken for a number and has no groups; allowed: {as_category(name)}"
            for name in self.options.sensitive_features
            if name not in self.predictions.categorical and name not in self.options.types
        }
        for gate in gates_of(conditions, self.options):
            rows = gates.as_values(self.changes()) if gate.change else self.rows
            if gate.attribute in {each.name for each in self.strata}:
                rows = as_rows(self.strata)
            judged = gate.judgements(rows, rule, without, intervals)
            of_labels = self.label_selection and gate.metric not in SELECTIONS
            judgements += map(Judgement.undecided, judged) if of_labels else judged
        return sorted(judgements, key=lambda judged: gates.VERDICTS.index(judged.verdict))

    @property
    def failed(self) -> list[str]:
        """One line per failure of a gate that was judged."""
        return [judgement.reason for judgement in self.judgements if judgement.verdict == "FAIL"]

    @property
    def warning(self) -> str:
        """A warning where the classes are predicted as a constant or by chance; "" otherwise."""
        predictions, classes = self.predictions, self.predictions.samples.classes
        if not classes:
            return ""
        numbers = np.bincount(predictions.prediction, minlength=len(classes))
        shares, most = numbers / len(predictions.samples), int(numbers.argmax())
        if shares[most] > CONSTANT:
            return (
                f"{shares[most]:.1%} of the rows are predicted as class {classes[most]}. A "
                "constant predictor has no difference between groups, so that gates on differences "
                "say nothing."
            )
        if not predictions.labelled:
            return ""
        try:
            balanced = balanced_accuracy(predictions.samples.y, predictions.prediction)
        except Undefined:
            return ""
        if balanced > 1 / len(classes):
            return ""
        return (
            f"Balanced accuracy is {balanced:.3f}, not above chance ({1 / len(classes):.3g}): "
            "gates on differences say nothing of such a predictor."
        )

    @property
    def hints(self) -> Sequence[str]:
        """What columns and cells were taken for, and texts that may mean missing values."""
        return self.predictions.notes


def gates_of(conditions: str | Sequence[str], options: Options) -> list[gates.Gate]:
    """The gates of conditions, whose metrics and attributes an audit with these options may have.

    Which attributes are categorical, and have intersections, is known from the table only.
    """
    names = options.sensitive_features
    sizes = range(1, len(names) + 1) if options.intersections else (1, len(names))
    attributes = {
        attribute_name(some, names) for size in sizes for some in combinations(names, size)
    }
    if options.control_features:
        control = tuple(options.control_features)
        attributes |= {
            *(controlled_name(name, control, names) for name in attributes),
            *(name_in_each(name, control) for name in attributes),
        }
    attributes = {*attributes, *options.membership} - {""}
    parsed = [*map(gates.parse, [conditions] if isinstance(conditions, str) else conditions)]
    for gate in parsed:
        place = f"gate {gate.text!r}"
        require_offered(gate.metric, options.continuous, place, [MIX] if gate.change else [])
        if gate.attribute and gate.attribute not in attributes:
            raise unknown_name("attribute", gate.attribute, attributes, place)
    return parsed
