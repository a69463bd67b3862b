"""Follow a run, a race or a search to its end: show progress, and pass on requests to stop."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pipeline_lab.cli.output import messages
from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import (
    CaptureProgressEvent,
    DataProgressEvent,
    Event,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    RaceEvent,
    WindowEvent,
    describe_phase,
)
from pipeline_lab.units import NS_PER_S, format_duration

if TYPE_CHECKING:
    from pipeline_lab.runs.launch.launcher import Update
    from pipeline_lab.runs.record import RunRecord
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.tuning.search_result import RecordedSearch


@dataclass
class StopRequests:
    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:  # the run ends without this process
            raise KeyboardInterrupt


@contextlib.contextmanager
def stop_requests() -> Iterator[StopRequests]:
    """Count Ctrl-C and similar signals instead of exiting: the run is asked to stop, and is followed to its end."""
    requests = StopRequests()
    before = {number: signal.signal(number, requests.add) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow_run(folder: "RunFolder", requests: StopRequests) -> "RunRecord":
    """Show a run's progress to its end; the first request to stop cancels it."""
    from pipeline_lab.runs.launch.launcher import cancel, follow

    is_cancelling = False
    with RunProgress(messages()) as progress:
        progress.note(f"Run {folder.id}")
        for update in follow(folder):
            progress.show(update)
            if requests.count and not is_cancelling:
                cancel(folder)
                progress.note("Canceling; what was recorded is kept.")
                is_cancelling = True
    return update.record


class RunProgress:
    """Shows the updates of one run; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=None, counts="")
        self._phase = ""
        self._windows = 0

    def __enter__(self) -> "RunProgress":
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, update: "Update") -> None:
        """Show what is new."""
        if update.record.status.state is RunState.QUEUED and update.runs_before:
            others = "one other run" if update.runs_before == 1 else f"{update.runs_before} other runs"
            self._enter(f"queued after {others}")
        for event in update.events:
            self._show_event(event)

    def note(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._console.print(sentence, markup=False)

    def _show_event(self, event: Event) -> None:
        match event:
            case PhaseEvent():
                self._enter(describe_phase(event.phase))
            case DataProgressEvent():
                self._count(event.files, event.total_files, f"{event.files}/{event.total_files} files")
            case CaptureProgressEvent():
                self._count(event.windows, event.total_windows, f"{event.windows}/{event.total_windows} windows")
            case ProgressEvent():
                self._show_steps(event)
            case WindowEvent():
                self._windows += 1
            case RaceEvent():
                self._show_race(event)
            case NoteEvent():
                self.note(event.sentence)
            case _:  # nothing for the bar
                pass

    def _enter(self, phase: str) -> None:
        if phase == self._phase:
            return
        self._phase = phase
        self._bar.update(self._task, description=phase, total=None, completed=0, counts="")
        if not self._console.is_terminal:
            self._console.print(phase, markup=False)

    def _show_steps(self, event: ProgressEvent) -> None:
        of_all = f"/{event.total_steps}" if event.total_steps else ""
        rate = f" · {event.steps / event.elapsed_s:.3g} steps/s" if event.elapsed_s > 0 and event.steps else ""
        windows = f" · {self._windows} window{'s' * (self._windows != 1)}"
        done, total = (event.steps, event.total_steps) if event.total_steps else (event.elapsed_s, event.total_s)
        self._count(done, total, f"{event.steps}{of_all} steps{rate}{windows}")

    def _show_race(self, event: RaceEvent) -> None:
        spans = [
            f"{each['low']:.2f} to {each['high']:.2f}"
            for each in event.standings
            if each["low"] is not None and each["high"] is not None
        ]
        ratios = f" · ratio {', '.join(spans)}" if spans else ""
        share = max(event.rounds / event.max_rounds, event.elapsed_s / event.max_s)
        self._count(share, 1.0, f"{event.kept_rounds} rounds{ratios}")

    def _count(self, done: float, total: float | None, counts: str) -> None:
        self._bar.update(self._task, completed=done, total=total, counts=counts)


POLL_S = 0.5


def follow_tune(folder: "RunFolder", requests: StopRequests) -> "RunRecord":
    """Show a search's steps as they are taken; the first request to stop cancels it."""
    from pipeline_lab.runs.launch.launcher import cancel
    from pipeline_lab.tuning.opened_search import read_search
    from pipeline_lab.tuning.search_result import describe_step

    console, is_cancelling, shown = messages(), False, 0
    console.print(f"Search {folder.id}", markup=False)
    with console.status("starting") as status:
        while True:
            found = read_search(folder)
            for step in found.steps[shown:]:
                console.print(describe_step(step), markup=False)
            shown = max(shown, len(found.steps))
            if not found.state.is_live:
                return found.record
            if requests.count and not is_cancelling:
                cancel(folder)
                console.print("Canceling; the best so far is kept.", markup=False)
                is_cancelling = True
            status.update(_now(found))
            time.sleep(POLL_S)


def _now(found: "RecordedSearch") -> str:
    spent = sum(trial.seconds or 0.0 for trial in found.trials)
    running = [trial.run for trial in found.trials if trial.seconds is None]
    what = f"measuring {running[-1]}" if running else "choosing"
    return f"{what} · {format_duration(spent * NS_PER_S)} of {format_duration(found.rules.budget_s * NS_PER_S)} spent"
