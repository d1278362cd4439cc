"""Everything that shapes datasets, test sets and cells, typed and checked before anything runs.

Names are looked up when a value is checked, so that importing this module imports nothing heavy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_serializer,
    model_validator,
)

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.registry import find
from robust_fairness.experiment.stages import Stage
from robust_fairness.metrics import find_metric
from robust_fairness.metrics.criteria import EVERY, Criterion, criterion_text

DEFAULT_TRIAL = "default"


class Settings(BaseModel):
    """Parameters of one node; an error is one line that names every wrong field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Any:
        """Check a dictionary of parameters.

        Raises:
            InputError: a field is unknown, missing, or not allowed.
        """
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise InputError(one_line(error)) from None


def one_line(error: ValidationError) -> str:
    """All findings of pydantic in one line: field, what is wrong, what was given."""
    return "; ".join(
        f"{'.'.join(map(str, found['loc'])) or 'parameters'}: "
        f"{found['msg'].removeprefix('Value error, ')} (got {found['input']!r:.80})"
        for found in error.errors(include_url=False)
    )


class Protocol(BaseModel):
    """The training protocol that all methods of a dataset share.

    The defaults are those of Equalized Robustness, 5.1: Adam at 1e-3 with weight decay 1e-5,
    cosine to zero, 50 epochs. The paper does not give the batch size (128 here, the size of the
    other papers), nor the kind of whitening (``standardise``: each feature on its own; ``pca``
    and ``zca`` decorrelate, which on one-hot columns amplifies directions of almost no
    variance), nor whether weight decay is an L2 term (Adam's own, the default) or decoupled.

    ``augmentation`` changes the pictures of training batches, never those that are predicted,
    drawn for every picture anew in every epoch: ``randaugment``; ``crop_and_flip``, a random part
    at the size of the whole and in half of the cases its mirror image; ``flip``, the mirror image
    alone; all with torchvision's defaults.

    ``two_steps`` multiplies the learning rate by 0.3 after 40 % and again after 80 % of the epochs
    (epochs 50 and 100 of 125, "Is Fairness Only Metric Deep?", D.3).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(50, ge=1)
    batch_size: int = Field(128, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    schedule: Literal["cosine", "constant", "two_steps"] = "cosine"
    preprocessing: Literal["standardise", "pca", "zca", "none"] = "standardise"
    augmentation: Literal["none", "randaugment", "crop_and_flip", "flip"] = "none"
    precision: Literal["float32", "float64"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int = Field(1, ge=1, description="CPU threads; one is fastest for small networks")
    checkpoint_seconds: float = Field(30, ge=0, description="least time between two checkpoints")


class Named(BaseModel):
    """A thing of the registry with its own parameters."""

    model_config = ConfigDict(frozen=True)

    name: str
    parameters: SerializeAsAny[BaseModel]

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        """The form in which it is given: ``{name: cuma, alpha: 1}``."""
        return {"name": self.name, **self.parameters.model_dump()}


def named(kind: str) -> BeforeValidator:
    """Turn ``{name: cuma, alpha: 1}`` into the parameters that ``methods/cuma.py`` declares.

    A name alone stands for its defaults.
    """

    def resolve(value: Any) -> Any:
        if isinstance(value, Named):
            return value
        values = dict(value) if isinstance(value, dict) else {"name": value}
        name = str(values.pop("name", ""))
        try:
            parameters = find(kind, name).Parameters.model_validate(values)
        except ValidationError as error:
            raise InputError(f"{kind} {name}: {one_line(error)}") from None
        return Named(name=name, parameters=parameters)

    return BeforeValidator(resolve)


def _known_metric(name: str) -> str:
    find_metric(name)
    return name


MetricName = Annotated[str, AfterValidator(_known_metric)]
CriterionText = Annotated[str, BeforeValidator(criterion_text)]


class SourceParameters(Settings):
    """Where a dataset comes from.

    Attributes:
        dataset: what it is called.
        source: the file of ``datasets/`` that reads it, with its parameters.
        splits: number of named splits.
    """

    dataset: str
    source: Annotated[Named, named("dataset")]
    splits: int = Field(ge=1)


class ContactSheetParameters(Settings):
    """What a contact sheet has a row for.

    Attributes:
        attribute: name of an attribute, every value of which has a row.
    """

    attribute: str


def _training_of_a_generator(value: Any) -> Any:
    from robust_fairness.generation.fitting import GeneratorParameters

    return GeneratorParameters.model_validate(value)


class GeneratorSettings(Settings):
    """How a generator comes about.

    Attributes:
        name: what it is called; folder of its checkpoints.
        training: how it is trained, ``generation.fitting.GeneratorParameters``.
        file: the safetensors file of one that was trained elsewhere.
    """

    name: str
    training: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_training_of_a_generator)] = (
        Field(default={}, validate_default=True)
    )
    file: Path | None = None


class TestSetParameters(Settings):
    """A shift and its severity.

    Attributes:
        shift: the file of ``shifts/`` that makes it, with its parameters.
        severity: its severity, in the shift's own unit.
    """

    __test__ = False  # no test case, whatever its name

    shift: Annotated[Named, named("shift")]
    severity: float

    @model_validator(mode="after")
    def _severity_fits(self) -> "TestSetParameters":
        find("shift", self.shift.name)(self.shift.parameters).check(self.severity)
        return self


class GivenTestSetParameters(TestSetParameters):
    """A shift of samples, such as noise; no subset of latent space."""

    @model_validator(mode="after")
    def _samples_are_given(self) -> "GivenTestSetParameters":
        if find("shift", self.shift.name).latent:
            raise InputError(
                f"shift {self.shift.name}: a subset of latent space, which only a dataset of "
                "source 'generated' has; allowed here: a shift of samples"
            )
        return self


class GeneratedTestSetParameters(TestSetParameters):
    """A shift of a generated dataset: of its latents, or of the pictures as given.

    Attributes:
        source: how the dataset is made.
    """

    source: SourceParameters


class CellParameters(Settings):
    """The complete settings of one cell, dataset x method.

    Attributes:
        dataset: name of the dataset in the grid.
        label: what the cell is called in the grid, and wherever methods are shown.
        method: the method and its hyperparameters.
        network: the network and its sizes.
        protocol: how all methods are trained.
        settings: fields of the method, the network or the protocol that are other than given
            above, in every trial.
        trials: what each further trial changes, beside the default one: fields of the method,
            the network or the protocol.
        search: stages of a search; each tries its values with what the stages before it found
            best.
        search_by: the criterion that decides between stages; the first of ``selections`` that
            is one unless given.
        seeds: one replica each and trial.
        metrics: what the predictions are scored by.
        selections: criteria by which trials are chosen on validation rows: a metric, one with a
            constraint (see ``metrics.criteria``), or ``every``.
        test_sets: shift and severity of every shifted test set, by its name.
        groupings: combinations of attributes that group metrics are scored for as well.
    """

    dataset: str
    label: str
    method: Annotated[Named, named("method")]
    network: Annotated[Named, named("network")]
    protocol: Protocol = Protocol()
    settings: dict[str, Any] = {}
    trials: tuple[dict[str, Any], ...] = ()
    search: tuple[Stage, ...] = ()
    search_by: CriterionText | None = None
    seeds: tuple[int, ...] = Field(min_length=1)
    metrics: tuple[MetricName, ...] = ("accuracy",)
    selections: tuple[CriterionText, ...] = ("accuracy",)
    test_sets: dict[str, tuple[str, float]] = {}
    groupings: tuple[tuple[str, ...], ...] = ()

    def replicas(self, overrides: Sequence[Mapping[str, Any]] | None = None) -> list["Replica"]:
        """Replicas of the given overrides, each with every seed in order.

        Args:
            overrides: what each trial changes; the default trial and ``trials`` unless given.

        Raises:
            InputError: a trial changes what does not exist, or to what is not allowed.
        """
        if overrides is None:
            overrides = [{}, *(trial for trial in self.trials if trial)]
        return [self._replica(override, seed) for override in overrides for seed in self.seeds]

    def _replica(self, override: Mapping[str, Any], seed: int) -> "Replica":
        parts: dict[str, BaseModel] = {
            "method": self.method.parameters,
            "network": self.network.parameters,
            "protocol": self.protocol,
        }
        for name, value in {**self.settings, **override}.items():
            owner = next(
                (key for key, part in parts.items() if name in type(part).model_fields), ""
            )
            if not owner:
                fields = [field for part in parts.values() for field in type(part).model_fields]
                raise unknown_name(f"field of a trial of {self.dataset}.{self.label}", name, fields)
            part = parts[owner]
            try:
                parts[owner] = type(part).model_validate(part.model_dump() | {name: value})
            except ValidationError as error:
                where = f"trial of {self.dataset}.{self.label}"
                raise InputError(f"{where}: {one_line(error)}") from None
        return Replica(
            trial_name(override),
            seed,
            parts["method"],
            parts["network"],
            parts["protocol"],  # type: ignore[arg-type]
        )

    @model_validator(mode="after")
    def _search_fits(self) -> "CellParameters":
        for stage in self.search:
            self.replicas(stage.samples)
        if self.search and not self.decides:
            raise InputError("search_by: none given and no selection is one, allowed: a criterion")
        guided = any(stage.sampler == "tpe" for stage in self.search)
        if guided and Criterion.parse(self.decides).constraint:
            raise InputError(
                f"search_by: {self.decides!r} cannot guide sampler tpe, since it compares trials "
                "with one another, allowed: a metric alone"
            )
        return self

    @property
    def criterion(self) -> str:
        """The first criterion that chooses one trial; ``every`` where there is none."""
        return next((name for name in self.selections if name != EVERY), EVERY)

    @property
    def decides(self) -> str:
        """The criterion that decides between the stages of the search; "" where there is none."""
        criteria = [name for name in (self.search_by, *self.selections) if name]
        return next((name for name in criteria if name != EVERY), "")


class FamilyParameters(Settings):
    """What is measured of a generated dataset.

    Attributes:
        source: how it is made.
        test_sets: shift and severity of its shifted test sets, by name.
        referee: how the classifier of real pictures was trained; None where there are none.
    """

    source: SourceParameters
    test_sets: dict[str, tuple[str, float]]
    referee: CellParameters | None = None

    @property
    def generator(self) -> str:
        """Name of the generator."""
        name: str = self.made.generator
        return name

    @property
    def made(self) -> Any:
        """Parameters of ``datasets.generated``."""
        return self.source.source.parameters


def trial_name(override: Mapping[str, Any]) -> str:
    """Name of a trial by what it changes, for example ``explicit=texture+texture_color``."""
    shown = {
        name: "+".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in override.items()
    }
    return ",".join(f"{name}={value}" for name, value in shown.items()) or DEFAULT_TRIAL


@dataclass(frozen=True)
class Replica:
    """One training: a trial and a seed.

    Attributes:
        trial: name of the trial.
        seed: the seed; it also names the split.
        method: hyperparameters of the method.
        network: sizes of the network.
        protocol: how it is trained.
    """

    trial: str
    seed: int
    method: Any
    network: BaseModel
    protocol: Protocol

    def split(self, splits: Sequence[str]) -> str:
        """Name of the split that this replica uses; seeds go round the splits there are."""
        return splits[self.seed % len(splits)]


def changed_hparams(replicas: Sequence[Replica]) -> dict[str, dict[str, Any]]:
    """Values, by trial, of the hyperparameters in which the trials of a cell differ."""
    values = {
        one.trial: {
            **one.protocol.model_dump(),
            **one.network.model_dump(),
            **one.method.model_dump(),
        }
        for one in replicas
    }
    first = next(iter(values.values()), {})
    changed = [name for name in first if any(one[name] != first[name] for one in values.values())]
    return {trial: {name: own[name] for name in changed} for trial, own in values.items()}


def require_replicas(replicas: Sequence[Replica]) -> None:
    """Raise where two trials carry the same name, since their rows could not be told apart."""
    keys = [(replica.trial, replica.seed) for replica in replicas]
    twice = sorted(
        {f"{trial} (seed {seed})" for trial, seed in keys if keys.count((trial, seed)) > 1}
    )
    if twice:
        raise InputError(f"trials: given twice: {', '.join(twice)}; allowed: each once")
