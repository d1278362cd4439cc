"""Trained replicas of a cell as an MLflow model, saved and loaded without pickle.

The model's folder contains MLflow's own files and, in ``data/replicas``, ``models.safetensors``
as in the catalog and ``model.json``. To load it, MLflow imports this module and calls
``_load_pyfunc``, which needs neither Kedro nor the rest of the extra ``all``.
"""

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
from robust_fairness.catalog.mapping import parts_of, save_parts
from robust_fairness.compute.devices import device_named
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.extras import extra_of
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples
from robust_fairness.training.records import Fitted, from_arrays, to_arrays

MODELS, ABOUT = "models.safetensors", "model.json"
PROBABILITIES = "probabilities"
GREY = 128  # of the example image


class About(BaseModel, extra="forbid", frozen=True):
    """Content of ``model.json``."""

    dataset: str
    method: str
    network: str
    selection: str
    trial: str
    seeds: tuple[int, ...]
    classes: tuple[str, ...]
    features: tuple[str, ...]
    shape: tuple[int, ...]
    package: str = __version__

    @property
    def dtype(self) -> type[np.generic]:
        """Type of the inputs: images have three axes and are integers."""
        return np.float32 if len(self.shape) == 1 else np.uint8

    def samples(self, x: np.ndarray) -> Samples:
        """Samples with inputs ``[n, ...]`` and without labels and attributes."""
        nothing = pd.DataFrame(index=range(len(x)))
        y = np.zeros(len(x), dtype=np.int64 if self.classes else np.float32)
        return Samples(
            x=x,
            y=y,
            attributes=nothing,
            id=np.arange(len(x)),
            splits=nothing,
            features=self.features,
            classes=self.classes,
        )


class Served:
    """The replicas of one trial, one per seed, with their preprocessing."""

    def __init__(self, fitted: Sequence[Fitted], about: About, device: str = "cpu") -> None:
        from robust_fairness.training.prediction import Predictor

        self.about = about
        empty = about.samples(np.empty((0, *about.shape), about.dtype))
        self._predictor = Predictor(fitted, empty, device_named(device, "device"))

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """Classes by name, or float32 outcomes, ``[n]``: those of the mean over replicas.

        Args:
            data: rows before preprocessing: a data frame with the features as columns, in any
                order, or an array ``[n, d]``; uint8 images ``[n, c, h, w]``.
            params: ``probabilities``: whether to return probabilities ``[n, class]`` instead.
        """
        if not self.about.classes:
            return self.by_replica(data).mean(1)
        shares = self.by_replica(data).mean(1)
        if (params or {}).get(PROBABILITIES):
            return shares
        return np.array(self.about.classes)[shares.argmax(1)]

    def by_replica(self, data: Any) -> np.ndarray:
        """float32 probabilities ``[n, replica, class]``, or outcomes ``[n, replica]``."""
        from scipy.special import softmax

        x = self._inputs(data)
        outputs = np.moveaxis(self._predictor(self.about.samples(x)), 0, 1)
        return softmax(outputs, axis=-1) if self.about.classes else outputs[..., 0]

    def _inputs(self, data: Any) -> np.ndarray:
        about = self.about
        if isinstance(data, pd.DataFrame) and about.features:
            missing = [name for name in about.features if name not in data]
            if missing:
                raise unknown_name("column", missing[0], map(str, data.columns))
            data = data[list(about.features)].to_numpy()
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
    try:
        about = About.model_validate_json((Path(path) / ABOUT).read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{Path(path) / ABOUT}: cannot be read ({type(error).__name__})") from None
    fitted = from_arrays(Fitted, *parts_of(Path(path) / MODELS))
    return Served(fitted, about, (model_config or {}).get("device", "cpu"))


def save(
    folder: Path, cell: Cell, samples: Samples, models: Sequence[Fitted], chosen: pd.DataFrame
) -> bool:
    """Save all seeds of the trial that the cell's first criterion selected (or of the first).

    The input example is synthetic: no row of the dataset is saved. Networks that answer questions
    are not saved, since their inputs are separate files.
    """
    if samples.questions is not None or isinstance(samples.x, dict):
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
    (data / ABOUT).write_text(about.model_dump_json(indent=2))
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
    from robust_fairness.core.registry import find

    criterion = cell.criterion
    selected = chosen[chosen["selection"] == criterion].drop_duplicates("seed")
    replicas = set(zip(selected["trial"], selected["seed"], strict=True))
    fitted = [model for model in models if (model.trial, model.seed) in replicas]
    parameters = dict(fitted[0].network)
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
        shape=samples.arrays["x"].shape[1:],
    )
    return fitted, about


def _schemas(about: About) -> tuple[Any, Any]:
    """MLflow schemas of inputs and outputs; named features are columns."""
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec

    if about.features:
        inputs = Schema([ColSpec(DataType.double, name) for name in about.features])
    else:
        inputs = Schema([TensorSpec(np.dtype(about.dtype), (-1, *about.shape))])
    output = np.dtype(np.str_) if about.classes else np.dtype(np.float32)
    return inputs, Schema([TensorSpec(output, (-1,))])


def _example(about: About, fitted: Fitted) -> Any:
    """A synthetic row: the centre of the preprocessing, or a grey image."""
    if len(about.shape) > 1:
        return np.full((1, *about.shape), GREY, dtype=np.uint8)
    row = fitted.state["preprocessing.centre"].reshape(1, -1)
    if not about.features:
        return row.astype(np.float32)
    return pd.DataFrame(row.astype(np.float64), columns=list(about.features))
