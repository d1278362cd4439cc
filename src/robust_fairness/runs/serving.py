"""The trained replicas of a cell behind MLflow's plain interface, loaded without pickle.

MLflow keeps a folder with its own description of the model and, in ``data/replicas``, what is
written here: ``models.safetensors`` as the catalog writes it, and ``model.json``. To load it,
MLflow imports this module and calls ``_load_pyfunc``: no Python object is ever unpickled.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from robust_fairness import __version__
from robust_fairness.catalog.arrays import ModelsDataset
from robust_fairness.core.devices import device_named
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.experiment.parameters import CellParameters
from robust_fairness.samples import Samples
from robust_fairness.training.records import Fitted

if TYPE_CHECKING:
    pass

MODELS, ABOUT = "models.safetensors", "model.json"
MEAN = "mean_over_seeds"
GREY = 128  # of the example picture


class About(BaseModel):
    """What ``model.json`` tells of the model beside its weights.

    Attributes:
        dataset: name of the dataset in the grid.
        method: label of the cell.
        network: what tables call the network.
        selection: the criterion that chose the trial.
        trial: name of the trial.
        seeds: one replica each, in the order of the outputs.
        classes: names of the classes; empty for a continuous outcome.
        features: names of the columns; empty of pictures.
        shape: of one row.
        package: version of ``robust_fairness`` that wrote it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    def samples(self, x: np.ndarray) -> Samples:
        """Rows of which nothing is known but their inputs ``[n, ...]``."""
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
    """The replicas of one trial, one a seed, with their preprocessing inside.

    Args:
        fitted: the replicas, in the order of ``about.seeds``.
        about: what they predict of what.
        device: where to predict: ``auto``, ``cpu`` or ``cuda``.

    Raises:
        InputError: there is no such device.
    """

    def __init__(self, fitted: Sequence[Fitted], about: About, device: str = "cpu") -> None:
        from robust_fairness.training.prediction import Predictor

        self.about = about
        nothing = about.samples(np.empty((0, *about.shape), self._dtype))
        self._predictor: Predictor = Predictor(fitted, nothing, device_named(device, "device"))

    @property
    def _dtype(self) -> type[np.generic]:
        """Of inputs: pictures have three axes and whole numbers."""
        return np.float32 if len(self.about.shape) == 1 else np.uint8

    def predict(self, data: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """What every replica predicts.

        Args:
            data: rows as the dataset has them, before preprocessing: a data frame with the
                features as columns, in any order, or an array ``[n, d]``; uint8 pictures
                ``[n, c, h, w]``.
            params: ``mean_over_seeds``: whether the mean over replicas is asked for.

        Returns:
            float32 probabilities ``[n, replica, class]``, or outcomes in their own units
            ``[n, replica]``; without the replica axis for the mean.

        Raises:
            InputError: a column is missing, rows have another shape or type, or a number is not
                finite.
        """
        from scipy.special import softmax

        x = self._inputs(data)
        outputs = np.moveaxis(self._predictor(self.about.samples(x)), 0, 1)
        found = softmax(outputs, axis=-1) if self.about.classes else outputs[..., 0]
        averaged: np.ndarray = found.mean(1) if (params or {}).get(MEAN) else found
        return averaged

    def _inputs(self, data: Any) -> np.ndarray:
        """The rows as one array, checked."""
        about = self.about
        if isinstance(data, pd.DataFrame) and about.features:
            missing = [name for name in about.features if name not in data]
            if missing:
                raise unknown_name("column", missing[0], map(str, data.columns))
            data = data[list(about.features)].to_numpy()
        found = np.asarray(data)
        if found.shape[1:] != about.shape:
            raise InputError(
                f"rows of shape {found.shape[1:]}, allowed: {about.shape}, as in {about.dataset}"
            )
        if self._dtype is np.uint8:
            if found.dtype != np.uint8:
                raise InputError(f"pictures of {found.dtype}, allowed: uint8, 0 to 255")
            return found
        x = found.astype(np.float32)
        bad = np.argwhere(~np.isfinite(x))
        if len(bad):
            row, column = bad[0]
            name = about.features[column] if about.features else column
            raise InputError(f"row {row}, column {name}: not finite, allowed: finite numbers")
        return x

    def get_raw_model(self) -> "Served":
        """The model itself, which takes arrays where MLflow's own signature asks for columns."""
        return self


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> Served:
    """What MLflow calls to load the model.

    Args:
        path: the folder that ``save`` has filled, without MLflow's own files.
        model_config: ``device`` to predict on, the CPU unless given.

    Raises:
        InputError: a file is missing or corrupted.
    """
    try:
        about = About.model_validate_json((Path(path) / ABOUT).read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{Path(path) / ABOUT}: cannot be read ({type(error).__name__})") from None
    fitted = ModelsDataset(filepath=str(Path(path) / MODELS)).load()
    return Served(fitted, about, (model_config or {}).get("device", "cpu"))


def save(
    folder: Path,
    cell: CellParameters,
    samples: Samples,
    models: Sequence[Fitted],
    chosen: pd.DataFrame,
) -> bool:
    """Write a model that ``mlflow.pyfunc.load_model`` loads; whether there is one.

    It holds the trial that the cell's first criterion chose, with all seeds: of cells that keep
    every trial, the first one. The input example is made up: no row of the dataset leaves it.
    Networks that answer questions have none, since their inputs lie in files of their own.

    Args:
        folder: where to, not there yet.
        cell: the cell's settings.
        samples: the dataset that it was trained on.
        models: all its replicas.
        chosen: ``tables.SELECTION``.
    """
    if samples.questions is not None or isinstance(samples.x, dict):
        return False
    from mlflow.models import ModelSignature
    from mlflow.types import DataType, ParamSchema, ParamSpec

    with warnings.catch_warnings():  # MLflow tells of its own chat models when it is imported
        warnings.simplefilter("ignore", UserWarning)
        from mlflow.pyfunc import save_model

    from robust_fairness.core.registry import find_module
    from robust_fairness.models.base import description

    criterion = cell.criterion
    trial = chosen[chosen["selection"] == criterion]["trial"].iloc[0]
    fitted = [one for one in models if one.trial == trial]
    network = dict(fitted[0].network)
    name = network.pop("name")
    about = About(
        dataset=cell.dataset,
        method=cell.label,
        network=description(name, find_module("network", name).Parameters.model_validate(network)),
        selection=criterion,
        trial=trial,
        seeds=tuple(one.seed for one in fitted),
        classes=samples.classes,
        features=samples.features,
        shape=samples.x.shape[1:],
    )
    data = folder.with_name("replicas")
    ModelsDataset(filepath=str(data / MODELS)).save(fitted)
    (data / ABOUT).write_text(about.model_dump_json(indent=2))
    example = _example(about, fitted[0])
    save_model(
        folder,
        loader_module=__name__,
        data_path=str(data),
        input_example=example,
        signature=ModelSignature(
            *_schemas(about), ParamSchema([ParamSpec(MEAN, DataType.boolean, False)])
        ),
        model_config={"device": "cpu"},
        pip_requirements=[f"robust-fairness=={__version__}"],
        metadata=about.model_dump(include={"dataset", "method", "network", "selection", "trial"}),
    )
    return True


def _schemas(about: About) -> tuple[Any, Any]:
    """MLflow's description of inputs and outputs; named features are columns."""
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec

    if about.features:
        inputs = Schema([ColSpec(DataType.double, name) for name in about.features])
    else:
        kind = np.float32 if len(about.shape) == 1 else np.uint8
        inputs = Schema([TensorSpec(np.dtype(kind), (-1, *about.shape))])
    shape = (-1, len(about.seeds), *([len(about.classes)] if about.classes else []))
    return inputs, Schema([TensorSpec(np.dtype(np.float32), shape)])


def _example(about: About, fitted: Fitted) -> Any:
    """A row that is nobody's: where the preprocessing has its centre, or a grey picture."""
    if len(about.shape) > 1:
        return np.full((1, *about.shape), GREY, dtype=np.uint8)
    row = fitted.state["preprocessing.centre"].reshape(1, -1)
    if not about.features:
        return row.astype(np.float32)
    return pd.DataFrame(row.astype(np.float64), columns=list(about.features))
