"""How far a run is, from the events that its worker left."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.runs.run_events import (
    CaptureProgressEvent,
    DataProgressEvent,
    Event,
    FailureEvent,
    NoteEvent,
    PhaseEvent,
    ProgressEvent,
    RaceEvent,
    WindowEvent,
    describe_phase,
)
from pipeline_lab.ui.text import sentence
from pipeline_lab.units import NS_PER_S, format_count, format_duration


@dataclass(frozen=True)
class Progress:
    """A run's progress.

    Attributes:
        text: What it does now, for people.
        fraction: Done share of the training, 0 to 1; None before it is known.
        windows: Profile windows on disk.
        notes: Sentences that the worker left.
        failure: How it failed, or None.
    """

    text: str
    fraction: float | None
    windows: int
    notes: tuple[str, ...]
    failure: FailureEvent | None


def summarise(events: Sequence[Event]) -> Progress:
    """Return the progress that all events together tell of."""
    text, fraction = "Starting", None
    for event in events:
        if isinstance(event, PhaseEvent):
            text = sentence(describe_phase(event.phase))
            fraction = 1.0 if event.phase == "finishing" else fraction
        elif isinstance(event, DataProgressEvent):
            text = f"Writing the data files: {event.files} of {event.total_files}"
        elif isinstance(event, CaptureProgressEvent):
            text = f"Recording windows of the job: {event.windows} of {event.total_windows}"
            fraction = event.windows / event.total_windows
        elif isinstance(event, ProgressEvent):
            text, fraction = _describe(event), _fraction(event)
        elif isinstance(event, RaceEvent):
            text, fraction = _describe_race(event), _race_fraction(event)
    return Progress(
        text,
        fraction,
        windows=sum(isinstance(event, WindowEvent) for event in events),
        notes=tuple(event.sentence for event in events if isinstance(event, NoteEvent)),
        failure=next((event for event in reversed(events) if isinstance(event, FailureEvent)), None),
    )


def _fraction(event: ProgressEvent) -> float | None:
    if event.total_steps:
        return min(1.0, event.steps / event.total_steps)
    return min(1.0, event.elapsed_s / event.total_s) if event.total_s else None


def _describe(event: ProgressEvent) -> str:
    if event.total_steps:
        return f"Training: step {format_count(event.steps)} of {format_count(event.total_steps)}"
    elapsed = format_duration(event.elapsed_s * NS_PER_S)
    total = f" of {format_duration(event.total_s * NS_PER_S)}" if event.total_s else ""
    return f"Training: {format_count(event.steps)} steps in {elapsed}{total}"


def _race_fraction(event: RaceEvent) -> float:
    return min(1.0, max(event.rounds / event.max_rounds, event.elapsed_s / event.max_s))


def _describe_race(event: RaceEvent) -> str:
    elapsed, longest = (format_duration(seconds * NS_PER_S) for seconds in (event.elapsed_s, event.max_s))
    rounds = f"{event.rounds} {'round' if event.rounds == 1 else 'rounds'}"
    left_out = event.rounds - event.kept_rounds
    disturbed = f" ({left_out} disturbed, left out)" if left_out else ""
    return f"Racing: {rounds}{disturbed} in {elapsed} of at most {longest}"
