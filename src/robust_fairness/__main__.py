"""The console script ``robust-fairness``: the project's commands."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from robust_fairness.cli.commands import COMMANDS, CORE, cli
from robust_fairness.core.errors import InputError
from robust_fairness.core.extras import needed_by, require_versions
from robust_fairness.core.files import CONF

LOGGING = "logging.yml"


def main(args: Sequence[str] | None = None, **options: Any) -> Any:
    """Set up Kedro for the commands that need it, and run.

    Args:
        args: words of the command; default: those of the command line. As in every packaged
            project of Kedro, options alone are those of ``run``.
        options: those of ``click.Command.main``.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # consoles that cannot print every name of a group
        sys.stdout.reconfigure(errors="backslashreplace")
    if not Path("conf", LOGGING).exists():  # Kedro reads the variable when it is imported
        os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(CONF / LOGGING))
    os.environ.setdefault("DO_NOT_TRACK", "true")  # usage data of Kedro and MLflow
    words = list(sys.argv[1:] if args is None else args)
    if words and words[0][:1] == "-" and words[0] not in ("--help", "--version"):
        words = ["run", *words]
    if words and words[0] in COMMANDS and words[0] not in CORE:
        name = f"`robust-fairness {words[0]}`"
        try:
            with needed_by(name, "all"):
                require_versions(name, "all")
                from kedro.framework.project import configure_project
                from kedro.framework.startup import bootstrap_project
                from kedro.utils import find_kedro_project

                root = find_kedro_project(Path.cwd())
                if root is None:
                    configure_project("robust_fairness")
                else:
                    bootstrap_project(root)
        except InputError as error:
            sys.exit(f"Error: {error}")
    try:
        return cli.main(words, **options)
    except BrokenPipeError:  # nobody reads the error; status 1 of an audit is a failed gate
        sys.exit(2 if words[:1] == ["audit"] else 1)


if __name__ == "__main__":
    main()
