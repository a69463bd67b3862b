"""Leave with the exit code that a gate's answer asks for."""

from typing import TYPE_CHECKING, NoReturn

import typer
from rich.markup import escape

from pipeline_lab.cli.output import messages

if TYPE_CHECKING:
    from pipeline_lab.comparison.gate import Gate

THRESHOLD_CROSSED, UNDECIDED = 3, 4


def leave_through(gate: "Gate") -> NoReturn:
    """Say the answer and end the command: 0 passed, 3 crossed, 4 undecided."""
    from pipeline_lab.statistics.outcome import GateAnswer

    codes = {GateAnswer.PASSED: 0, GateAnswer.CROSSED: THRESHOLD_CROSSED, GateAnswer.UNDECIDED: UNDECIDED}
    messages().print(escape(gate.sentence))
    raise typer.Exit(codes[gate.answer])
