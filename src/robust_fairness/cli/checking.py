"""Checks of an experiment: everything that a run would refuse, without training."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.bench.experiment.experiment import DatasetConfig, Experiment
from robust_fairness.core.errors import InputError, Mistake, together, unknown_name
from robust_fairness.pipelines.builders import source_of
from robust_fairness.pipelines.ingestion.nodes import read as read_samples
from robust_fairness.pipelines.ingestion.nodes import within_domains
from robust_fairness.pipelines.shifts.nodes import shift
from robust_fairness.runs.configuration import ConfigLoader, loader_of

READ = "table"  # the kind of data that is read; others take too long


@dataclass
class Findings:
    """What a check found.

    Attributes:
        mistakes: those that would stop a run or a cell.
        tables: rows by name of the tables that were read.
        seconds: CPU time that the trainings of tables will take; None unless it is asked for.
        runs: what will run, a line per dataset.
        hints: what may be forgotten.
        domains: by dataset, the domains that are test sets of their own.
        datasets, cells, trainings: their numbers; a search may end some trainings early.
    """

    mistakes: list[Mistake] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)
    seconds: float | None = None
    datasets: int = 0
    cells: int = 0
    trainings: int = 0
    runs: list[str] = field(default_factory=list)
    domains: dict[str, int] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, place: str, of: str = "") -> Iterator[None]:
        """Note a mistake of the block; one without a place is at ``place``, about ``of``."""
        try:
            yield
        except InputError as error:
            for mistake in error.mistakes:
                text = f"{of}: {mistake.text}" if of else mistake.text
                known = replace(mistake, place=place, text=text)
                self.mistakes.append(mistake if mistake.place else known)


def check(environment: str | None, grid: Mapping[str, Any], timed: bool = False) -> Findings:
    """All mistakes of an experiment, or of the part that ``grid`` selects.

    With ``timed``, a few steps of every cell of a table tell how long the run will take.

    Files that are not YAML are reported first, then names and values of the configuration, then
    missing raw files, the tables, their domains and shifts, and what does not fit a method.
    """
    loader = loader_of(environment, grid)
    findings = Findings(mistakes=loader.unreadable_files(), seconds=0.0 if timed else None)
    if findings.mistakes:
        return findings
    try:
        experiment = loader.validated_experiment
    except InputError as error:
        findings.mistakes += error.mistakes
        return findings
    findings.datasets, findings.cells = len(experiment.datasets), len(experiment.cells)
    findings.trainings = sum(cell.budget * len(cell.seeds) for cell in experiment.cells)
    _check_data(experiment, loader, findings)
    findings.runs = [
        _in_words(dataset, findings.domains.get(dataset.name)) for dataset in experiment.datasets
    ]
    return findings


def _in_words(dataset: DatasetConfig, domains: int | None) -> str:
    """What a dataset runs: its cells, seeds, test sets, metrics and criteria."""
    held_out = f"{domains} other domain{'s' * (domains > 1)}, " if domains else ""
    if domains is None and dataset.domains is not None:  # of data that is not read
        held_out = "other domains, "
    cells = dataset.cells
    trials = {cell.label: cell.budget for cell in cells if cell.budget > 1}
    shown = [f"{cell.label}{f' ({trials[cell.label]} trials)' if cell.label in trials else ''}"
             for cell in cells]  # fmt: skip
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    metrics = {name for cell in cells for name in cell.metrics}
    criteria = dict.fromkeys(name for cell in cells for name in cell.selections)
    return (
        f"{dataset.name}: {', '.join(shown)}; {len(seeds)} seeds, test sets: {held_out}"
        f"{len(dataset.test_sets)} shifted ones; {len(metrics)} metrics, "
        f"selection by {', '.join(criteria)}"
    )


def _check_data(experiment: Experiment, loader: ConfigLoader, findings: Findings) -> None:
    """Check the raw files and the tables of an experiment."""
    read: dict[str, Any] = {}
    for dataset in experiment.datasets:
        place = loader.place_of(dataset)
        if dataset.base not in read:
            read[dataset.base] = None
            with findings.noting(place, dataset.base):
                loader.require_raw_files([dataset.base])
                if source_of(dataset.source).data_kind == READ:
                    samples = read_samples(dataset_files(), dataset)
                    findings.tables[dataset.base] = len(samples)
                    _check_domains(samples, experiment, dataset.base, loader, findings)
                    read[dataset.base] = samples
        if read[dataset.base] is not None:
            _check_dataset(read[dataset.base], dataset, findings, place)


def _check_domains(
    samples: Any, experiment: Experiment, base: str, loader: ConfigLoader, findings: Findings
) -> None:
    """Check the names of domains, once for all trainings of a dataset; raises if one is unknown."""
    from robust_fairness.bench.samples.domains import domain_names

    trainings = [dataset for dataset in experiment.datasets if dataset.base == base]
    named = {name for training in trainings if training.domains for name in training.domains.named}
    known = domain_names(samples) if named else []
    mistakes = [
        Mistake(
            f"{base}: {unknown_name(f'domain ({samples.domain})', name, known)}",
            loader.place_of_domain(base, name),
        )
        for name in sorted(named.difference(known))
    ]
    if mistakes:
        raise together(mistakes, "the domains")


def _check_dataset(samples: Any, dataset: DatasetConfig, findings: Findings, place: str) -> None:
    """Check domains, test sets and cells of a dataset."""
    from robust_fairness.bench.training import check as check_cell
    from robust_fairness.bench.training import expected_seconds

    noting = findings.noting
    with noting(place, dataset.name):
        known = list(samples.attributes[samples.domain].unique()) if samples.domain else []
        samples = within_domains(samples, dataset)
        if dataset.domains is not None:
            outside = samples.splits.eq("ood_test").any(axis=1).to_numpy()
            tested = samples.attributes.loc[outside, samples.domain].nunique()
            findings.domains[dataset.name] = int(tested)
        elif len(known) > 1:
            findings.hints.append(
                f"{dataset.name}: {len(known)} domains ({samples.domain}) and none is held out; "
                f"`domains: {{test: [{known[-1]}]}}` trains on the others and tests on this one"
            )
        for test_set in dataset.test_sets:
            with noting(place, f"{dataset.name}, shift {test_set.called}"):
                shift(samples, test_set)
        for cell in dataset.cells:
            with noting(place):
                check_cell(samples, cell)
                if findings.seconds is not None:
                    findings.seconds += expected_seconds(samples, cell)
