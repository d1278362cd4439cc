"""Names of datasets in the Kedro catalog: made and parsed here only.

A name without a dot may be read by several namespaces, which Kedro-Viz shows as it is; others
belong to the namespace of a dataset, a cell or a generator.

========================  ==========================================================
``<part>``                of the run: ``metrics``, ``report``
``<dataset>_<part>``      of a dataset or generator, read elsewhere: ``adult_results``, which
                          are in memory only; ``rows`` are the samples that the trainings of
                          a design share
``<dataset>.<part>``      of a dataset or generator: ``adult.samples``
``<dataset>.shifted.<t>`` a shifted test set: ``adult.shifted.gaussian_noise_0_03``
``<dataset>.<label>.<p>`` of a cell: ``adult.cuma.models``
========================  ==========================================================
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from robust_fairness.bench.experiment.yaml_source import FASTER

SHIFTED = "shifted"
# Parts of a dataset or generator that other namespaces read.
SHARED = ("generator", "real", "reference", "results", "rows")


@dataclass(frozen=True)
class Name:
    """A parsed name.

    Attributes:
        part: what it is, such as ``models``.
        dataset: the dataset or generator; "" of the run.
        label: label of the cell; "" where it is of no cell.
        test_set: name of the shifted test set; "" where it is none.
    """

    part: str
    dataset: str = ""
    label: str = ""
    test_set: str = ""

    @property
    def cell(self) -> str:
        """Name of the cell; "" where it is of no cell."""
        return f"{self.dataset}.{self.label}" if self.label else ""


@cache
def _makers() -> dict[str, str]:
    """What makes each table that the report reads (``part_of`` in ``tables.yml``)."""
    text = (files("robust_fairness.core") / "tables.yml").read_text(encoding="utf-8")
    declared = yaml.load(text, FASTER)  # a safe loader; without pandas, which Table needs
    return {name: table["part_of"] for name, table in declared.items() if "part_of" in table}


def tables_of(*makers: str) -> tuple[str, ...]:
    """Names of the tables that the report reads and these make."""
    return tuple(name for name, maker in _makers().items() if maker in makers)


def of_dataset(dataset: str, part: str) -> str:
    """The name of a part of a dataset or generator."""
    return f"{dataset}{'_' if part in SHARED else '.'}{part}"


def of_test_set(dataset: str, test_set: str) -> str:
    """The name of a shifted test set."""
    return f"{dataset}.{SHIFTED}.{test_set}"


def of_cell(cell: str, part: str) -> str:
    """The name of a part of a cell, which is called ``<dataset>.<label>``."""
    return f"{cell}.{part}"


def parse(name: str) -> Name:
    """What a name of the catalog stands for."""
    first, *rest = name.split(".")
    match rest:
        case ["shifted", test_set]:
            return Name(SHIFTED, first, test_set=test_set)
        case [label, part]:
            return Name(part, first, label)
        case [part]:
            return Name(part, first)
    for part in SHARED:
        dataset = name.removesuffix(f"_{part}")
        if dataset != name:
            return Name(part, dataset)
    return Name(name)
