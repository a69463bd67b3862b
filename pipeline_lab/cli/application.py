"""All commands in one list, and the one place where an error becomes a sentence and an exit code."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline_lab.cli.analyze import analyze
from pipeline_lab.cli.app import app as serve_app
from pipeline_lab.cli.capture import capture
from pipeline_lab.cli.code import code
from pipeline_lab.cli.compare import compare
from pipeline_lab.cli.doctor import doctor
from pipeline_lab.cli.events import events
from pipeline_lab.cli.options import options
from pipeline_lab.cli.output import say
from pipeline_lab.cli.presets import presets
from pipeline_lab.cli.race import race
from pipeline_lab.cli.report import report
from pipeline_lab.cli.run import run
from pipeline_lab.cli.runs import runs
from pipeline_lab.cli.tune import tune
from pipeline_lab.cli.watch import watch
from pipeline_lab.cli.what_if import what_if
from pipeline_lab.errors import OptionsError, PipelineLabError
from pipeline_lab.version import __version__

FAILED, WRONG_USAGE = 1, 2


class OneSentence(TyperGroup):
    """Commands whose errors are told in one sentence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PipelineLabError as error:
            say("[bold red]Error:[/] {}", str(error))
            raise typer.Exit(WRONG_USAGE if isinstance(error, OptionsError) else FAILED) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            say("[bold red]Error:[/] {}", f"{error.strerror or error}: {str(error.filename)[:200]}.")
            raise typer.Exit(FAILED) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pipeline-lab {__version__}")
        raise typer.Exit


def _options_of_all(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Why is the accelerator waiting for its input, what should change, and did the change work?"""


app = typer.Typer(
    name="pipeline-lab",
    cls=OneSentence,
    callback=_options_of_all,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    serve_app,
    run,
    presets,
    options,
    analyze,
    compare,
    race,
    what_if,
    tune,
    report,
    code,
    events,
    capture,
    doctor,
):
    app.command()(command)
app.command(context_settings={"allow_interspersed_args": False})(watch)  # what follows the script is the script's
app.add_typer(runs, name="runs")
