"""Selection criteria: an objective metric, on some validation rows, and possibly a constraint.

In YAML a criterion is a text or a mapping::

    selections:
      - accuracy
      - accuracy@unbiased_val
      - {objective: delta_dp, subject_to: {accuracy: 0.97}}
      - {objective: accuracy, per: seed}

Tables hold its text: ``delta_dp subject to 0.97 of the best accuracy`` is the lowest ``delta_dp``
among the trials whose accuracy is at least 97 % of the best trial's (of an error: at most the best
one's over 0.97). Fairness alone is best where nothing is predicted, and accuracy alone where
fairness weighs nothing.

``accuracy, per seed`` selects a trial for every seed, by the validation rows of its split alone.
Without it one trial is selected for all seeds by means over them: where random splits share rows,
test rows of one are validation rows of another, and have a say in the choice.

Source: the shortlist of Donini et al., "Empirical Risk Minimization under Fairness Constraints"
(NeurIPS 2018), with 0.9 of the accuracy there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import exact
from robust_fairness.numbers.metrics import find_metric

EVERY = "every"
VALIDATION = "val"
VALIDATION_PARTS = (VALIDATION, "unbiased_val", "ood_val")
SUBJECT_TO, OF_BEST = " subject to ", " of the best "
FIELDS = ("objective", "subject_to", "per")
FORM = "{objective: METRIC, subject_to: {METRIC: SHARE}, per: seed}"
SEED, PER_SEED = "seed", ", per seed"


@dataclass(frozen=True)
class ScoredPart:
    """A metric on one part of the validation rows: ``accuracy@unbiased_val``.

    Attributes:
        metric: name of the metric.
        part: ``val``, which is drawn as the training rows, or another part of the split.
    """

    metric: str
    part: str = VALIDATION

    @classmethod
    def parse(cls, text: str) -> "ScoredPart":
        """From its text."""
        metric, _, part = text.partition("@")
        find_metric(metric)
        return cls(metric, part or VALIDATION)

    @property
    def higher(self) -> bool:
        """Whether higher values are better."""
        return find_metric(self.metric).better == "higher"

    def __str__(self) -> str:
        return self.metric if self.part == VALIDATION else f"{self.metric}@{self.part}"


@dataclass(frozen=True)
class Constraint:
    """At least a share of the best trial's value of a metric."""

    scored: ScoredPart
    share: float


@dataclass(frozen=True)
class Criterion:
    """What the selected trial is best in, and what it must keep.

    ``per_seed``: whether each seed has its own trial.
    """

    objective: ScoredPart
    constraint: Constraint | None = None
    per_seed: bool = False

    @classmethod
    def parse(cls, value: str | Mapping[str, object]) -> "Criterion":
        """From its text, or from a mapping with the keys ``FIELDS``."""
        if isinstance(value, Mapping):
            return _of_mapping(value)
        if not isinstance(value, str):
            raise InputError(f"criterion {value!r}, allowed: the name of a metric, or a mapping")
        text = value.removesuffix(PER_SEED)
        if text != value:
            return replace(cls.parse(text), per_seed=True)
        objective, subject, rest = text.partition(SUBJECT_TO)
        share, _, scored = rest.partition(OF_BEST)
        constraint = _constraint(share, scored) if subject else None
        return cls(ScoredPart.parse(objective), constraint)

    @property
    def scored(self) -> tuple[ScoredPart, ...]:
        """All that it needs scores of: the objective, then the metric of the constraint."""
        return (self.objective, *((self.constraint.scored,) if self.constraint else ()))

    def __str__(self) -> str:
        per = PER_SEED if self.per_seed else ""
        if self.constraint is None:
            return f"{self.objective}{per}"
        share, scored = self.constraint.share, self.constraint.scored
        return f"{self.objective}{SUBJECT_TO}{exact(share)}{OF_BEST}{scored}{per}"

    @property
    def over_seeds(self) -> "Criterion":
        """The same, with one trial for all seeds."""
        return replace(self, per_seed=False)


def scored_by(criteria: Iterable[str]) -> list[ScoredPart]:
    """All that criteria need scores of, each once; ``every`` needs none."""
    result = [item for text in criteria if text != EVERY for item in Criterion.parse(text).scored]
    return list(dict.fromkeys(result))


def criterion_text(value: str | Mapping[str, object]) -> str:
    """The text of a criterion for tables, or ``every``.

    Raises:
        InputError: no such criterion, metric, or part of the validation rows.
    """
    if value == EVERY:
        return EVERY
    criterion = Criterion.parse(value)
    for scored in criterion.scored:
        if scored.part not in VALIDATION_PARTS:
            raise unknown_name("part of the rows to select on", scored.part, VALIDATION_PARTS)
    return str(criterion)


def _of_mapping(value: Mapping[str, object]) -> Criterion:
    for key in value:
        if key not in FIELDS:
            raise unknown_name("field of a criterion", str(key), FIELDS)
    subject = value.get("subject_to", {})
    if "objective" not in value or not isinstance(subject, Mapping) or len(subject) > 1:
        raise InputError(f"criterion {dict(value)!r}, allowed: {FORM}")
    if value.get("per", SEED) != SEED:
        raise InputError(f"criterion: per {value['per']!r}, allowed: {SEED}")
    constraints = [_constraint(share, str(scored)) for scored, share in subject.items()]
    objective = ScoredPart.parse(str(value["objective"]))
    return Criterion(objective, next(iter(constraints), None), per_seed="per" in value)


def _constraint(share: object, scored: str) -> Constraint:
    try:
        number = float(str(share))
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise InputError(f"constraint {scored!r}: {share!r}, allowed: a share above 0, at most 1")
    return Constraint(ScoredPart.parse(scored), number)
