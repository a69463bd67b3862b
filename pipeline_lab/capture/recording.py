"""The run that this process records into: its windows, its memory and load, its end."""

import contextlib
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline_lab.capture.place import Place
from pipeline_lab.runs import recorded
from pipeline_lab.runs.events import NoteEvent, PhaseEvent
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, RunStore, end_run, read_record, update_record
from pipeline_lab.worker.clock import Clock
from pipeline_lab.worker.event_log import EventLog
from pipeline_lab.worker.window_recorder import Profiler, WindowRecorder

ALONE = Place()


class Recording:
    """One process's part of a run.

    Of several processes the first owns the run; the others write their tables and events into a folder of their own
    inside it, and their traces beside the first one's. A process that finds no run to join begins one itself.

    Attributes:
        folder: The whole run.
        own: Where this process writes its tables and events; the same folder for the one that owns the run.
        begun_s: When the run was begun, s since the epoch; the same for all its processes.
    """

    def __init__(self, store: RunStore, name: str, *, tags: tuple[str, ...], place: Place = ALONE) -> None:
        self.place = place
        self._store = store
        joined = recorded.join(store, place.job) if place.rank else None
        self.is_owner = joined is None
        self.folder = recorded.begin(store, name, tags=tags) if joined is None else joined
        if self.is_owner and place.size > 1 and not place.rank:
            recorded.announce(store, place.job, self.folder)
        self.begun_s = read_record(self.folder).status.created_s
        self.own = self.folder if self.is_owner else self.folder.process(place.rank)
        self.own.path.mkdir(parents=True, exist_ok=True)
        self.clock = Clock()
        self.log = EventLog(self.own.events)
        if place.rank and self.is_owner:
            self.note(f"No run of {place.job[:80]!r} was going after {recorded.JOIN_S:.0f} s; this one stands alone.")

    def note(self, sentence: str) -> None:
        """Leave a sentence for the run's readers; a full disk swallows it."""
        with contextlib.suppress(OSError):
            self.log.write(NoteEvent(sentence))

    def enter(self, phase: str) -> None:
        """Tell readers what happens now; a full disk swallows it."""
        with contextlib.suppress(OSError):
            self.log.write(PhaseEvent(phase))

    def windows(self, profiler: Profiler) -> WindowRecorder:
        """Return what records the windows of this process."""
        return WindowRecorder(
            self.folder, profiler, self.log, self.clock, process=self.place.label, scratch=self.own.scratch
        )

    def describe(self, environment: dict[str, Any]) -> None:
        """Note what the job runs on, beside what is noted already."""
        if self.is_owner:
            with contextlib.suppress(Exception):  # the run may be gone, or the disk full; the job must not notice
                update_record(
                    self.folder, lambda record: replace(record, environment={**record.environment, **environment})
                )

    def end(self, state: RunState, reason: str = "", exit_code: int | None = None) -> None:
        """Write down how it ended; only the process that owns the run does."""
        shutil.rmtree(self.own.scratch, ignore_errors=True)
        if not self.is_owner:
            return
        if self.place.size > 1:
            recorded.forget(self._store, self.place.job)
        end_run(self.folder, state, reason, exit_code)


class Sampler:
    """Fills the tables of resources and of tf.data's own model from threads, until it is closed."""

    def __init__(self, folder: RunFolder, clock: Clock, on_sample: Callable[[int], bool]) -> None:
        from pipeline_lab.capture.gpu_in_use import GpuInUse, shows_gpu
        from pipeline_lab.capture.live_iterators import BusiestIterator
        from pipeline_lab.worker.pipeline_model import sample_model
        from pipeline_lab.worker.probes import open_resources, sample_resources

        self._stack = contextlib.ExitStack()
        table = self._stack.enter_context(contextlib.closing(open_resources(folder.resources)))
        self._stack.enter_context(sample_resources(table, clock, on_sample, GpuInUse(shows_gpu)))
        self._stack.enter_context(sample_model(folder.model, clock, BusiestIterator().find))
        self._lock = threading.Lock()

    def close(self) -> None:
        """Stop; a full disk has cost the last rows, no more."""
        with self._lock, contextlib.suppress(OSError):
            self._stack.close()
