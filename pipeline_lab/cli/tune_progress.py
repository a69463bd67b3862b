"""Stay with a search to its end: a sentence for each of its steps, and what is being measured now."""

import time
from typing import TYPE_CHECKING

from pipeline_lab.cli.following import StopRequests
from pipeline_lab.cli.output import messages
from pipeline_lab.units import NS_PER_S, format_duration

if TYPE_CHECKING:
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.store import RunFolder
    from pipeline_lab.tuning.search_result import Tuning

POLL_S = 0.5


def follow_tune(folder: "RunFolder", requests: StopRequests) -> "RunRecord":
    """Show a search's steps as they are taken; the first request to stop cancels it."""
    from pipeline_lab.runs.launch.launcher import cancel
    from pipeline_lab.tuning.search_result import read_tuning
    from pipeline_lab.tuning.search_words import describe

    console, told, shown = messages(), False, 0
    console.print(f"Search {folder.id}", markup=False)
    with console.status("starting") as status:
        while True:
            found = read_tuning(folder)
            for step in found.steps[shown:]:
                console.print(describe(step), markup=False)
            shown = max(shown, len(found.steps))
            if not found.state.is_live:
                return found.record
            if requests.count and not told:
                cancel(folder)
                console.print("Cancelling; the best so far is kept.", markup=False)
                told = True
            status.update(_now(found))
            time.sleep(POLL_S)


def _now(found: "Tuning") -> str:
    spent = sum(trial.seconds or 0.0 for trial in found.trials)
    running = [trial.run for trial in found.trials if trial.seconds is None]
    what = f"measuring {running[-1]}" if running else "thinking"
    return f"{what} · {format_duration(spent * NS_PER_S)} of {format_duration(found.options.budget_s * NS_PER_S)} spent"
