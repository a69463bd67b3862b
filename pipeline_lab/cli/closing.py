"""The last output of a recording: where the run is, which commands come next, and the verdict in one sentence.

``python -m pipeline_lab.cli.closing RUN_FOLDER`` prints it to standard error. ``watch`` starts it when the script has ended,
as a separate process, so that nothing is loaded into the script's.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_lab.cli.output import reading, say
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import name_of, store_option

if TYPE_CHECKING:
    from pipeline_lab.analysis.verdict.verdict import Suggestion, Verdict


def close(folder: RunFolder) -> None:
    """Say what to do with a new run, and then what was found in it, because that takes longest."""
    reason = read_record(folder).status.reason
    if reason:
        say("{}", reason)
    tell_next(folder)
    try:
        verdict = _judge(folder)
    except (PipelineLabError, OSError) as error:
        say("{}", str(error))
    else:
        say("[bold]{}[/]", verdict.sentence)
        if verdict.suggestions:
            first = verdict.suggestions[0]
            say("Try first: {}", first.change)
            if following := _following(verdict.suggestions, folder):
                say(
                    "{}: [bold]{}[/]",
                    "Next" if first.command or first.after else "Other changes, written for you",
                    following,
                )


def _following(suggestions: "Sequence[Suggestion]", folder: RunFolder) -> str:
    """Return the command that carries out the first suggestion, or that changes lines of a watched script; empty if there is none."""
    watched, command = str(read_record(folder).environment.get("command", "")), suggestions[0].command
    edits = [each for each in suggestions if each.after]
    if command or not (watched and edits):
        return command
    from pipeline_lab.tuning.script.script_result import write_fix_command

    request = edits[0].request if all(each.request for each in edits) else ""
    return write_fix_command(watched, folder.path, request)


def tell_next(folder: RunFolder) -> None:
    """Say where a run is, and which commands come next."""
    say("Run {} is in {}. Next:", folder.id, str(folder.path.parent))
    say("  numbers and suggestions: [bold]{}[/]", f"pipeline-lab analyze {shlex.quote(name_of(folder.path))}")
    say("  charts (at /run?run={}): [bold]{}[/]", folder.id, f"pipeline-lab app {store_option(folder.path)}".rstrip())


def _judge(folder: RunFolder) -> "Verdict":
    from pipeline_lab.advice.analyzing import analyze_path

    return analyze_path(folder.path, while_reading=reading).verdict


def main() -> None:
    """Report on the run whose folder the command line names, or say that it no longer exists."""
    try:
        close(RunFolder(Path(sys.argv[1])))
    except PipelineLabError as error:
        say("{}", str(error))


if __name__ == "__main__":
    main()
