"""From what hooks note of a user's loop to the rows of the steps table: which loop trains, its epochs, its validation passes.

The training thread only appends small notes; everything else happens on a side thread, which calls :meth:`StepLog.drain`.
Nothing here loads TensorFlow.

Which loop trains: Keras' ``fit``, or the one in whose steps gradients are taken. Passes of other loops between its steps are
validation. Without any, such as a script that only predicts, the first loop that goes on for long stands for the training.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pipeline_lab.capture.script.finished_steps import GIVE_UP_NS, FinishedSteps, ReadGaps, TimedStep
from pipeline_lab.capture.script.graph_waits import IntArray
from pipeline_lab.capture.script.predict_calls import PredictLog
from pipeline_lab.capture.script.step_notes import (
    Called,
    Ended,
    Evaluated,
    Fed,
    GivenUp,
    Note,
    OfPass,
    Pass,
    Predicted,
    Role,
    Saved,
    Seen,
    Took,
)
from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.run_events import (
    CheckpointEvent,
    EvaluationEvent,
    IteratorEndEvent,
    IteratorStartEvent,
    NoteEvent,
    OwnBatchesEvent,
    PredictEvent,
    ProgressEvent,
)
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import STEPS, TableWriter
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.record.own_process import ResidentMemory
from pipeline_lab.worker.record.window_recorder import NO_WINDOW, Window

WARMUP_STEPS, WARMUP_NS = 10, 1 * NS_PER_S
"""Warm-up are the first step, which traces and compiles, and what begins within a second after it, ten steps at most."""
ADOPT_NS, ADOPT_STEPS = 10 * NS_PER_S, 20
"""A loop without gradients stands for the training once it has run this long, while no other trains."""
OUTGROWS = 2
"""Times as long as the longest pass of the training is no validation."""
MOST_HELD = 100_000
"""Notes of a loop that is not known to train; later ones are dropped."""
MOST_WAITING = 1_000_000
"""Notes that nobody has read yet."""
NO_STEPS = (
    "No steps were timed: no loop in Python, Keras' fit or tf.function took a batch from a dataset. What else takes batches "
    "shows only in profile windows."
)
PROGRESS_NS, PROGRESS_SHARE = 1 * NS_PER_S, 200
"""Between reports of progress; a long job reports less often, every 1/200 of its time so far."""


@dataclass
class _Side:
    """A pass that does not train: validation, most likely.

    Attributes:
        call: Of the script, where that is known.
        is_whole: What called it has told of its beginning and end.
    """

    begun_ns: int
    call: str = ""
    is_whole: bool = False
    ended_ns: int = 0
    first_ns: int = 0
    batches: int = 0
    held: list[OfPass] = field(default_factory=list)


class StepLog:
    """Turns notes into rows; hooks append to :attr:`notes` on any thread.

    Args:
        own: Folder of this process's tables.
        log: For progress and validation passes.
        to_epoch_ns: What turns ``perf_counter`` into ns since the epoch.
        windows: Returns the profile windows so far.
        read_gaps: See :data:`ReadGaps`.

    Attributes:
        notes: What was noted and is not read yet.
    """

    def __init__(
        self,
        own: RunFolder,
        log: EventLog,
        to_epoch_ns: int,
        windows: Callable[[], Sequence[Window]],
        read_gaps: ReadGaps,
    ) -> None:
        self.notes: deque[Note] = deque(maxlen=MOST_WAITING)
        self._own, self._log, self._shift_ns, self._windows, self._read_gaps = own, log, to_epoch_ns, windows, read_gaps
        self._memory = ResidentMemory()
        self._table: TableWriter | None = None
        self._training: set[Hashable] = set()
        self._recent_ns: float | None = None
        self._is_adopted = False
        self._sides: dict[Pass, _Side] = {}
        self._predicts = PredictLog()
        self._own_steps: Counter[str] = Counter()
        self._restart()

    def _restart(self) -> None:
        """Forget the steps so far: another loop trains."""
        if self._table is not None:
            self._table.close()
            self._table = None
        self._open: TimedStep | None = None
        self._ready = FinishedSteps(self._read_gaps)
        self._passes: dict[Hashable, tuple[Pass, int]] = {}
        self._longest_pass = self._in_pass = 0
        self._taken: dict[Any, int] = {}
        self._fed_ns, self._is_fed = 0, False
        self._step = self._passes_evaluated = self._away_ns = 0
        self._begun_ns = self._warm_ns = self._reported_ns = self._ended_ns = 0

    @property
    def step_ns(self) -> float | None:
        """Time of the last step that was read; None before the first."""
        return self._recent_ns

    @property
    def is_in_first_step(self) -> bool:
        """Whether a loop that trains has begun its first step, and not yet its second."""
        return self._open is not None and self._open.end_ns is None and not (self._step or self._ready)

    def drain(self, now_ns: int) -> None:
        """Read the notes, and write the rows that are complete; always from the same thread.

        Args:
            now_ns: By ``perf_counter``.
        """
        while self.notes:
            note = self.notes.popleft()
            if isinstance(note, Took) and self._only_continues(note):
                self._read_run(note)
            elif type(note) is Called and self._is_next_call(note):
                self._read_call(note)
            else:
                self._read(note)
        self._adopt_if_due(now_ns)
        self._ready.resolve(now_ns)
        self._write_ready(now_ns)
        if self._step and now_ns - self._reported_ns >= max(PROGRESS_NS, (now_ns - self._begun_ns) // PROGRESS_SHARE):
            self._report(now_ns)

    def close(self, now_ns: int) -> None:
        """Write what is left; without a loop that trains, the longest other one stands for it."""
        self.drain(now_ns)
        if not self._training and self._sides:
            longest = max(self._sides.values(), key=lambda side: side.ended_ns - side.begun_ns)
            self._adopt(longest)
        self._settle_sides()
        if self._open is not None and self._open.end_ns is not None:
            self._finish_open(None)
        self._ready.resolve(now_ns + GIVE_UP_NS)
        self._write_ready(now_ns + GIVE_UP_NS)
        self._report(now_ns)
        own = max(self._own_steps, key=self._own_steps.__getitem__, default="")
        if own and 2 * self._own_steps[own] > self._step:
            self._log.write(OwnBatchesEvent(own))
        for call, found in self._predicts.longest:
            self._log.write(PredictEvent(call, found.count, found.total_ns, self._ended_ns - self._begun_ns))
        if self._table is None:
            self._log.write(NoteEvent(NO_STEPS))
        else:
            self._table.close()

    # which loop trains

    def _read(self, note: Note) -> None:
        if isinstance(note, Fed):
            if note.of.role is Role.FIT:
                self._fed_ns += note.ended_ns - note.asked_ns
                self._is_fed = True
            return
        if isinstance(note, Saved):
            self._log.write(CheckpointEvent(note.asked_ns + self._shift_ns, note.ended_ns + self._shift_ns))
            return
        if isinstance(note, GivenUp):
            if note.of is None or note.of.stream in self._training:
                self._log.write(IteratorEndEvent(note.asked_ns + self._shift_ns, note.ended_ns + self._shift_ns))
            return
        if isinstance(note, Predicted):
            self._predicts.hold(note, is_training=bool(self._begun_ns))
            return
        of = note.of
        if of.stream not in self._training and (of.role is Role.FIT or of.has_gradients):
            self._begin_training(of.stream)
        if of.stream in self._training:
            self._read_training(note)
        else:
            self._read_side(note)

    def _begin_training(self, stream: Hashable) -> None:
        """Take a loop for training; what came before it and did not train was preparation, its own notes count."""
        own: list[OfPass] = [note for of, side in self._sides.items() if of.stream == stream for note in side.held]
        if self._is_adopted:
            self._training.clear()
            self._is_adopted = False
            self._restart()
        keeps = bool(self._training)
        self._sides = {of: side for of, side in self._sides.items() if keeps and of.stream != stream}
        self._training.add(stream)
        for note in own:
            self._read_training(note)

    def _read_side(self, note: OfPass) -> None:
        side = self._sides.setdefault(note.of, _Side(note.asked_ns))
        ended_ns = note.arrived_ns if isinstance(note, Took) else note.ended_ns or note.asked_ns
        if isinstance(note, Evaluated):
            side.begun_ns, side.call, side.is_whole = note.asked_ns, note.call, True
        elif isinstance(note, Took | Called):
            side.batches += (note.steps or note.of.steps_per_call or 1) if isinstance(note, Called) else 1
            side.first_ns = side.first_ns or ended_ns
        side.ended_ns = ended_ns
        if len(side.held) < MOST_HELD:
            side.held.append(note)
        may_train = note.of.role is Role.LOOP and not note.of.knows_gradients
        if self._training and may_train and side.batches > max(OUTGROWS * self._longest_pass, 50):
            self._begin_training(note.of.stream)  # it outgrows what trains: a later phase that retraces nothing

    def _adopt_if_due(self, now_ns: int) -> None:
        if self._training:
            return
        for of, side in self._sides.items():
            if of.has_gradients:
                self._begin_training(of.stream)
                return
            if side.batches >= ADOPT_STEPS and now_ns - side.begun_ns >= ADOPT_NS:
                self._adopt(side)
                return

    def _adopt(self, side: _Side) -> None:
        of = next(of for of, each in self._sides.items() if each is side)
        self._begin_training(of.stream)
        self._is_adopted = True

    # steps

    def _read_training(self, note: OfPass) -> None:
        if isinstance(note, Evaluated):
            return
        if isinstance(note, Ended):
            self._finish_open(note.asked_ns)
            self._is_fed = False  # what comes next may read a dataset
            return
        if isinstance(note, Seen):
            self._ready.assign(note.of, note.gaps)
            return
        begun_ns = min((side.begun_ns for side in self._sides.values()), default=note.asked_ns)
        beside = self._settle_sides()
        asked_ns = min([note.asked_ns, *(side.begun_ns for side in beside)])
        last, _ = self._passes.get(note.of.stream, (note.of, 0))
        left_ns = [min(asked_ns, begun_ns)] if self._away_ns else []
        made_ns = None if last is note.of or note.of.made is None else note.of.made.asked_ns
        if made_ns is not None and self._open is not None and made_ns > self._open.start_ns + (self._open.wait_ns or 0):
            left_ns.append(min(asked_ns, made_ns))  # a pass that was broken off was left when the next one was made
        self._finish_open(asked_ns, min(left_ns, default=None))
        if last.fit != note.of.fit:  # what the script does between two calls of `fit` belongs to no step
            self._away_ns = asked_ns - self._ended_ns
        step = TimedStep(note.of, asked_ns, self._epoch_of(note.of), away_ns=self._away_ns)
        self._away_ns = 0
        if isinstance(note, Took):
            self._own_steps.update([note.of.call] if note.of.call else [])
            step.examples = note.examples
            step.wait_ns = note.arrived_ns - note.asked_ns + sum(side.ended_ns - side.begun_ns for side in beside)
        else:
            is_first = not (self._step or self._ready or self._taken)
            step.end_ns, step.steps, step.examples = note.ended_ns, note.steps or 0, note.of.examples
            step.builds_graph = note.is_first
            step.knows_no_wait = is_first or note.is_first or note.of.iterator is None
            if self._is_fed and note.ended_ns is not None:
                step.wait_ns, self._fed_ns = min(self._fed_ns, note.ended_ns - note.asked_ns), 0
            self._taken.setdefault(note.of.iterator, 0)
        self._predicts.count()
        self._open = step
        self._begun_ns = self._begun_ns or asked_ns

    def _only_continues(self, note: Took) -> bool:
        """Say whether a batch is the next one of the pass that trains, with nothing beside it to be told apart."""
        step = self._open
        is_next = step is not None and step.of is note.of and step.wait_ns is not None
        return (
            is_next
            and self._step >= WARMUP_STEPS
            and not (self._sides or self._ready or self._away_ns or self._predicts.is_waiting)
        )

    def _is_next_call(self, note: Called) -> bool:
        """Say the same of a call."""
        step = self._open
        is_next = step is not None and step.of is note.of and step.steps > 0 and note.steps is not None
        return is_next and not (self._sides or self._away_ns or self._is_fed or self._predicts.is_waiting)

    def _read_call(self, note: Called) -> None:
        """Read a call in a fraction of the time that any other note takes."""
        before = self._open
        assert before is not None
        self._finish_open(note.asked_ns)
        step = self._open = TimedStep(note.of, note.asked_ns, before.epoch)
        step.end_ns, step.steps, step.examples = note.ended_ns, note.steps or 0, note.of.examples
        step.knows_no_wait = note.of.iterator is None

    def _read_run(self, note: Took) -> None:
        """Read the batches of one pass that follow each other, all at once: that takes a fraction of the time."""
        run, notes, before = [note], self.notes, self._open
        assert before is not None
        while notes and isinstance(following := notes[0], Took) and following.of is note.of:
            run.append(following)
            notes.popleft()
        _, asked, arrived, examples = zip(*run, strict=True)
        asked_ns = np.array((before.start_ns, *asked))
        wait_ns = (np.array(arrived) - asked_ns[1:]).tolist()
        count, spans = len(run), np.stack((asked_ns[:-1], asked_ns[1:]), axis=1) + self._shift_ns
        if note.of.call:
            self._own_steps[note.of.call] += count
        self._extend(
            step=range(self._step, self._step + count),
            warmup=[False] * count,
            start_ns=spans[:, 0].tolist(),
            wait_ns=[before.wait_ns, *wait_ns[:-1]],
            end_ns=spans[:, 1].tolist(),
            window=self._windows_at(spans).tolist(),
            away_ns=[before.away_ns, *[0] * (count - 1)],
            epoch=[before.epoch] * count,
            examples=[before.examples, *examples[:-1]],
        )
        self._step += count
        self._in_pass += count
        self._longest_pass = max(self._longest_pass, self._in_pass)
        self._recent_ns = float(asked_ns[-1] - asked_ns[-2])
        self._open = TimedStep(note.of, asked[-1], before.epoch, wait_ns=wait_ns[-1], examples=examples[-1])

    def _epoch_of(self, of: Pass) -> int:
        """Return the number of the pass among those of its loop; of a new one, its iterator's making is reported."""
        last, count = self._passes.get(of.stream, (None, -1))
        if last is not of:
            if of.made is not None:
                self._log.write(
                    IteratorStartEvent(of.made.asked_ns + self._shift_ns, of.made.ended_ns + self._shift_ns)
                )
            self._passes[of.stream] = (of, count + 1)
            self._in_pass = 0
            return count + 1
        return count

    def _settle_sides(self) -> list[_Side]:
        """Report validation passes since the last step, and return where single batches of other datasets were taken.

        A single one belongs to the step, as where two datasets are read in turn; what ``predict`` took belongs to where it is called.
        """
        single = []
        for of, side in self._sides.items():
            if side.batches < 2 and of.role is Role.PREDICT and not side.is_whole:
                continue
            if side.batches < 2 and of.role is Role.LOOP:
                single.append(side)
                continue
            if self._open is None and not self._ready and not self._step:
                continue
            self._away_ns += side.ended_ns - side.begun_ns
            self._log.write(
                EvaluationEvent(
                    number=self._passes_evaluated,
                    steps=self._step + len(self._ready) + (self._open is not None),
                    started_ns=side.begun_ns + self._shift_ns,
                    ended_ns=side.ended_ns + self._shift_ns,
                    first_batch_ns=max(0, side.first_ns - side.begun_ns),
                    batches=side.batches,
                    loss=None,
                    accuracy=None,
                    call=side.call,
                )
            )
            self._passes_evaluated += 1
        self._sides.clear()
        return single

    def _finish_open(self, next_ns: int | None, left_ns: int | None = None) -> None:
        """Complete the open step, whose successor is asked for then; where an evaluation lies in between, it was left before that."""
        step, self._open = self._open, None
        if step is None:
            return
        if step.wait_ns is None:
            step.steps = step.steps or step.of.steps_per_call or 1
            self._taken[step.of.iterator] = step.last_element = self._taken[step.of.iterator] + step.steps
        if step.end_ns is None:
            step.end_ns = next_ns if left_ns is None else max(step.start_ns, left_ns)
        step.next_ns = next_ns
        if step.end_ns is None:
            return
        self._ended_ns = step.end_ns
        self._recent_ns = ((left_ns or next_ns or step.end_ns) - step.start_ns) / step.steps
        self._in_pass += step.steps
        self._longest_pass = max(self._longest_pass, self._in_pass)
        self._ready.append(step)

    # rows

    def _write_ready(self, now_ns: int) -> None:
        rows: list[tuple[Any, ...]] = []
        for step in self._ready.take(now_ns):
            self._append_rows(step, rows)
        if not rows:
            return
        start, wait, end, is_warmup, away, epoch, examples = zip(*rows, strict=True)
        spans = np.array((start, end)).T + self._shift_ns
        self._extend(
            step=range(self._step - len(rows), self._step),
            warmup=is_warmup,
            start_ns=spans[:, 0].tolist(),
            wait_ns=wait,
            end_ns=spans[:, 1].tolist(),
            window=self._windows_at(spans).tolist(),
            away_ns=away,
            epoch=epoch,
            examples=examples,
        )

    def _append_rows(self, step: TimedStep, rows: list[tuple[Any, ...]]) -> None:
        """Add a row per step; the steps of one call share its time."""
        length_ns = step.length_ns // step.steps
        wait_ns = None if step.wait_ns is None else step.wait_ns // step.steps
        start_ns, away_ns = step.start_ns, step.away_ns
        for _ in range(step.steps):
            end_ns = start_ns + length_ns
            is_warmup = self._is_warmup(start_ns, end_ns) or step.builds_graph
            rows.append((start_ns, wait_ns, end_ns, is_warmup, away_ns, step.epoch, step.examples))
            start_ns, away_ns = end_ns, 0
            self._step += 1

    def _extend(self, **columns: Sequence[Any]) -> None:
        """Write rows; loss, accuracy and the time when the result is there would have to be waited for."""
        if self._table is None:
            self._table = TableWriter(self._own.steps, STEPS)
        count = len(columns["step"])
        nothing, rss_bytes = [None] * count, [self._memory.read_bytes()] * count
        found = {**columns, "loss": nothing, "accuracy": nothing, "ready_ns": nothing, "rss_bytes": rss_bytes}
        self._table.extend(*(found[name] for name in STEPS.schema.names))

    def _is_warmup(self, start_ns: int, end_ns: int) -> bool:
        if not self._step:
            self._warm_ns = end_ns + WARMUP_NS
            return True
        return self._step < WARMUP_STEPS and start_ns < self._warm_ns

    def _windows_at(self, spans: IntArray) -> IntArray:
        """Return the number of the window that was open in each span, shape (n, 2), ns since the epoch."""
        found = np.full(len(spans), NO_WINDOW)
        for window in reversed(self._windows()):
            if window.stopped_ns and window.stopped_ns <= spans[0, 0]:
                break
            is_in = (window.started_ns < spans[:, 1]) & (not window.stopped_ns or window.stopped_ns > spans[:, 0])
            found[is_in & (found == NO_WINDOW)] = window.number
        return found

    def _report(self, now_ns: int) -> None:
        if self._step:
            self._reported_ns = now_ns
            self._log.write(ProgressEvent(self._step, None, (now_ns - self._begun_ns) / NS_PER_S, None))
