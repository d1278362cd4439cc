"""The experiment as models: ``Experiment`` > ``DatasetConfig`` > ``Cell``; test sets, generators.

Validated in outline, importing this module and its models imports no plug-in; validated fully,
plug-ins check their own parameters.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeInt,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from robust_fairness.bench.experiment.domains import Domains
from robust_fairness.bench.experiment.plugins import Named, Settings, is_outline, named, one_line
from robust_fairness.bench.experiment.search import Stage
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import MOST_COUNT, exact
from robust_fairness.core.registry import Hyperparameters, find, names

AXES = ("datasets", "methods", "shifts", "seeds")
MOST_SEEDS = 10_000
DEFAULT_TRIAL = "default"
# Fields of the protocol that only training in steps reads: to a model that is fitted in one call
# they do not apply, and a name that it shares with them is its own.
OF_STEPS = frozenset(
    (
        "epochs",
        "batch_size",
        "learning_rate",
        "weight_decay",
        "optimiser",
        "momentum",
        "schedule",
        "patience",
    )
)


class Protocol(Hyperparameters):
    """The training protocol that all methods of a dataset share.

    The defaults are those of Equalized Robustness, 5.1: Adam at 1e-3 with weight decay 1e-5,
    cosine to zero, 50 epochs. The paper does not give the batch size (128 here, as in the other
    papers), the kind of whitening (``standardise``: each feature on its own; ``pca`` and ``zca``
    decorrelate, which amplifies directions of almost no variance in one-hot columns), nor whether
    weight decay is an L2 term (``adam``) or decoupled (``adamw``).

    ``augmentation`` draws new changes of every training image in every epoch, with torchvision's
    defaults: ``randaugment``; ``crop_and_flip``, a random crop at the original size, flipped with
    probability one half; ``flip`` alone. ``two_steps`` multiplies the learning rate by 0.3 after
    40 % and after 80 % of the epochs ("Is Fairness Only Metric Deep?", D.3).

    ``imputation`` is what replaces missing numbers: the ``median``, ``mean`` or ``most_frequent``
    value of the column in the training rows; with ``none`` they reach the network, which has to
    take them, such as boosted trees. ``constant_features`` are those with one value in
    the training rows, such as the indicator of a category that only other domains have: ``centre``
    subtracts that value, so that another one reaches the network through weights that were never
    trained; ``drop`` sets them to 0 in all rows.

    ``remove_correlation`` is alpha of fairlearn's ``CorrelationRemover``: that share of the linear
    prediction by the columns of the sensitive attributes is subtracted from all other features,
    and these columns are left out. It reads the group of every row, also at prediction.

    ``precision`` ``bfloat16`` is that of the networks' passes in training (autocast). Weights,
    losses, penalties, validation and predictions are float32.

    ``scored_epochs``: scores of validation and test rows are means over the scores of the networks
    after so many last epochs, whose weights are kept. Saved models and figures are those of the
    last epoch.

    ``patience`` stops a replica once its validation loss has not fallen for so many epochs, and
    keeps the weights of its epoch of the lowest one (Prechelt, "Early Stopping - But When?", 1998).
    Epochs of a warm-up do not count. The schedule is still that of all ``epochs``.
    """

    epochs: int = Field(50, ge=1, le=MOST_COUNT)
    patience: int = Field(
        0, ge=0, description="epochs without a lower validation loss; 0: never stop"
    )
    scored_epochs: int = Field(
        1, ge=1, le=MOST_COUNT, description="last epochs over which scores are averaged"
    )
    batch_size: int = Field(128, ge=1, le=MOST_COUNT)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    schedule: Literal["cosine", "constant", "two_steps"] = "cosine"
    preprocessing: Literal["standardise", "pca", "zca", "none"] = "standardise"
    imputation: Literal["median", "mean", "most_frequent", "none"] = "median"
    constant_features: Literal["centre", "drop"] = "centre"
    remove_correlation: float = Field(0.0, ge=0, le=1, description="with sensitive attributes")
    augmentation: Literal["none", "randaugment", "crop_and_flip", "flip"] = "none"
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int = Field(
        1, ge=1, le=MOST_COUNT, description="CPU threads; one is fastest for small networks"
    )
    checkpoint_seconds: float = Field(30, ge=0, description="least time between two checkpoints")


def _known_metric(name: str, info: Any) -> str:
    if not is_outline(info):
        from robust_fairness.metrics import find_metric

        find_metric(name)
    return name


def _criterion(value: Any, info: Any) -> str:
    if is_outline(info):
        return str(value)
    from robust_fairness.metrics.criteria import criterion_text

    return criterion_text(value)


MetricName = Annotated[str, AfterValidator(_known_metric)]
CriterionText = Annotated[str, BeforeValidator(_criterion)]


class TestSet(Settings):
    """A shift and its severity; ``label`` is the name of the shift in the experiment."""

    __test__ = False  # not a test case

    shift: Annotated[Named, named("shift")]
    severity: float = Field(strict=True)
    label: str = ""

    @model_validator(mode="after")
    def _severity_fits(self, info: Any) -> "TestSet":
        if not is_outline(info):
            find("shift", self.shift.name)(self.shift.parameters).check(self.severity)
        return self

    @property
    def called(self) -> str:
        """Name of the shift in the experiment and in tables."""
        return self.label or self.shift.name

    @property
    def name(self) -> str:
        """Name in the catalog, for example ``gaussian_noise_0_03``."""
        return f"{self.called}_{exact(self.severity)}".replace(".", "_").replace("-", "_")


def filled(value: Any) -> Any:
    """An empty value of YAML as a mapping without fields."""
    return {} if value is None else value


def _text(value: object) -> str:
    if isinstance(value, dict | list):
        raise ValueError("allowed: a text or a number")
    return str(value)


Facets = Annotated[dict[str, Annotated[str, BeforeValidator(_text)]], BeforeValidator(filled)]


class Scoring(Settings):
    """What a dataset says about the scores of all of its cells.

    Attributes:
        search_by: the criterion that decides between stages; by default the first of
            ``selections`` that is one.
        selections: criteria that select trials on validation rows (see ``metrics.criteria``).
        groupings: combinations of attributes whose groups are scored as well.
    """

    metrics: tuple[MetricName, ...] = ("accuracy",)
    selections: tuple[CriterionText, ...] = ("accuracy",)
    search_by: CriterionText | None = None
    groupings: tuple[tuple[str, ...], ...] = ()


class Cell(Scoring):
    """The complete settings of one cell, dataset x method.

    Attributes:
        label: name of the cell in its dataset; the column ``method`` of tables.
        settings: fields of the method, the network or the protocol that are changed in all trials.
        trials: fields of the same that each further trial changes, beside the default trial.
        search: stages of a search; each starts from the best trial of the stages before.
        postprocessing: the rule by which decisions are made of the scores, fitted on validation
            rows; None for the most likely class.
        test_sets: shift and severity of every shifted test set, by its name.
        facets: facts by which reports filter and group, those of its dataset among them.
    """

    dataset: str
    label: str
    method: Annotated[Named, named("method")]
    network: Annotated[Named, named("network")]
    protocol: Protocol = Protocol()
    postprocessing: Annotated[Named, named("postprocessing")] | None = None
    settings: dict[str, Any] = {}
    trials: tuple[dict[str, Any], ...] = ()
    search: tuple[Stage, ...] = ()
    seeds: tuple[NonNegativeInt, ...] = Field(min_length=1)
    test_sets: dict[str, tuple[str, float]] = {}
    facets: Facets = {}

    @property
    def name(self) -> str:
        return f"{self.dataset}.{self.label}"

    @property
    def sees(self) -> tuple[str, ...]:
        """What its trials read besides inputs and labels of the training rows, sorted.

        The network has no part in it: its packages may be large and are not imported.
        """
        choices = [choice for stage in self.search for choice in stage.samples]
        trials = [self.settings | override for override in [{}, *self.trials, *choices]]
        result = {name for trial in trials for name in _changed(self.method.parameters, trial).sees}
        if self.postprocessing:
            result.add("groups at prediction")
        if any(_changed(self.protocol, trial).remove_correlation for trial in trials):
            result |= {"groups", "groups at prediction"}
        return tuple(sorted(result))

    def replicas(self, overrides: Sequence[Mapping[str, Any]] | None = None) -> list["Replica"]:
        """Replicas of overrides, by default of all configured trials, each with every seed."""
        if overrides is None:
            overrides = [{}, *(trial for trial in self.trials if trial)]
        replicas = []
        for override in overrides:
            parts: dict[str, Any] = {
                "method": self.method.parameters,
                "network": self.network.parameters,
                "protocol": self.protocol,
            }
            for name, value in {**self.settings, **override}.items():
                owner = self._owner(name, parts)
                try:
                    parts[owner] = parts[owner].changed(name, value)
                except ValidationError as error:
                    where = f"trial of {self.dataset}.{self.label}"
                    raise InputError(f"{where}: {one_line(error, {name: value})}") from None
            named = trial_name(override)
            replicas += [Replica(named, seed, **parts, changes=override) for seed in self.seeds]
        return replicas

    def _owner(self, name: str, parts: Mapping[str, Hyperparameters]) -> str:
        """The one part that a field of a trial belongs to."""
        owners = [key for key, part in parts.items() if name in part.searched]
        in_steps = find("network", self.network.name).trained_in_steps
        if len(owners) > 1 and name in OF_STEPS and not in_steps:
            owners.remove("protocol")
        if not owners:
            fields = set().union(*(part.searched for part in parts.values()))
            raise unknown_name(f"field of a trial of {self.dataset}.{self.label}", name, fields)
        if len(owners) > 1:
            raise InputError(
                f"{self.dataset}.{self.label}: {name} is a field of its "
                f"{' and its '.join(owners)}, allowed: written as a field of one of them, not as a "
                "setting or trial of the cell"
            )
        return owners[0]

    @model_validator(mode="after")
    def _search_fits(self, info: Any) -> "Cell":
        if is_outline(info):
            return self
        for stage in self.search:
            self.replicas(stage.samples)
        if self.search and not self.decides:
            raise InputError("search_by: missing, and no selection is a criterion")
        from robust_fairness.metrics.criteria import Criterion

        guided = any(stage.sampler == "tpe" for stage in self.search)
        if guided and Criterion.parse(self.decides).constraint:
            raise InputError(
                f"search_by: {self.decides!r} cannot guide sampler tpe, since it compares trials "
                "with one another, allowed: a metric alone"
            )
        return self

    @property
    def budget(self) -> int:
        """Number of trials that are configured, the default one among them."""
        configured = sum(bool(trial) for trial in self.trials)
        return 1 + configured + sum(stage.size for stage in self.search)

    @property
    def criterion(self) -> str:
        """The first criterion that chooses one trial; ``every`` where there is none."""
        from robust_fairness.metrics.criteria import EVERY

        return next((name for name in self.selections if name != EVERY), EVERY)

    @property
    def decides(self) -> str:
        """The criterion that decides between the stages of the search; "" where there is none."""
        from robust_fairness.metrics.criteria import EVERY

        criteria = [name for name in (self.search_by, *self.selections) if name]
        return next((name for name in criteria if name != EVERY), "")


def _changed(part: Any, fields: Mapping[str, Any]) -> Any:
    """Hyperparameters with the values of those fields that are theirs."""
    for name, value in fields.items():
        if name in part.searched:
            part = part.changed(name, value)
    return part


def _training(value: Any, info: Any) -> Any:
    if is_outline(info):
        return Settings()
    from robust_fairness.bench.generation.fitting import GeneratorParameters

    return GeneratorParameters.model_validate(value)


class GeneratorConfig(Settings):
    """A generator of images, trained on a dataset or read from a file.

    Attributes:
        training: how it is trained, ``generation.fitting.GeneratorParameters``.
        file: the safetensors file of a generator that was trained elsewhere, or ``digits``, which
            is part of the package.
        source: the dataset of real images, if there is one.
        reference: the classifier of real images that is used to assess generated images; None
            without a source.
    """

    name: str
    training: Annotated[SerializeAsAny[BaseModel], BeforeValidator(_training)] = Field(
        default={}, validate_default=True
    )
    file: Path | None = None
    source: Annotated[Named, named("dataset")] | None = None
    reference: Cell | None = None


class Running(Settings):
    """What a dataset says about its run as a whole.

    Attributes:
        seeds: number of seeds; each has its own split where the source has several.
        contact_sheet: whether images of every class are drawn, or the attribute whose values are.
        embedding_planes: labels of cells whose embeddings of validation rows are drawn.
        facets: facts by which reports filter and group.
        budget: number of trials that each cell has; None where they may differ.
        margin: change of a gap up to which the report calls it held.
    """

    seeds: int = Field(1, ge=1, le=MOST_SEEDS)
    contact_sheet: bool | str = False
    embedding_planes: tuple[str, ...] = ()
    facets: Facets = {}
    budget: int | None = Field(None, ge=1, le=MOST_COUNT)
    margin: float = Field(0.05, gt=0, lt=1)


class DatasetConfig(Running):
    """A dataset with everything that runs on it.

    Attributes:
        source: the plug-in that reads or generates it.
        generator: what makes its images, if they are generated.
        base: its name in the configuration, which the trainings of a design share.
        domains: the domains that are trained on; None where all rows are alike.
    """

    name: str
    source: Annotated[Named, named("dataset")]
    test_sets: tuple[TestSet, ...] = ()
    cells: tuple[Cell, ...] = ()
    generator: GeneratorConfig | None = None
    base: str = ""
    domains: Domains | None = None

    def trained_on(self, name: str, domains: Domains, facts: Mapping[str, str]) -> "DatasetConfig":
        """The dataset trained on some domains, under another name; ``facts`` are further facets."""
        cells = [
            cell.model_copy(update={"dataset": name, "facets": {**facts, **cell.facets}})
            for cell in self.cells
        ]
        changes = {"name": name, "domains": domains, "facets": {**facts, **self.facets}}
        return self.model_copy(update={**changes, "cells": tuple(cells)})

    @property
    def drawn_cells(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.label in self.embedding_planes)


class Experiment(Settings):
    """The datasets and cells of a run."""

    datasets: tuple[DatasetConfig, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for dataset in self.datasets for cell in dataset.cells)

    @property
    def generators(self) -> tuple[GeneratorConfig, ...]:
        """The generators of its datasets, each once."""
        result = [dataset.generator for dataset in self.datasets if dataset.generator]
        return tuple({generator.name: generator for generator in result}.values())

    def narrowed(self, selected: Mapping[str, Any]) -> "Experiment":
        """The part of the experiment that names and a number of ``seeds`` select.

        Names are those of ``datasets``, ``methods`` (labels of cells) and ``shifts``, comma
        separated or lists; the default is everything.
        """
        for axis in selected:
            if axis not in AXES:
                raise unknown_name("axis of the grid", axis, AXES)
        known = [name for d in self.datasets for name in (d.name, d.base)]
        datasets = _selected("dataset", selected.get("datasets"), known)
        methods = _selected("method", selected.get("methods"), [c.label for c in self.cells])
        shifts = _selected(
            "shift", selected.get("shifts"), [t.called for d in self.datasets for t in d.test_sets]
        )
        number, digits = str(selected.get("seeds", 1)), len(str(MOST_SEEDS))
        is_number = number.isdigit() and len(number) <= digits
        if selected.get("seeds") is not None and not (is_number and 1 <= int(number) <= MOST_SEEDS):
            raise InputError(
                f"seeds: {number[:80]}, allowed: a whole number from 1 to {MOST_SEEDS:,}"
            )
        kept = []
        for dataset in self.datasets:
            cells = [cell for cell in dataset.cells if cell.label in methods]
            if not cells or not {dataset.name, dataset.base} & datasets:
                continue
            test_sets = tuple(item for item in dataset.test_sets if item.called in shifts)
            seeds = dataset.seeds if selected.get("seeds") is None else int(number)
            places = {item.name: (item.called, item.severity) for item in test_sets}
            changes = {"test_sets": places, "seeds": tuple(range(seeds))}
            changed = [cell.model_copy(update=changes) for cell in cells]
            parts = {"seeds": seeds, "test_sets": test_sets, "cells": tuple(changed)}
            kept.append(dataset.model_copy(update=parts))
        if not kept:
            raise InputError("grid: none of the selected datasets has a selected method")
        return self.model_copy(update={"datasets": tuple(kept)})


def _selected(kind: str, selected: Any, allowed: list[str]) -> set[str]:
    if selected is None:
        return set(allowed)
    given = selected.split(",") if isinstance(selected, str) else list(selected)
    chosen = [str(name).strip() for name in given]
    for name in chosen:
        if name not in allowed:
            raise unknown_name(f"{kind} of the grid", name, set(allowed))
    return set(chosen)


def trial_name(override: Mapping[str, Any]) -> str:
    """Name of a trial by what it changes, for example ``explicit=texture+texture_color``."""
    shown = {
        name: "+".join(map(str, value)) if isinstance(value, list | tuple) else value
        for name, value in override.items()
    }
    return ",".join(f"{name}={value}" for name, value in shown.items()) or DEFAULT_TRIAL


@dataclass(frozen=True)
class Replica:
    """One training: a trial and a seed."""

    trial: str
    seed: int
    method: Any
    network: BaseModel
    protocol: Protocol
    changes: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def split(self, splits: Sequence[str]) -> str:
        """Name of the split of this replica; splits are assigned to seeds cyclically."""
        return splits[self.seed % len(splits)]


def require_replicas(replicas: Sequence[Replica]) -> None:
    """Raise an error if two trials have the same name."""
    counts = Counter(f"{replica.trial} (seed {replica.seed})" for replica in replicas)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise InputError(f"trials: defined twice: {', '.join(twice)}; each must be defined once")


def used_by(experiment: Experiment) -> dict[str, list[str]]:
    """Sorted names of datasets, shifts, methods, networks, metrics and so on, by kind.

    Trials count; ``augmentation`` is that of training, and ``generator`` the kind of generator.
    """
    from robust_fairness.metrics.criteria import scored_by

    used: defaultdict[str, set[str]] = defaultdict(set)
    cells = list(experiment.cells)
    for dataset in experiment.datasets:
        _note_plugins([dataset.source, *dataset.test_sets], used)
    for generator in experiment.generators:
        used["generator"].add("edm")  # the only kind
        _note_plugins(generator.source, used)
        cells += [generator.reference] if generator.reference else []
    for cell in cells:
        used["metric"] |= {*cell.metrics, *(item.metric for item in scored_by(cell.selections))}
        used["method"].add(cell.method.name)
        used["network"].add(cell.network.name)
        _note_plugins(cell.postprocessing, used)
        samples = [sample for stage in cell.search for sample in stage.samples]
        naming = [
            change
            for change in (*cell.trials, *samples)
            if any(isinstance(value, str | Mapping) for value in change.values())
        ]
        for replica in cell.model_copy(update={"seeds": (0,)}).replicas([{}, *naming]):
            _note_plugins([replica.method, replica.network, replica.protocol], used)
    return {kind: sorted(names) for kind, names in used.items()}


def _note_plugins(value: Any, used: dict[str, set[str]]) -> None:
    """Note the plug-ins in a value at any depth, and the augmentation of a protocol."""
    if isinstance(value, Named):
        used[value.kind].add(value.name)
        _note_plugins(value.parameters, used)
    elif isinstance(value, BaseModel):
        if isinstance(value, Protocol) and value.augmentation != "none":
            used["augmentation"].add(value.augmentation)
        classifier = getattr(value, "classifier", "")  # of embeddings: a network, or ``linear``
        if classifier and classifier in names("network"):
            used["network"].add(classifier)
        _note_plugins([getattr(value, name) for name in type(value).model_fields], used)
    elif isinstance(value, Mapping):
        _note_plugins([*value.values()], used)
    elif isinstance(value, list | tuple):
        for item in value:
            _note_plugins(item, used)
