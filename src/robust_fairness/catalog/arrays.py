"""Arrays in safetensors files, with everything else as JSON in the header."""

from abc import abstractmethod
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.catalog.files import TablePreview, rows_of
from robust_fairness.catalog.mapping import Arrays, mapped, parts_of, save_parts
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import sha256_of

OF_SPLIT = "split_attributes/"  # before the name of a split: its table of attributes

INPUTS = "x/"  # before the names of the arrays of ``x``

OPTIONAL = ("perturbation", "sample_weight", "units")  # arrays of samples

IN_HEADER = ("features", "columns", "classes", "sensitive", "conditioning", "domain")


class ArraysDataset(AtomicDataset):
    """An object that comes apart into arrays by name and a rest that JSON can hold."""

    @abstractmethod
    def split(self, data: Any) -> tuple[Arrays, Any]:
        """Arrays by name, and the rest."""

    @abstractmethod
    def join(self, arrays: Arrays, rest: Any) -> Any:
        """The object again."""

    def read(self, path: Path) -> Any:
        return self.join(*parts_of(path))

    def write(self, data: Any, path: Path) -> None:
        save_parts(*self.split(data), path)


class SamplesDataset(ArraysDataset):
    """``Samples`` in one file; categories are codes there and names in the header.

    Inputs that were read from another dataset of the same run are not written again, as those of
    the trainings of a design: the header has the name of that dataset and the checksum of its file.
    """

    def read(self, path: Path) -> Any:
        arrays, rest = parts_of(path)
        if shared := rest.get("shared"):
            file = _beside(path, shared["dataset"])
            if _checksum(file, file.stat().st_mtime_ns) != shared["sha256"]:
                raise InputError(f"{path}: {file} has its inputs and was changed")
            arrays |= {
                name: array for name, array in mapped(file)[0].items() if name.startswith(INPUTS)
            }
        return self.join(arrays, rest)

    def write(self, data: Any, path: Path) -> None:
        arrays, rest = self.split(data)
        if file := _file_of_inputs(arrays, path):
            arrays = {name: array for name, array in arrays.items() if not name.startswith(INPUTS)}
            sha256 = _checksum(file, file.stat().st_mtime_ns)
            rest["shared"] = {"dataset": _dataset_of(file), "sha256": sha256}
        save_parts(arrays, rest, path)

    def split(self, data: Any) -> tuple[Arrays, Any]:
        arrays = {f"{INPUTS}{name}": array for name, array in data.arrays.items()}
        arrays |= {"y": data.y, "id": _text_to_bytes(data.id)}
        for name in OPTIONAL:
            if getattr(data, name) is not None:
                arrays[name] = getattr(data, name)
        rest = {name: getattr(data, name) for name in IN_HEADER} | {
            "of_split": list(data.split_attributes),
            "sources": data.sources,
            "named": isinstance(data.x, dict),
            "text_id": data.id.dtype.kind == "U",
        }
        if data.questions is not None:
            rest["questions"] = asdict(data.questions)
        frames = {"attributes": data.attributes, "splits": data.splits}
        if data.downstream is not None:
            frames["downstream"] = data.downstream
        frames |= {f"{OF_SPLIT}{name}": frame for name, frame in data.split_attributes.items()}
        rest["frames"] = {}
        for kind, frame in frames.items():
            rest["frames"][kind] = {}
            for name in frame:
                column = frame[name]
                categorical = isinstance(column.dtype, pd.CategoricalDtype)
                rest["frames"][kind][name] = list(column.cat.categories) if categorical else None
                values = column.cat.codes if categorical else column
                arrays[f"{kind}/{name}"] = values.to_numpy()
        return arrays, rest

    def join(self, arrays: Arrays, rest: Any) -> Any:
        from robust_fairness.core.samples import Samples

        x = {
            name.removeprefix(INPUTS): array
            for name, array in arrays.items()
            if name.startswith(INPUTS)
        }
        frames = {}
        for kind, names in rest["frames"].items():
            columns = {}
            for name, categories in names.items():
                values = arrays[f"{kind}/{name}"]
                columns[name] = (
                    values if categories is None else pd.Categorical.from_codes(values, categories)
                )
            frames[kind] = pd.DataFrame(columns, index=range(len(arrays["y"])))
        fields: dict[str, Any] = {name: arrays.get(name) for name in OPTIONAL}
        for name in rest.keys() & IN_HEADER:
            value = rest[name]
            fields[name] = tuple(value) if isinstance(value, list) else value
        return Samples(
            x=x if rest["named"] else x["x"],
            y=arrays["y"],
            id=_bytes_to_text(arrays["id"]) if rest["text_id"] else arrays["id"],
            sources=rest["sources"],
            questions=_questions(rest["questions"]) if "questions" in rest else None,
            attributes=frames["attributes"],
            splits=frames["splits"],
            downstream=frames.get("downstream"),
            split_attributes={name: frames[f"{OF_SPLIT}{name}"] for name in rest["of_split"]},
            **fields,
        )

    def preview(self, nrows: int = 10) -> TablePreview:
        """The first rows without their inputs: labels, attributes and splits."""
        return rows_of(self.load().table(), nrows)


def _beside(path: Path, dataset: str) -> Path:
    """The samples of another dataset of the same run as those at ``path``."""
    version = path.resolve().parent
    file = version.parent
    return file.parent.parent / dataset / file.name / version.name / file.name


def _dataset_of(file: Path) -> str:
    return file.parent.parent.parent.name


def _file_of_inputs(arrays: Arrays, path: Path) -> Path | None:
    """The samples of another dataset of the same run that have all inputs of ``arrays``.

    Arrays that were read from a file are views of its memory map.
    """
    inputs = {name: array for name, array in arrays.items() if name.startswith(INPUTS)}
    files = {_mapped_file(array) for array in inputs.values()}
    file = files.pop() if len(files) == 1 else None
    if file is None or file != _beside(path, _dataset_of(file)):
        return None
    stored = mapped(file)[0]
    is_same = all(
        name in stored and _same_bits(array, stored[name]) for name, array in inputs.items()
    )
    return file if is_same else None


def _mapped_file(array: np.ndarray) -> Path | None:
    """The file that an array is a view of."""
    view: Any = array
    while isinstance(view, np.ndarray) and not isinstance(view, np.memmap):
        view = view.base
    return Path(view.filename) if isinstance(view, np.memmap) and view.filename else None


def _same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    one, other = (
        np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (first, second)
    )
    return (
        first.dtype == second.dtype and first.shape == second.shape and np.array_equal(one, other)
    )


@lru_cache(maxsize=64)
def _checksum(file: Path, modified: int) -> str:
    """SHA-256 of a file, once for each time that it was ``modified``."""
    return sha256_of(file)


def _questions(rest: Any) -> Any:
    """What questions share, from JSON."""
    from robust_fairness.core.questions import Boxes, Questions

    boxes = rest["boxes"] | {"shape": tuple(rest["boxes"]["shape"])}
    return Questions(tuple(rest["words"]), Boxes(**boxes))


def _text_to_bytes(id: np.ndarray) -> np.ndarray:  # noqa: A002 - the field's name
    """Text as UTF-8 bytes ``[n, longest]``, padded with zeros; numbers as they are."""
    if id.dtype.kind != "U":
        return id
    encoded = np.char.encode(id, "utf-8")
    return encoded.view(np.uint8).reshape(len(id), encoded.dtype.itemsize)


def _bytes_to_text(array: np.ndarray) -> np.ndarray:
    return np.char.decode(array.view(f"S{array.shape[1]}").reshape(-1), "utf-8")


class ModelsDataset(ArraysDataset):
    """The fitted replicas of a cell, ``list[Fitted]``."""

    def split(self, data: Any) -> tuple[Arrays, Any]:
        from robust_fairness.bench.training.records import to_arrays

        return to_arrays(data)

    def join(self, arrays: Arrays, rest: Any) -> Any:
        from robust_fairness.bench.training.records import Fitted, from_arrays

        return from_arrays(Fitted, arrays, rest)


class PredictionsDataset(ModelsDataset):
    """Predictions of a cell's replicas, ``list[Prediction]``."""

    def join(self, arrays: Arrays, rest: Any) -> Any:
        from robust_fairness.bench.training.records import Prediction, from_arrays

        return from_arrays(Prediction, arrays, rest)
