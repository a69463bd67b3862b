"""What the terminal shows while a trace is read."""

from contextlib import AbstractContextManager

from rich.markup import escape
from rich.status import Status

from pipeline_lab.cli.output import messages


def reading(name: str) -> AbstractContextManager[Status]:
    """Show that a log is being read, and why the first time on a machine takes some seconds longer."""
    from pipeline_lab.trace.compiled import is_compiled, leave_out_linear_algebra

    leave_out_linear_algebra()
    first = "" if is_compiled() else " (compiling the reader, once on this machine)"
    return messages().status(f"Reading {escape(name)} …{first}")
