"""A disk that is full at any byte: the old content or the new one, and no remains."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from kedro.io import DatasetError
from plotly import graph_objects
from safetensors import SafetensorError

from robust_fairness.bench.compute.checkpoints import Checkpoint
from robust_fairness.bench.generation import generator
from robust_fairness.catalog import files
from robust_fairness.runs import provenance
from tests.files import figure_file, text_file

MANIFEST = dict.fromkeys(provenance.REQUIRED, "") | {"run_id": "one"}


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """A limit on the size of files, which the kernel reports to every library that writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def writers(folder: Path) -> dict[str, tuple[Path, Any]]:
    """Files, and what writes a value of some size to them."""
    table, text, figure = folder / "t.parquet", folder / "t.html", folder / "f.json"
    weights, checkpoint = folder / "g.safetensors", Checkpoint("toy.erm", "aa")
    manifest = provenance.manifest_path("one")
    return {
        "table": (
            table,
            lambda n: files.table(filepath=str(table)).save(pd.DataFrame({"x": np.arange(n)})),
        ),
        "text": (text, lambda n: text_file(filepath=str(text)).save("x" * n)),
        "figure": (
            figure,
            lambda n: figure_file(filepath=str(figure)).save(
                graph_objects.Figure(layout={"title": "x" * n})
            ),
        ),
        "weights": (weights, lambda n: generator.write(weights, {}, {"w": torch.zeros(n)})),
        "checkpoint": (checkpoint.path, lambda n: checkpoint.save({"w": torch.zeros(n)})),
        "manifest": (manifest, lambda n: provenance.write_manifest({**MANIFEST, "x": "x" * n})),
    }


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("kind", sorted(writers(Path())))
def test_permissions_follow_the_umask(tmp_path, monkeypatch, kind, mask):
    """Whatever the library that writes the file does: safetensors keeps it to the owner."""
    monkeypatch.chdir(tmp_path)
    path, write = writers(tmp_path)[kind]
    before = os.umask(mask)
    try:
        write(10)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("kind", sorted(writers(Path())))
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path, write = writers(tmp_path)[kind]
    write(100)
    before = path.read_bytes()
    for size in (0, 1, 60, 500):
        with room_for(size), pytest.raises((OSError, DatasetError, SafetensorError)):
            write(100_000)
        assert path.read_bytes() == before
        assert list(path.parent.glob(".*.part")) == []
    write(100_000)
    assert path.read_bytes() != before
