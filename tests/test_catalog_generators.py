"""The catalog's class of generators, on a stand-in that keeps their interface."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from kedro.io import DataCatalog, DatasetError
from kedro.io.core import Version
from safetensors import safe_open
from safetensors.numpy import save_file

from robust_fairness.catalog.generators import MODULE, GeneratorDataset
from robust_fairness.core.errors import InputError


@dataclass
class Generator:
    """Weights and names of classes in one safetensors file, as a trained one has them."""

    classes: tuple[str, ...]
    weights: np.ndarray

    def save(self, path: Path) -> None:
        """Write the file; weights that are not finite break off after it was begun."""
        path.write_bytes(b"begun")
        if not np.isfinite(self.weights).all():
            raise InputError("generator: weights are not finite")
        save_file({"weights": self.weights}, path, {"settings": json.dumps(self.classes)})


def load(path: Path) -> Generator:
    """Read the file."""
    with safe_open(path, framework="numpy") as file:
        classes = tuple(json.loads(file.metadata()["settings"]))
        return Generator(classes, file.get_tensor("weights"))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """The stand-in takes the place of the module of generators."""
    module = ModuleType(MODULE)
    module.load = load
    monkeypatch.setitem(sys.modules, MODULE, module)
    return module


def make_generator(value: float = 0.5) -> Generator:
    """A small one."""
    return Generator(("zero", "one"), np.full((2, 3), value, np.float32))


def test_a_generator_comes_back_from_the_catalog(tmp_path):
    """Under a pattern, with versions, as one file."""
    path = tmp_path / "{generator}" / "generator.safetensors"
    catalog = DataCatalog.from_config(
        {
            "{generator}_generator": {
                "type": "robust_fairness.catalog.generators.GeneratorDataset",
                "filepath": str(path),
                "versioned": True,
                "metadata": {"kedro-viz": {"layer": "models"}},
            }
        },
        save_version="run",
    )
    catalog.save("digits_generator", make_generator())
    loaded = catalog.load("digits_generator")
    assert loaded.classes == ("zero", "one")
    np.testing.assert_array_equal(loaded.weights, make_generator().weights)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [
        tmp_path / "digits" / "generator.safetensors" / "run" / "generator.safetensors"
    ]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    """Nothing half written takes its place, or stays beside it."""
    path = tmp_path / "generator.safetensors"
    dataset = GeneratorDataset(filepath=str(path))
    dataset.save(make_generator())
    before = path.read_bytes()
    with pytest.raises(DatasetError, match="weights are not finite"):
        dataset.save(make_generator(np.nan))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_version_of_a_failed_save_does_not_count(tmp_path):
    """The newest is the last that was written whole."""
    path = str(tmp_path / "generator.safetensors")
    GeneratorDataset(filepath=path, version=Version(None, "1")).save(make_generator())
    with pytest.raises(DatasetError):
        GeneratorDataset(filepath=path, version=Version(None, "2")).save(make_generator(np.inf))
    newest = GeneratorDataset(filepath=path, version=Version(None, None))
    assert newest.resolve_load_version() == "1"


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"\x80" + b]
)
def test_a_corrupted_or_missing_file_is_named(tmp_path, damage):
    """In one line with its path."""
    path = tmp_path / "generator.safetensors"
    dataset = GeneratorDataset(filepath=str(path))
    with pytest.raises(DatasetError, match=r"generator\.safetensors: no such file"):
        dataset.load()
    dataset.save(make_generator())
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetError, match=r"generator\.safetensors: corrupted file") as error:
        dataset.load()
    assert "\n" not in str(error.value)


def test_an_error_of_the_generator_that_names_the_file_is_shown_as_it_is(tmp_path, stand_in):
    """It says what does not fit, and is no matter of corruption."""
    path = tmp_path / "generator.safetensors"
    dataset = GeneratorDataset(filepath=str(path))
    dataset.save(make_generator())

    def refuse(path: Path) -> Generator:
        raise InputError(f"{path}: classes: 2, allowed: 10")

    stand_in.load = refuse
    with pytest.raises(DatasetError) as error:
        dataset.load()
    assert str(error.value) == f"{path}: classes: 2, allowed: 10"


def test_the_class_alone_imports_no_network():
    """What lists the catalog need not wait for torch or diffusers."""
    code = (
        "import sys, robust_fairness.catalog.generators;"
        "print([name for name in ('torch', 'diffusers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
