"""The command ``prune``."""

from datetime import timedelta

import click

from robust_fairness.cli.commands import ProjectCommand
from robust_fairness.core.errors import InputError


@click.command(cls=ProjectCommand)
@click.option(
    "--keep", type=click.IntRange(0), default=10, show_default=True, help="Newest runs to keep."
)
@click.option(
    "--older-than", "age", default="30d", show_default=True, help="Least age in days: 30d."
)
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
def prune(keep: int, age: str, dry_run: bool) -> None:
    """Delete old runs with their data and checkpoints.

    Also their MLflow runs, and what killed processes left. A run stays that another run, a
    tag of Git or a page of the project refers to, and one in progress.
    """
    from robust_fairness.runs import retention, tracking
    from robust_fairness.runs.ownership import RunInProgress

    deleted = 0
    for removal in retention.removals(keep, _age(age)):
        size = f"{removal.size / 1e6:,.1f} MB"
        try:
            if not dry_run:
                retention.remove(removal)
        except RunInProgress as error:
            click.echo(f"{removal.what}: kept ({error})")
            continue
        click.echo(f"{removal.what}: {size}")
        deleted += 1
    if deleted and not dry_run:
        tracking.shrink()
    click.echo(f"{'would be deleted' if dry_run else 'deleted'}: {deleted}")


def _age(text: str) -> timedelta:
    """The days of ``30d``."""
    days = text.removesuffix("d")
    if not days.isdecimal():
        raise InputError(f"--older-than: {text!r}, allowed: days, as 30d")
    return timedelta(days=int(days))
