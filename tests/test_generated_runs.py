"""Whole runs with generators: killed and completed, given as files, refused."""

import signal
import time
from pathlib import Path

import pandas as pd
import pytest

from robust_fairness.bench.generation import unet
from robust_fairness.bench.generation.generator import Generator, GeneratorSettings, load
from robust_fairness.catalog.arrays import SamplesDataset
from tests.project import Project
from tests.test_runs import SMOKE, contents, manifest

GENERATED = (*SMOKE, "--datasets=digits_extend", "--methods=resnet20")
OWN = "own.safetensors"


@pytest.fixture
def project(tmp_path) -> Project:
    """A copy of the project."""
    return Project.copied_to(tmp_path)


def chunks(project: Project) -> dict[Path, tuple[int, int]]:
    """The finished chunks of the training images, with their inodes and times."""
    folder = project.root / "data" / "checkpoints" / "digits_extend.samples"
    paths = sorted(folder.rglob("*.safetensors"))
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def wait_for_chunks(project: Project, count: int, *words: str):
    """Start ``kedro`` and wait for a number of chunks.

    Returns:
        The process, which goes on, and the chunks there were.
    """
    child = project.start(*words)
    deadline = time.monotonic() + 240
    while len(paths := chunks(project)) < count:
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    return child, paths


def test_run_killed_while_it_generates_is_completed_with_the_same_bits(project):
    """Finished chunks are taken as they are, and nothing is kept once the samples are saved."""
    sizes = {"train_rows": 300, "val_rows": 20, "test_rows": 20, "batch": 10, "chunk": 10}
    project.configure("smoke/parameters.yml", {"datasets": {"digits_extend": sizes}})
    project.kedro(*GENERATED, "--run-id", "whole")

    child, _ = wait_for_chunks(project, 8, *GENERATED, "--run-id", "killed")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kept = chunks(project)
    assert 8 <= len(kept) < 34
    assert not list((project.root / "data").rglob("samples.safetensors/killed/*"))
    trained = project.file("digits_edm/generator.safetensors", "killed").stat().st_mtime_ns

    completed = (*GENERATED, "--run-id", "killed", "--only-missing-outputs")
    child, paths = wait_for_chunks(project, len(kept) + 1, *completed)
    assert paths.items() >= kept.items()
    out, err = child.communicate()
    assert child.returncode == 0, out + err
    generator = project.file("digits_edm/generator.safetensors", "killed")
    assert generator.stat().st_mtime_ns == trained

    assert contents(project, "killed") == contents(project, "whole")
    for name in ("digits_extend/samples.safetensors", "shifted/extend_45.safetensors"):
        both = [project.file(name, run).read_bytes() for run in ("whole", "killed")]
        assert both[0] == both[1]
    assert not list((project.root / "data" / "checkpoints").rglob("*.safetensors"))


def save_generator(project: Project, classes: tuple[str, ...] = tuple("0123456789")) -> str:
    """An untrained generator instead of one that was trained elsewhere; its hash."""
    network = unet.UNetParameters(channels=(8, 16), groups=4)
    settings = GeneratorSettings.model_validate(
        {"classes": classes, "shape": (1, 8, 8), "network": network, "sampler": {"steps": 2}}
    )
    path = project.root / OWN
    Generator(settings, settings.build().unet.state_dict(), "cpu").save(path)
    return load(path).fingerprint


def use_files(project: Project) -> None:
    """Two datasets of generators that are files, of which one has a reference classifier."""
    reference = {"network": "digits_resnet", "protocol": "digits"}
    sizes = {"source": "generated", "train_rows": 40, "val_rows": 20, "test_rows": 20}
    sizes |= {"batch": 20, "chunk": 20, "subset": {"shift": {"name": "extend"}, "severity": 0}}
    project.configure(
        "base/parameters.yml",
        {
            "generators": {
                "judged_file": {"file": OWN, "source": "digits", "reference": reference},
                "lone_file": {"file": OWN},
            },
            "datasets": {
                "judged": {"generator": "judged_file", **sizes},
                "lone": {"generator": "lone_file", **sizes},
            },
        },
    )
    dataset = {
        "protocol": "digits",
        "network": "digits_resnet",
        "contact_sheet": True,
        "metrics": ["accuracy"],
        "shifts": {"extend": [45], "overlap": [30], "contrast": [1]},
        "methods": {"erm": {}},
    }
    experiment = {"seeds": 1, "datasets": {"judged": dataset, "lone": dataset}}
    (project.root / "conf" / "smoke" / "experiment.yml").unlink()
    project.configure("smoke/experiment.yml", experiment)


def test_a_generator_may_be_a_file_with_real_images_for_a_reference_classifier_or_without(
    project,
):
    """Both run through to the report; there is no reference classifier without real images."""
    fingerprint = save_generator(project)
    use_files(project)
    project.kedro(*SMOKE, "--run-id", "one")
    test_sets = {("none", 0.0), ("extend", 45.0), ("overlap", 30.0), ("contrast", 1.0)}
    for name, spaces, judged in (("judged", {"pixels", "features"}, 1), ("lone", {"pixels"}, 0)):
        distances = pd.read_parquet(project.file(f"{name}/distances.parquet", "one"))
        assert set(distances["space"]) == spaces
        assert len(distances) == len(spaces) * len(test_sets)
        places = zip(distances["shift"], distances["severity"], strict=True)
        assert set(places) == test_sets
        assessed = list((project.root / "data").rglob(f"{name}/generator_quality.parquet/one/*"))
        assert len(assessed) == judged
        for path in assessed:
            quality = pd.read_parquet(path)
            assert set(quality["generator"]) == {"judged_file"} and len(quality) == len(test_sets)
        samples = SamplesDataset(
            filepath=str(project.file(f"{name}/samples.safetensors", "one"))
        ).load()
        assert samples.sources == {f"{name}_file": fingerprint}
        assert project.file(f"{name}/contact_sheet.png", "one").stat().st_size
        assert project.file(f"{name}_file/sample_grid.png", "one").stat().st_size
    metrics = project.metrics("one")
    assert set(metrics["dataset"]) == {"judged", "lone"}
    assert set(zip(metrics["shift"], metrics["severity"], strict=True)) == test_sets
    # both were made by the same file: same draws, same images
    both = [project.file(f"{name}/erm/models.safetensors", "one") for name in ("judged", "lone")]
    assert both[0].read_bytes() == both[1].read_bytes()
    assert not list((project.root / "data").rglob("loss.parquet/one/*"))
    assert project.file("report.html", "one").stat().st_size
    assert manifest(project, "one")["state"] == "finished"


def test_mistakes_are_one_line_before_the_first_node(project):
    """Nothing is written."""
    messages = {
        "generators.digits_edm.training.picturez=3": (
            "training.picturez of generator 'digits_edm': Extra inputs"
        ),
        "datasets.digits_extend.generator=digits_emd": (
            "Unknown generator 'digits_emd' for dataset 'digits_extend'"
        ),
        "datasets.digits_extend.chunk=33": "chunk: 33 places, allowed: a multiple",
    }
    commands = [f"{' '.join(GENERATED)} --params={change}" for change in messages]
    said = project.commands(*commands, status=1)
    for command, message in zip(commands, messages.values(), strict=True):
        assert message in said[command]
        assert "Traceback" not in said[command]
    assert not list((project.root / "data").rglob("*.safetensors"))


def test_latents_of_a_dataset_that_is_read_are_refused_before_the_first_node(project):
    """It has none."""
    shifts = {"datasets": {"diabetes": {"shifts": {"extend": [15]}}}}
    project.configure("smoke/experiment.yml", shifts)
    said = project.kedro(*SMOKE, status=1)
    assert (
        "Shift 'extend' does not apply to dataset 'diabetes', whose data are of kind 'table'"
        in said
    )
    assert "Traceback" not in said
    assert not list((project.root / "data").rglob("*.safetensors"))


def test_a_file_that_does_not_fit_fails_alone(project):
    """Of other classes than the real images: refused; without real ones it is good."""
    save_generator(project, classes=("cat", "dog"))
    use_files(project)
    said = project.kedro(*SMOKE, "--run-id", "one", status=1)
    assert "judged_file.read: own.safetensors: 2 classes (cat, dog), allowed: 10" in said
    assert "Traceback" not in said
    assert set(project.metrics("one")["dataset"]) == {"lone"}
