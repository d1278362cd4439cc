"""The command ``study``: train a grid in blocks, and keep counts from which every score follows.

The counts of a block are put into FOLDER when it is done, so that the command can be stopped and
repeated, also elsewhere.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from robust_fairness.cli.commands import ProjectCommand

if TYPE_CHECKING:
    from robust_fairness.samples import Samples


@click.command(cls=ProjectCommand, short_help="Train a grid in blocks, and keep their counts.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--env", "-e", default="study", show_default=True, help="Environment of conf/.")
@click.option("--datasets", help="Datasets of the grid, separated by commas.")
@click.option("--methods", help="Labels of methods of the grid, separated by commas.")
@click.option("--seeds", help="Number of refits, those before among them.")
@click.option("--answers", help="Train nothing: print what this base dataset in FOLDER says.")
@click.option("--rows", type=click.IntRange(min=2), help="Test rows of a domain to predict for.")
@click.option("--further", help="Test in this domain alone, which the grid does not have.")
def study(
    folder: Path,
    env: str,
    answers: str | None,
    rows: int | None,
    further: str | None,
    **axes: str | None,
) -> None:
    """Train the blocks whose counts are not in FOLDER, and put them there.

    Repeat the command to go on: blocks that are done are left out. With --further the trainings of
    the grid are tested in another domain; --answers and --further then compare it with what the
    counts in FOLDER predict.
    """
    from robust_fairness.reporting import study_counts

    if answers is not None:
        click.echo(study_counts.answered(folder, answers, rows, further))
        return
    from kedro.framework.startup import bootstrap_project

    from robust_fairness.pipelines.ingestion.pipeline import read, within_domains
    from robust_fairness.runs.configuration import loader_of
    from robust_fairness.training import blocks

    bootstrap_project(Path.cwd())
    folder.mkdir(parents=True, exist_ok=True)
    grid = {axis: value for axis, value in axes.items() if value is not None}
    loaded: dict[str, Samples] = {}
    for configured in loader_of(env, grid).validated_experiment.datasets:
        dataset = blocks.tested_in(configured, further) if further else configured
        path = study_counts.counts_path(folder, dataset.base, further)
        done = study_counts.counts_in(path, dataset.name)
        for cells, seeds in blocks.due(dataset, done):
            if dataset.base not in loaded:
                samples = blocks.equal_sizes(
                    read(dataset.model_copy(update={"seeds": blocks.SPLITS}))
                )
                loaded = {dataset.base: samples}
                study_counts.write(study_counts.rows_path(path), blocks.totals(samples, dataset))
            samples = loaded[dataset.base]
            start = time.process_time()
            table = blocks.run_block(within_domains(samples, dataset), samples, cells, seeds, done)
            table = table.assign(
                trained_on=dataset.facets["trained_on"], seconds=time.process_time() - start
            )
            study_counts.add(path, dataset.name, table)
            names = ", ".join(cell.label for cell in cells)
            click.echo(f"{dataset.name}: {names}, refits {seeds}, {table['seconds'].iloc[0]:.1f} s")
