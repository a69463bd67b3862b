"""Events that the worker reports while it works: one JSON line each in ``events.jsonl``.

The file is append-only. A reader keeps its offset and ignores a torn last line, so it can follow a live run and open
one whose worker was killed in the middle of a line. Unknown kinds are skipped: a newer worker may write more.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, field, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from pipeline_lab.data_classes import dataclass


@dataclass(frozen=True)
class Event:
    """Base of all events. ``time_ns`` is the moment of writing, ns since the epoch."""

    kind: ClassVar[str]
    time_ns: int = field(default_factory=time.time_ns, kw_only=True)


@dataclass(frozen=True)
class PhaseEvent(Event):
    """The worker entered a phase; :func:`describe_phase` knows them all."""

    kind = "phase"
    phase: str


@dataclass(frozen=True)
class ProgressEvent(Event):
    """Training steps so far, without the warm-up; ``total_steps`` is None when the job runs for a time."""

    kind = "progress"
    steps: int
    total_steps: int | None
    elapsed_s: float
    total_s: float | None


@dataclass(frozen=True)
class DataProgressEvent(Event):
    """Files written so far while data is generated."""

    kind = "data_progress"
    files: int
    total_files: int


@dataclass(frozen=True)
class CaptureProgressEvent(Event):
    """Windows requested so far from a job that Pipeline Lab did not launch."""

    kind = "capture_progress"
    windows: int
    total_windows: int


@dataclass(frozen=True)
class CalibrationEvent(Event):
    """The compute-only step (G) and the input-only time per batch (D), ns; None where it was not measured.

    ``…_cpu_ns`` is the CPU time of the process, ns per step. ``page_cache`` is ``warm`` or ``cold``, None where a cold one
    was requested and the system did not comply. ``of_calls`` says that G is the very function whose calls are the steps, once
    their batches are there, as in Keras' ``fit``; a loop of a script's own does more around its functions.
    """

    kind = "calibration"
    device_only_ns: float | None
    device_only_steps: int
    pipeline_only_ns: float | None
    pipeline_only_batches: int
    first_batch_ns: float | None
    device_only_cpu_ns: float | None = None
    pipeline_only_cpu_ns: float | None = None
    page_cache: str | None = None
    of_calls: bool = False


@dataclass(frozen=True)
class EvaluationEvent(Event):
    """An evaluation pass has ended; times in ns since the epoch.

    ``number`` counts passes from 0, ``steps`` the steps before it, warm-up included. ``loss`` and ``accuracy`` (0 to 1) are
    means over ``batches``, None where the workload has none or the mean is not finite. ``call`` is the script's call of a method
    of Keras and its place, as in :class:`PredictEvent`; empty for the validation that ``fit`` does itself, and for loops.
    """

    kind = "evaluation"
    number: int
    steps: int
    started_ns: int
    ended_ns: int
    first_batch_ns: int
    batches: int
    loss: float | None
    accuracy: float | None
    call: str = ""


@dataclass(frozen=True)
class CheckpointEvent(Event):
    """A checkpoint was written on the training thread; times in ns since the epoch."""

    kind = "checkpoint"
    started_ns: int
    ended_ns: int


@dataclass(frozen=True)
class IteratorStartEvent(Event):
    """Python made the iterator of a pass that trains, whose graph was optimized and built first; times in ns since the epoch."""

    kind = "iterator_start"
    started_ns: int
    ended_ns: int


@dataclass(frozen=True)
class IteratorEndEvent(Event):
    """Python gave up an iterator of tf.data, which waited for its threads; times in ns since the epoch."""

    kind = "iterator_end"
    started_ns: int
    ended_ns: int


@dataclass(frozen=True)
class OwnBatchesEvent(Event):
    """The script makes the batches itself that it trains on, and calls its step with them: ``train_step at train.py:40``."""

    kind = "own_batches"
    call: str


@dataclass(frozen=True)
class OwnPythonEvent(Event):
    """The function of the script in which its own Python was seen most while it trained.

    Attributes:
        function: Its qualified name; ``<module>`` for what stands in none.
        file, line: The line of it that was seen most.
        seen, of: How often, and how often any Python of the script or of Keras.
    """

    kind = "own_python"
    function: str
    file: str
    line: int
    seen: int
    of: int


@dataclass(frozen=True)
class EagerStepEvent(Event):
    """A function of the script takes gradients op by op, a call of it for each step.

    Attributes:
        function: Its qualified name; empty where the gradients are taken in a loop over the batches that is in no such function.
        file, line: Of its ``def``; else where the gradients are taken. Of the switch where there is one; empty and 0 where that is not known.
        switch: What keeps TensorFlow from running a function that there is, such as ``run_eagerly=True``; empty without one.
    """

    kind = "eager_step"
    function: str
    file: str
    line: int
    switch: str = ""


@dataclass(frozen=True)
class PredictEvent(Event):
    """Keras' ``predict`` was called again and again with no more than one batch, between steps.

    Attributes:
        call: ``model.predict at train.py:40``.
        count: Of the calls but the first one, which traces.
        total_ns: That they took.
        span_ns: From the beginning of the first step to the end of the last one.
    """

    kind = "predict"
    call: str
    count: int
    total_ns: int
    span_ns: int


@dataclass(frozen=True)
class WindowEvent(Event):
    """One profile window is on disk.

    Times are ns since the epoch. ``start_cost_ns`` and ``stop_cost_ns`` say how long opening and closing the window held
    the training thread, including its wait for the devices; the flush (``stopped_ns`` to ``flushed_ns``) runs beside the
    training. Steps are None where they were not counted, costs and memory where the window was requested from outside the
    job.
    """

    kind = "window"
    name: str
    first_step: int | None
    last_step: int | None
    started_ns: int
    stopped_ns: int
    flushed_ns: int
    size_bytes: int
    start_cost_ns: int | None = None
    stop_cost_ns: int | None = None
    rss_before_bytes: int | None = None
    rss_peak_bytes: int | None = None
    shortened: bool = False

    @property
    def growth_bytes(self) -> int | None:
        """What the window added to the process, where that is known."""
        if self.rss_before_bytes is None or self.rss_peak_bytes is None:
            return None
        return self.rss_peak_bytes - self.rss_before_bytes


@dataclass(frozen=True)
class RaceEvent(Event):
    """Results of a race after a round.

    ``standings`` holds one entry per candidate: ``arm``, ``pairs``, ``ratio``, ``low``, ``high`` (None while nothing is
    excluded) and ``outcome``.
    """

    kind = "race"
    rounds: int
    kept_rounds: int
    max_rounds: int
    elapsed_s: float
    max_s: float
    standings: list[dict[str, Any]]


@dataclass(frozen=True)
class NoteEvent(Event):
    """A remark for readers of the run, one sentence."""

    kind = "note"
    sentence: str


@dataclass(frozen=True)
class FailureEvent(Event):
    """The worker failed: one sentence for users, the traceback for a bug report."""

    kind = "failure"
    sentence: str
    traceback: str


KINDS: dict[str, type[Event]] = {kind.kind: kind for kind in Event.__subclasses__()}


def format_event(event: Event) -> str:
    """Write an event as one line of JSON with its line end."""
    return json.dumps({"kind": event.kind, **asdict(event)}, ensure_ascii=False) + "\n"


def parse_event(line: str | bytes) -> Event | None:
    """Read one line; None if it is torn, of an unknown kind, or holds a value that its field cannot have."""
    try:
        document: dict[str, Any] = json.loads(line)
        name = document.pop("kind")
        kind, taken = KINDS[name], _kinds_of_values(name)
        known = {field: value for field, value in document.items() if field in taken}
        return kind(**known) if all(_can_be(value, taken[field]) for field, value in known.items()) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@cache
def _kinds_of_values(name: str) -> dict[str, tuple[type, ...]]:
    """Return the types that a value of each field of a kind of event can have."""
    kind = KINDS[name]
    hints = get_type_hints(kind)
    choices = {name: get_args(hint) if isinstance(hint, UnionType) else (hint,) for name, hint in hints.items()}
    return {each.name: tuple(get_origin(one) or one for one in choices[each.name]) for each in fields(kind)}


_FAR = 2**62
"""Differences of numbers beyond this would not fit into 64 bits."""


def _can_be(value: object, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    if not isinstance(value, int | float):
        return isinstance(value, kinds)
    return (float in kinds or (int in kinds and isinstance(value, int))) and -_FAR < value < _FAR


class EventReader:
    """Follow ``events.jsonl``: each call returns the events since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[Event]:
        """Return the complete events since the last call."""
        return list(self._new_events())

    def _new_events(self) -> Iterator[Event]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                tail = file.read()
        except FileNotFoundError:
            return
        complete, _, _ = tail.rpartition(b"\n")
        if not complete:
            return
        self._offset += len(complete) + 1
        for line in complete.split(b"\n"):
            if (event := parse_event(line)) is not None:
                yield event


def read_events(path: Path) -> list[Event]:
    """Return all complete events of a file; none if there is no file yet."""
    return EventReader(path).read()


TAIL_BYTES = 16_384


def last_steps(path: Path) -> int | None:
    """Return how many steps a job has reported last; None if it has reported none. Of a long file only the end is read."""
    with suppress(OSError), path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        for beginning in (max(0, length - TAIL_BYTES), 0):
            file.seek(beginning)
            for line in reversed(file.read(length - beginning).split(b"\n")[bool(beginning) : -1]):
                if b'"progress"' in line and isinstance(event := parse_event(line), ProgressEvent):
                    return event.steps
    return None


def find_damaged_events(path: Path) -> str:
    """Say what is wrong with the events of a launched job that ended by itself; empty if nothing is, or if there are none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return ""
    *lines, rest = text.split(b"\n")
    torn = sum(not _is_sound(line) for line in lines) + bool(rest)
    named = (parse_event(line) for line in lines if LAST_PHASE.encode() in line)
    has_ended = any(isinstance(event, PhaseEvent) and event.phase == LAST_PHASE for event in named)
    if has_ended and not torn:
        return ""
    lost = "its end is missing" if not has_ended else f"{torn} of its lines cannot be read"
    return f"{path.name} of this run is damaged: {lost}; restore the file, or run the job again."


def _is_sound(line: bytes) -> bool:
    """Say whether a line is an event, or may be one of a kind that a newer worker writes."""
    if parse_event(line) is not None:
        return True
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("kind") not in KINDS


STOPPED = 128 + signal.SIGTERM
"""Exit code of a worker that was asked to stop, and wrote what it had."""
LAST_PHASE = "finishing"
_WORDS = {
    "importing": "loading TensorFlow",
    "script": "running the script until it trains",
    "data": "preparing data",
    "building": "building pipeline and model",
    "calibrating": "timing the compute-only step and the input-only pipeline",
    "warmup": "warming up",
    "training": "training",
    "evaluating": "evaluating",
    "racing": "racing",
    "searching": "searching",
    "recording": "recording a profile window of each arm",
    "capturing": "recording windows of the job",
    LAST_PHASE: "writing the last results",
}


def describe_phase(phase: str) -> str:
    """Describe a phase in words; an unknown one is returned as it is."""
    return _WORDS.get(phase, phase)
