"""The structure of the package: its root, its import graph, and where text is parsed."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from kedro.config import OmegaConfigLoader
from kedro.framework.project import pipelines, settings
from kedro.framework.session import KedroServiceSession
from kedro.io import AbstractVersionedDataset, CatalogConfigResolver, DataCatalog
from kedro.pipeline import Node, Pipeline
from kedro.runner import AbstractRunner

from tests.project import ROOT

PACKAGE = ROOT / "src" / "robust_fairness"
AT_THE_ROOT = {"__init__.py", "__main__.py", "pipeline_registry.py", "settings.py"}
PARSING = {
    "endswith", "extract", "findall", "fullmatch", "match", "partition", "removeprefix",
    "removesuffix", "rpartition", "startswith",
}  # fmt: skip
# Folders and files that parse text which is no name of a dataset, cell, trial or metric.
FOLDERS = {
    "datasets": "formats of raw files",
    "generation": "names of weights in published files",
    "models": "names of weights in a state dict",
    "training": "names of weights in a state dict",
}
FILES = {
    "auditing/periods.py": "dates as a table has them",
    "auditing/door.py": "columns of probabilities, named after classes and groups",
    "auditing/gates.py": "a gate as a user writes it: delta_eo[sex]>0.1",
    "catalog/atomic.py": "URLs",
    "catalog/names.py": "names of the catalog, which are made here as well",
    "catalog/schemas.py": "prefixes of columns",
    "catalog/arrays.py": "names of arrays in a file",
    "cli/audit.py": "options as a user writes them: age=30,60",
    "cli/commands.py": "error messages of Kedro",
    "core/escaping.py": "text of users, character by character",
    "core/extras.py": "names of modules",
    "core/files.py": "host name",
    "core/numbers.py": "numbers as a table has them",
    "core/raw_files.py": "files of several forms",
    "core/registry.py": "names of modules",
    "core/tables.py": "comments of a page",
    "estimators/_scikit_learn.py": "names of classes and parameters of estimators",
    "estimators/estimator.py": "names of classes of estimators",
    "experiment/plugins.py": "error messages of pydantic",
    "metrics/criteria.py": "criteria as a user writes them: accuracy@unbiased_val",
    "metrics/find.py": "metrics as a user writes them: accuracy_at(alpha=-0.5)",
    "reporting/claims.py": "error messages of pydantic",
    "runs/secrets.py": "URLs and options of a command line",
    "runs/serving.py": "names of classes of estimators",
    "runs/session.py": "run ids as a user writes them",
    "runs/runners/fault_tolerant.py": "command line, names of Python's special methods",
    "runs/runners/jobs.py": "names of modules, URLs",
    "runs/tracking.py": "URLs, characters that MLflow allows",
    "runs/viz.py": "HTML and paths",
}
VAGUE = {"one", "found", "own"}
# Kedro's private names that are used or overridden; its minor is pinned for their sake. The first
# seven are those that Kedro's documentation names to authors of datasets and runners.
PRIVATE_OF_KEDRO = {
    "_describe": "abstract method of a dataset",
    "_exists": "likewise",
    "_get_load_path": "files and URLs of versions",
    "_get_save_path": "likewise",
    "_version": "pinned to the run",
    "_get_executor": "abstract method of a runner",
    "_run": "likewise",
    "_read_dir_configs": "environments of the package and of the project",
}


@pytest.fixture(scope="module")
def imports() -> list[tuple[list[str], list[str]]]:
    """Pairs of modules, the importing one first, as parts of their names."""
    graph = grimp.build_graph("robust_fairness", cache_dir=None, exclude_type_checking_imports=True)
    return [
        (module.split("."), imported.split("."))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    ]


def first_difference(first: list[str], other: list[str]) -> int:
    """Length of the common beginning."""
    pairs = zip(first, other, strict=False)
    return next(
        (depth for depth, (a, b) in enumerate(pairs) if a != b), min(len(first), len(other))
    )


def test_the_root_of_the_package_has_four_files():
    assert {path.name for path in PACKAGE.glob("*.py")} == AT_THE_ROOT


def test_packages_do_not_import_one_another_in_circles(imports):
    """At no level: neither packages of the root nor modules of a package."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, imported in imports:
        depth = first_difference(importer, imported)
        if depth < min(len(importer), len(imported)):
            graphs[".".join(importer[:depth])][importer[depth]].add(imported[depth])
    for graph in graphs.values():
        TopologicalSorter(graph).prepare()  # raises CycleError


def test_private_modules_are_imported_by_their_own_package_only(imports):
    crossing = [
        (".".join(importer), ".".join(imported))
        for importer, imported in imports
        for depth, part in enumerate(imported)
        if part.startswith("_") and importer[:depth] != imported[:depth]
    ]
    assert not crossing


def parsed(path: Path) -> Iterator[str]:
    """Calls in a file that take text apart, and imports of regular expressions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names) if any(alias.name == "re" for alias in names):
                yield f"line {node.lineno}: import re"
            case ast.Call(func=ast.Attribute(attr=name)) if name in PARSING:
                yield f"line {node.lineno}: {name}"


def test_no_fact_is_parsed_out_of_a_name():
    """Text is parsed in the files that are listed here only, each for the reason given."""
    files = {
        path.relative_to(PACKAGE).as_posix(): list(parsed(path)) for path in PACKAGE.rglob("*.py")
    }
    parsing = {
        name: lines
        for name, lines in files.items()
        if lines and name.partition("/")[0] not in FOLDERS
    }
    assert {name: lines for name, lines in parsing.items() if name not in FILES} == {}
    assert sorted(FILES.keys() - parsing.keys()) == []  # no longer needed


def private_of_kedro(path: Path, names: AbstractSet[str]) -> Iterator[str]:
    """Private names of Kedro that a file imports, uses or overrides; not those of its objects."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    uses: set[str] = set()
    stored: set[str] = set()
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                stored.add(name)
            case ast.Attribute(attr=name) if name in names:
                uses.add(name)
            case ast.ClassDef(body=body):
                defined = (member.name for member in body if isinstance(member, ast.FunctionDef))
                uses |= names & {*defined}
            case ast.ImportFrom(module=str(module), names=imported) if module[:5] == "kedro":
                parts = (*module.split("."), *(alias.name for alias in imported))
                yield from (part for part in parts if part.startswith("_"))
    yield from uses - stored


def test_no_other_private_name_of_kedro_is_used():
    classes = (
        AbstractRunner, AbstractVersionedDataset, CatalogConfigResolver, DataCatalog,
        KedroServiceSession, Node, OmegaConfigLoader, Pipeline, type(pipelines), type(settings),
    )  # fmt: skip
    names = {name for kind in classes for name in dir(kind)}
    for kind in classes:  # attributes that their methods set
        functions = [getattr(member, "__code__", None) for member in vars(kind).values()]
        names |= {name for code in functions if code is not None for name in code.co_names}
    private = {name for name in names if name.startswith("_") and not name.startswith("__")}
    importing = [path for path in PACKAGE.rglob("*.py") if "kedro" in path.read_text()]
    uses = {name for path in importing for name in private_of_kedro(path, private)}
    assert uses == PRIVATE_OF_KEDRO.keys()
    assert len(uses) <= 10


def test_names_say_what_they_hold():
    """No variable or argument has a name that fits any, and public classes have their own."""
    vague, classes = [], Counter()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                    vague.append(f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}")
    assert vague == []
    assert [name for name, count in classes.items() if count > 1 and name[0] != "_"] == []
