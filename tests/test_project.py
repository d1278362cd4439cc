"""The project's own files keep what they promise."""

import doctest
import re
import subprocess
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import torch
import yaml
from jaxtyping import TypeCheckError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import robust_fairness
from robust_fairness.miners.base import alike

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
MEBIBYTE = 1 << 20


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


def locked() -> dict[str, tuple[Requirement, str]]:
    """Requirement and full text of every entry of the lock, by normalised name."""
    text = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^[^\s#].*(?:\n[ \t]+.*)*", text, flags=re.MULTILINE)
    requirements = [(Requirement(entry.splitlines()[0].rstrip("\\ ")), entry) for entry in entries]
    return {
        canonicalize_name(requirement.name): (requirement, entry)
        for requirement, entry in requirements
    }


def declared() -> list[Requirement]:
    """Requirements of the package, its extras that are locked, and what builds it."""
    project = PYPROJECT["project"]
    locked_extras = project["optional-dependencies"].keys() - {"trees", "notebooks"}
    extras = [
        name for extra in sorted(locked_extras) for name in project["optional-dependencies"][extra]
    ]
    build = PYPROJECT["build-system"]["requires"]
    requirements = [Requirement(name) for name in project["dependencies"] + extras + build]
    return [
        requirement
        for requirement in requirements  # without extras of extras, and what bundled/ is
        if requirement.name not in (project["name"], "robust-fairness-data")
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


def test_no_file_is_larger_than_a_mebibyte():
    assert [path for path in repository_files() if path.stat().st_size > MEBIBYTE] == []


def test_no_data_or_results_are_committed():
    data = [path for path in repository_files() if path.is_relative_to(ROOT / "data")]
    assert {path.name for path in data} <= {".gitkeep"}


def test_every_locked_requirement_is_exact_and_has_hashes():
    loose = [
        name
        for name, (requirement, entry) in locked().items()
        if not re.fullmatch(r"==[\w.!+]+", str(requirement.specifier))
        or not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)
    ]
    assert loose == []


@pytest.mark.parametrize("requirement", declared(), ids=lambda requirement: requirement.name)
def test_the_lock_holds_a_version_that_pyproject_allows(requirement):
    pinned, _ = locked()[canonicalize_name(requirement.name)]
    (exact,) = pinned.specifier
    assert requirement.specifier.contains(exact.version)


# Requirements that no file imports.
NOT_IMPORTED = {
    "beartype": "types of calls, by tests/conftest.py",
    "cryptography": "certificates of distributed's connections",
    "kedro-datasets": "types of the catalog, by name",
    "robust-fairness-data": "raw files, found by their folder",
    "jupyterlab": "`kedro jupyter lab` starts it",
    "notebook": "`kedro jupyter notebook` starts it",
    "xgboost": "an estimator by name; for macOS",
    "xgboost-cpu": "an estimator by name",
    "build": "a command", "check-jsonschema": "a command", "cyclonedx-bom": "a command",
    "import-linter": "a command", "mypy": "a command", "pre-commit": "a command",
    "ruff": "a command", "twine": "a command", "mkdocs-material": "theme of the documentation",
    "mkdocstrings": "plug-in of the documentation", "hatchling": "builds the package",
    "pandas-stubs": "types for mypy", "types-pyyaml": "types for mypy",
    "types-tqdm": "types for mypy", "pytest-cov": "options of pytest",
    "pytest-timeout": "options of pytest", "pytest-xdist": "options of pytest",
    "psycopg2-binary": "driver of the database of a test",
    "ipykernel": "kernel of notebooks",
}  # fmt: skip


def test_every_requirement_is_imported_or_has_a_reason():
    """By the package itself; what only developers install also by tests, scripts and notebooks."""
    modules = {}
    for module, names in packages_distributions().items():
        for name in names:
            modules.setdefault(canonicalize_name(name), set()).add(module)
    everywhere = [ROOT / "tests", ROOT / "docs", ROOT / "benchmarks", ROOT / "notebooks"]
    extras = PYPROJECT["project"]["optional-dependencies"]
    groups = {
        "package": PYPROJECT["project"]["dependencies"]
        + [
            name
            for extra, names in extras.items()
            if extra not in ("dev", "docs")
            for name in names
        ],
        "developers": extras["dev"] + extras["docs"],
    }
    unused = set()
    for group, requirements in groups.items():
        folders = [PACKAGE, *(everywhere if group == "developers" else [])]
        files = [path for folder in folders for path in folder.rglob("*.py")]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE))
        imported |= set(re.findall(r"import_module\(\"(\w+)", text))
        for requirement in map(Requirement, requirements):
            name = canonicalize_name(requirement.name)
            if name != "robust-fairness" and not modules.get(name, set()) & imported:
                unused.add(name)
    assert unused == set(NOT_IMPORTED)


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert robust_fairness.__version__ == citation["version"]
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "src/robust_fairness/__init__.py"


def test_telemetry_is_off_and_the_file_that_says_so_is_not_ignored():
    telemetry = ROOT / ".telemetry"
    assert yaml.safe_load(telemetry.read_text()) == {"consent": False}
    assert telemetry in repository_files()


def test_every_make_target_that_the_documents_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "pyproject.toml"]
    text = "\n".join(path.read_text() for path in documents)
    named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named
    assert named <= targets


def test_every_link_between_the_documents_leads_somewhere():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.md")]
    links = [
        (path, target)
        for path in documents
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text())
        if "://" not in target
    ]
    assert links
    assert [(path, to) for path, to in links if not (path.parent / to).exists()] == []


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text()],
    ids=lambda path: path.stem,
)
def test_the_examples_in_the_docstrings_are_true(path):
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    result = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert result.attempted
    assert not result.failed


def test_shapes_of_tensors_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="triplet row"):
        alike(torch.ones(3, dtype=torch.bool))
