"""Trained replicas of a cell as an MLflow model, saved and loaded without pickle.

The model's folder contains MLflow's own files and, in ``data/replicas``, ``models.safetensors``
as in the catalog, ``model.json`` and the checksums of both, which are compared on loading. To load
it, MLflow imports this module and calls ``_load_pyfunc``, which needs neither Kedro nor the rest of
the extra ``all``.
"""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from pydantic import BaseModel, ValidationError

from robust_fairness import __version__
from robust_fairness.auditing.read.columns import name_of_category
from robust_fairness.auditing.repair.group_thresholds import GroupThresholds, Mixtures
from robust_fairness.bench.compute.process import device_named
from robust_fairness.bench.datasets.encoding import TableColumn, columns_of, encoded
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.bench.training.records import Fitted, from_arrays, to_arrays
from robust_fairness.catalog.mapping import parts_of, save_parts
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.extras import extra_of
from robust_fairness.core.files import sha256_of
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.evaluation import probability_of_second
from robust_fairness.numbers.groups import Groups, intersection

LOGGER = logging.getLogger(__name__)
MODELS, ABOUT, CHECKSUMS = "models.safetensors", "model.json", "SHA256SUMS"
PROBABILITIES = "probabilities"
GREY = 128  # of the example image


class Rule(BaseModel, extra="forbid", frozen=True, ser_json_inf_nan="constants"):
    """Post-processing of the replicas: a mixture of thresholds per group, or one for all.

    Attributes:
        name: of the post-processing.
        attributes: columns whose values are a group; none of a common mixture.
        mixtures: of every replica, values of each group, its thresholds and their probabilities.
    """

    name: str
    attributes: tuple[str, ...]
    mixtures: tuple[tuple[tuple[tuple[str, ...], list[float], list[float]], ...], ...]

    def groups(self, data: pd.DataFrame) -> Groups:
        """Groups of rows by the columns of the attributes."""
        for name in self.attributes:
            if name not in data:
                raise unknown_name("column", name, map(str, data.columns))
        if not self.attributes:
            return Groups(np.zeros(len(data), dtype=np.int64), ((),))
        columns = [
            (name, *pd.factorize(data[name], use_na_sentinel=False)) for name in self.attributes
        ]
        return intersection(
            [
                Groups.named(codes, [name_of_category(value, name) for value in values])
                for name, codes, values in columns
            ]
        )

    def decided(self, positive: np.ndarray, groups: Groups) -> np.ndarray:
        """Probabilities of deciding class 1 ``[n, replica]`` from those of the class."""
        rules = [
            Mixtures({of: (np.array(at), np.array(share)) for of, at, share in mixture})
            for mixture in self.mixtures
        ]
        each = zip(rules, positive.T.astype(np.float64), strict=True)
        return np.stack([rule(score, groups) for rule, score in each], axis=1)


class About(BaseModel, extra="forbid", frozen=True, ser_json_inf_nan="constants"):
    """Content of ``model.json``."""

    dataset: str
    method: str
    network: str
    selection: str
    trial: str
    seeds: tuple[int, ...]
    classes: tuple[str, ...]
    features: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    shape: tuple[int, ...]
    rule: Rule | None = None
    package: str = __version__

    @property
    def dtype(self) -> type[np.generic]:
        """Type of the inputs: images have three axes and are integers."""
        return np.float32 if len(self.shape) == 1 else np.uint8

    def samples(self, x: np.ndarray) -> Samples:
        """Samples with inputs ``[n, ...]`` and without labels and attributes."""
        return Samples.unlabelled(x, self.classes, features=self.features)


class Served:
    """The replicas of one trial, one per seed, with their preprocessing."""

    def __init__(self, fitted: Sequence[Fitted], about: About, device: str = "cpu") -> None:
        from robust_fairness.bench.training.prediction import Predictor

        self.about = about
        empty = about.samples(np.empty((0, *about.shape), about.dtype))
        self._predictor = Predictor(fitted, empty, device_named(device, "device"))

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """Classes by name, or float32 outcomes, ``[n]``: those of the mean over replicas.

        Args:
            data: rows of the table: a data frame with its columns, in any order, with categories as
                text or codes and any type of numbers; an array of features ``[n, d]``; uint8
                images ``[n, c, h, w]``.
            params: ``probabilities``: whether to return probabilities ``[n, class]`` instead.

        A post-processed model needs the columns of its groups, too. Its probabilities are those of
        the decision, which is drawn at random.
        """
        if not self.about.classes:
            return self.by_replica(data).mean(1)
        shares = self.by_replica(data).mean(1)
        if (params or {}).get(PROBABILITIES):
            return shares
        decided = shares.argmax(1)
        if self.about.rule is not None:
            decided = (np.random.default_rng().random(len(shares)) < shares[:, 1]).astype(int)
        return np.array(self.about.classes)[decided]

    def by_replica(self, data: Any) -> np.ndarray:
        """float32 probabilities ``[n, replica, class]``, or outcomes ``[n, replica]``."""
        from scipy.special import softmax

        x = self._inputs(data)
        outputs = np.moveaxis(self._predictor(self.about.samples(x)), 0, 1)
        if not self.about.classes:
            return outputs[..., 0]
        shares = softmax(outputs, axis=-1)
        if self.about.rule is None:
            return shares
        if not isinstance(data, pd.DataFrame):
            raise InputError("post-processed model: an array, allowed: a frame with the groups")
        score = np.stack([probability_of_second(of) for of in outputs.swapaxes(0, 1)], axis=1)
        positive = self.about.rule.decided(score, self.about.rule.groups(data))
        return np.stack([1 - positive, positive], axis=-1)

    def _inputs(self, data: Any) -> np.ndarray:
        about = self.about
        if isinstance(data, pd.DataFrame) and about.features:
            return encoded(data, about.columns, about.features)
        rows = np.asarray(data)
        if rows.shape[1:] != about.shape:
            raise InputError(
                f"rows of shape {rows.shape[1:]}, allowed: {about.shape}, as in {about.dataset}"
            )
        if about.dtype is np.uint8:
            if rows.dtype != np.uint8:
                raise InputError(f"images of {rows.dtype}, allowed: uint8, 0 to 255")
            return rows
        x = rows.astype(np.float32)
        bad = np.argwhere(~np.isfinite(x))
        if len(bad):
            row, column = bad[0]
            name = about.features[column] if about.features else column
            raise InputError(f"row {row}, column {name}: not finite, allowed: finite numbers")
        return x

    def get_raw_model(self) -> "Served":
        """The model without MLflow's signature, which accepts data frames only."""
        return self


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> Served:
    """Load the model; called by MLflow."""
    folder = Path(path)
    try:
        recorded = (folder / CHECKSUMS).read_text(encoding="utf-8", errors="replace")
        is_unchanged = recorded == checksums(folder)
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename}: missing, as in models of version 1; log the model again"
        ) from None
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from None
    if not is_unchanged:
        raise InputError(
            f"{folder}: {ABOUT} or {MODELS} has changed since the model was saved (sha256sum "
            f"--check {CHECKSUMS} says which); log the model again"
        )
    try:
        about = About.model_validate_json((folder / ABOUT).read_bytes())
    except ValidationError:
        raise InputError(f"{folder / ABOUT}: of another version; log the model again") from None
    fitted = from_arrays(Fitted, *parts_of(folder / MODELS))
    return Served(fitted, about, (model_config or {}).get("device", "cpu"))


def checksums(folder: Path) -> str:
    """Checksums of a model's files, as ``sha256sum`` writes them."""
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in (ABOUT, MODELS))


def save(
    folder: Path, cell: Cell, samples: Samples, models: Sequence[Fitted], chosen: pd.DataFrame
) -> bool:
    """Save all seeds of the trial that the cell's first criterion selected (or of the first).

    Post-processing is a part of the model. The input example is synthetic: no row of the dataset is
    saved. Networks that answer questions are not saved, since their inputs are separate files, nor
    are post-processed models without a column for each feature and group.
    """
    if samples.questions is not None or isinstance(samples.x, dict):
        return False
    if cell.postprocessing is not None and not _has_columns(cell.postprocessing, samples):
        LOGGER.warning(
            "%s: no model is kept, post-processing %s needs a column for each feature and group",
            cell.name, cell.postprocessing.name,
        )  # fmt: skip
        return False
    from mlflow.models import ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec

    with warnings.catch_warnings():  # warnings of MLflow about its own classes
        warnings.simplefilter("ignore", UserWarning)
        from mlflow.pyfunc import save_model

    fitted, about = _selected(cell, samples, models, chosen)
    data = folder.with_name("replicas")
    data.mkdir(parents=True, exist_ok=True)
    save_parts(*to_arrays(fitted), data / MODELS)
    (data / ABOUT).write_text(about.model_dump_json(indent=2), encoding="utf-8")
    (data / CHECKSUMS).write_text(checksums(data), encoding="utf-8")
    example = _example(about, fitted[0])
    # MLflow would read the files of all installed packages to compare them with the requirement,
    # which is the version that runs: a second.
    with patch("mlflow.utils.environment.warn_dependency_requirement_mismatches"):
        save_model(
            folder,
            loader_module=__name__,
            data_path=str(data),
            input_example=example,
            signature=ModelSignature(
                *_schemas(about), ParamSchema([ParamSpec(PROBABILITIES, DataType.boolean, False)])
            ),
            model_config={"device": "cpu"},
            pip_requirements=requirements(fitted[0].network, len(about.shape) > 1),
            metadata=about.model_dump(
                include={"dataset", "method", "network", "selection", "trial"}
            ),
        )
    return True


def requirements(network: Mapping[str, Any], images: bool) -> list[str]:
    """What an environment needs to predict with a network: this package with its extras.

    An estimator, also one on embeddings, is restored by the version of scikit-learn that fitted it.
    Plug-ins of a project are not among them.
    """
    extras, pinned = {"images" if images else "train"}, []
    if "estimator" in network or network.get("classifier", "linear") != "linear":
        names = [name for name in _estimators(network) if not name.startswith("sklearn.")]
        extras |= {extra_of(name) or "train" for name in names}
        pinned = [f"scikit-learn=={version('scikit-learn')}"]
    return [f"robust-fairness[{','.join(sorted(extras))}]=={__version__}", *pinned]


def _estimators(value: Any) -> Iterator[str]:
    """The full names of an estimator and of those in its parameters."""
    if isinstance(value, Mapping):
        if isinstance(value.get("estimator"), str):
            yield value["estimator"]
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _estimators(item)


def _selected(
    cell: Cell, samples: Samples, models: Sequence[Fitted], chosen: pd.DataFrame
) -> tuple[list[Fitted], About]:
    """The replicas that the first criterion of a cell selected, and what they are."""
    criterion = cell.criterion
    selected = chosen[chosen["selection"] == criterion].drop_duplicates("seed")
    replicas = set(zip(selected["trial"], selected["seed"], strict=True))
    fitted = [model for model in models if (model.trial, model.seed) in replicas]
    parameters, rule = dict(fitted[0].network), None
    if cell.postprocessing is not None:
        rule = _rule(cell.postprocessing, samples, fitted, cell)
    network = find("network", parameters.pop("name"))
    about = About(
        dataset=cell.dataset,
        method=cell.label,
        network=network.describe(network.Parameters.model_validate(parameters)),
        selection=criterion,
        trial=" | ".join(selected["trial"].unique()),
        seeds=tuple(model.seed for model in fitted),
        classes=samples.classes,
        features=samples.features,
        columns=columns_of(samples) if samples.features else (),
        shape=samples.arrays["x"].shape[1:],
        rule=rule,
    )
    return fitted, about


def _has_columns(named: Named, samples: Samples) -> bool:
    """Whether a frame can have the features and the groups of a rule of thresholds."""
    attributes = named.parameters.attributes or samples.sensitive
    thresholds = issubclass(find("postprocessing", named.name), GroupThresholds)
    return thresholds and bool(samples.features) and not {*attributes} & {*samples.features}


def _rule(named: Named, samples: Samples, fitted: Sequence[Fitted], cell: Cell) -> Rule:
    """The post-processing of the replicas, as fitted to their validation rows."""
    from robust_fairness.bench.training.decisions import rules_of

    rules = rules_of(samples, fitted, cell)
    mixtures = [rules[model.trial, model.seed].of_group for model in fitted]
    attributes = named.parameters.attributes or samples.sensitive
    return Rule(
        name=named.name,
        attributes=() if named.parameters.common else attributes,
        mixtures=tuple(
            tuple((of, at.tolist(), share.tolist()) for of, (at, share) in mixture.items())
            for mixture in mixtures
        ),
    )


def _schemas(about: About) -> tuple[Any, Any]:
    """MLflow schemas of inputs and outputs; the columns of a table are of any type.

    MLflow would refuse int64 for numbers, and numbers for categories.
    """
    from mlflow.types import ColSpec, Schema, TensorSpec
    from mlflow.types.schema import AnyType

    if about.features:
        groups = about.rule.attributes if about.rule else ()
        names = dict.fromkeys((*(column.name for column in about.columns), *groups))
        inputs = Schema([ColSpec(AnyType(), name) for name in names])
    else:
        inputs = Schema([TensorSpec(np.dtype(about.dtype), (-1, *about.shape))])
    output = np.dtype(np.str_) if about.classes else np.dtype(np.float32)
    return inputs, Schema([TensorSpec(output, (-1,))])


def _example(about: About, fitted: Fitted) -> Any:
    """A synthetic row: centre and largest category of the preprocessing, or a grey image."""
    if len(about.shape) > 1:
        return np.full((1, *about.shape), GREY, dtype=np.uint8)
    centre = fitted.state["preprocessing.centre"]
    if not about.features:
        return centre.reshape(1, -1).astype(np.float32)
    centres = pd.Series(centre, index=list(about.features))
    row: dict[str, Any] = {}
    for column in about.columns:
        shares = [centres[f"{column.name}={value}"] for value in column.categories]
        known = column.categories[int(np.argmax(shares))] if shares else centres[column.name]
        row[column.name] = known
    if about.rule:
        row |= dict(zip(about.rule.attributes, about.rule.mixtures[0][0][0], strict=False))
    return pd.DataFrame([row])
