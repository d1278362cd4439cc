"""The command line: Kedro's ``run`` with options for the grid, and the benchmark's own commands.

``kedro ...`` and ``robust-fairness ...`` have the same commands. A user's mistake ends with one
line on standard error and exit status 1, in ``audit`` with status 2: status 1 is a failed gate.
"""

import click

from robust_fairness import __version__
from robust_fairness.cli.audit import audit
from robust_fairness.cli.check import check
from robust_fairness.cli.data import convert_edm, fetch
from robust_fairness.cli.exchange import export, submit
from robust_fairness.cli.init import init
from robust_fairness.cli.listing import list_names
from robust_fairness.cli.project import demo, new
from robust_fairness.cli.prune import prune
from robust_fairness.cli.report import answers, cite, report, site, table
from robust_fairness.cli.run import rerun, run

COMMANDS = (
    answers, audit, check, cite, convert_edm, demo, export, fetch, init, list_names, new, prune,
    report, rerun, run, site, submit, table,
)  # fmt: skip


@click.group(name="robust-fairness")
@click.version_option(__version__, prog_name="robust-fairness")
def cli() -> None:
    """Fairness that survives distribution shift: run, compare, rerun."""


for command in COMMANDS:
    cli.add_command(command)
