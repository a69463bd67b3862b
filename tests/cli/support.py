"""Run the command line in this process."""

from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from pipeline_lab.cli.application import build_app

APP = build_app()


def call(*arguments: str | Path) -> Result:
    """Return exit code, standard output and standard error of one command."""
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
