"""All commands in one list, and the one place where an error becomes a sentence and an exit code."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline_lab.cli.front_page import COMMANDS, SUMMARY
from pipeline_lab.cli.output import say
from pipeline_lab.errors import OptionsError, PipelineLabError
from pipeline_lab.version import __version__

FAILED, WRONG_USAGE = 1, 2


class OneSentence(TyperGroup):
    """Commands whose errors become one sentence."""

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
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # of a library that Typer brings along and does not name
                _name_place_of_options(error)
            raise


def _name_place_of_options(error: Any) -> None:
    """Say of an option that is none of ours where those of the script go, if the command starts one."""
    if any(argument.metavar == "SCRIPT..." for argument in error.ctx.command.params):
        error.message += ". Options of the script come after --, as in: train.py -- --epochs 2"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pipeline-lab {__version__}")
        raise typer.Exit


def _options_of_all(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del show_version


def build_app(words: Sequence[str] = ()) -> typer.Typer:
    """Return the application with the command that the words ask for; without one, with all.

    Args:
        words: What is typed after ``pipeline-lab``. Other commands are not imported then.
    """
    app = typer.Typer(
        name="pipeline-lab",
        cls=OneSentence,
        callback=_options_of_all,
        help=SUMMARY,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
    first = words[0].replace("-", "_") if words else ""
    for name in (first,) if first in COMMANDS else COMMANDS:
        module = import_module(f"pipeline_lab.cli.commands.{name}")
        command = getattr(module, name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(context_settings=getattr(module, "CONTEXT_SETTINGS", None))(command)
    return app
