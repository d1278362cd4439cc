"""The project's own files keep what they promise."""

import doctest
import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
import yaml
from jaxtyping import TypeCheckError

import robust_fairness
from robust_fairness.bench.miners.base import alike
from robust_fairness.metrics import all_metrics
from robust_fairness.numbers.quantities import DEFINITIONS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(robust_fairness.__file__).parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(home|root|Users|work|opt|mnt)/\w|\b[A-Z]:\\Users\\")
INDEX_ADDRESS = re.compile(
    r"://[^\s\"'/]*(pypi|pythonhosted|devpi|artifactory|nexus)[^\s\"'/]*\."
    r"|://\S+/simple\b"
    r"|(index-url|find-links|trusted-host)[ =]+[\"']?[\w.]+[:/.]",
    re.IGNORECASE,
)


def repository_files() -> list[Path]:
    """Files that are committed, or would be by adding everything."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files belong to the project is not known")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    """Where a pattern occurs, this file's own examples of it left out."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in set(repository_files()) - {Path(__file__)}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
        if pattern.search(line.decode(errors="replace"))
    ]


@pytest.mark.parametrize(
    ("pattern", "examples"),
    [
        (MACHINE_PATH, ["cd /home/someone/x", 'ROOT = "/work/x"', r"C:\Users\me"]),
        (
            INDEX_ADDRESS,
            [
                "https://mirror.example.org/api/simple/",
                "--extra-index-url https://example.org",
                "https://files.pythonhosted.org/packages/x.whl",
            ],
        ),
    ],
    ids=["path of a machine", "package index"],
)
def test_no_file_names(pattern, examples):
    assert all(map(pattern.search, examples))
    assert lines_that_match(pattern) == []


def test_no_data_or_results_are_committed():
    data = [path for path in repository_files() if path.is_relative_to(ROOT / "data")]
    assert {path.name for path in data} <= {".gitkeep"}


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert robust_fairness.__version__ == citation["version"]
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "src/robust_fairness/__init__.py"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text()],
    ids=lambda path: path.stem,
)
def test_the_examples_in_the_docstrings_are_true(path):
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = import_module(name.removesuffix(".__init__"))
    all_metrics()  # are declared when they are first asked for
    with patch.dict(DEFINITIONS):  # without what an example declares
        result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def test_shapes_of_tensors_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="triplet row"):
        alike(torch.ones(3, dtype=torch.bool))
