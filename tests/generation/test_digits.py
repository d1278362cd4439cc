"""The generator of digits that the package contains, and the command that trains it."""

from pathlib import Path

import pytest
import torch

from robust_fairness.bench.generation.generator import BUNDLED, load
from tests.generation.conftest import recognised
from tests.modules import module

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "digits_generator.py"


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return module(SCRIPT)


def test_bundled_digits_are_recognised():
    assert recognised(load(Path("digits"))) > 0.95
    assert BUNDLED["digits"].stat().st_size < 400_000


def test_command_trains_the_bundled_generator(script, tmp_path, monkeypatch):
    """Its settings; its weights are those of its own training, with half the precision."""
    monkeypatch.setitem(script.SETTINGS, "images", 128)
    generator = script.trained()
    script.save(generator, tmp_path / "digits.safetensors")
    trained, bundled = load(tmp_path / "digits.safetensors"), load(Path("digits"))
    assert trained.settings == bundled.settings == generator.settings
    for name, weight in generator.weights.items():
        torch.testing.assert_close(trained.weights[name], weight, rtol=2**-11, atol=1e-7)
    assert not list(tmp_path.rglob("checkpoints/*"))


@pytest.mark.slow
def test_training_again_gives_the_bundled_quality(script):
    assert recognised(script.trained()) > 0.95
