"""``python -m pipeline_lab.cli.reference``: all commands and their options as Markdown, for the README."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command


def list_commands() -> Iterator[tuple[str, Any]]:
    """Yield the name of each command, as it is typed after ``pipeline-lab``, and the command."""
    from pipeline_lab.cli.application import build_app

    yield from _below(get_command(build_app()), "")


def list_options(command: Any) -> list[str]:
    """Return the long names of a command's options, such as ``--store``."""
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return [name for option in options for name in option.opts + option.secondary_opts if name.startswith("--")]


def format_reference() -> str:
    """Write a Markdown table: command, what it does, options."""
    rows = ["| command | does | options |", "|---|---|---|"]
    for name, command in list_commands():
        arguments = [_argument(parameter) for parameter in command.params if parameter.param_type_name == "argument"]
        options = " ".join(f"`{option}`" for option in list_options(command))
        usage = " ".join([name, *arguments]).replace("|", "\\|")
        rows.append(f"| `{usage}` | {command.help.splitlines()[0]} | {options} |")
    return "\n".join(rows) + "\n"


def _below(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _below(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    if parameter.nargs == -1 and not name.endswith("..."):
        name += "..."
    return name if parameter.required else f"[{name}]"


if __name__ == "__main__":
    typer.echo(format_reference(), nl=False)
