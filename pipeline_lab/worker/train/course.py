"""The course of a training: everything around each call of its steps, evaluation passes, and the plain loop that makes the calls."""

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np

from pipeline_lab.errors import DataError
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.runs.run_events import EvaluationEvent, NoteEvent, PhaseEvent, ProgressEvent
from pipeline_lab.runs.run_tables import TableWriter
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.record.own_process import ResidentMemory, clear_on_thread
from pipeline_lab.worker.record.step_recorder import IntArray, StepPlace, StepRecorder, read_names, read_parts
from pipeline_lab.worker.record.step_results import ResultsAhead, has_entries_on_device
from pipeline_lab.worker.record.step_windows import StepWindows
from pipeline_lab.worker.train.training_steps import Batch, StepCalls, TakenStep, Trainer
from pipeline_lab.worker.workloads.data_files import FILE_SHIFT, RECORD_MASK

PROGRESS_PERIOD_NS = NS_PER_S // 2
PROGRESS_SHARE = 200
"""A long job reports less often: every 1/200 of its time so far."""


class Course:
    """Counts steps, and handles windows, rows, checkpoints and progress.

    A loop calls :meth:`next_steps`, makes a call inside :meth:`mark`, passes its steps to :meth:`record` there, and to
    :meth:`finish_call` afterwards.

    Args:
        job: The job.
        windows: Its profile windows, which open before a call and close after one.
        recorder: Writes the rows.
        mark_step: Surrounds a call with a marker in the trace that carries the number of its first step.
        after_steps: Called with the first and the last step of each call.
        evaluate: Makes an evaluation pass; called with the number of steps so far.

    Attributes:
        needs_new_pipeline: The training continues with a rebuilt pipeline.
        writes_later: What is recorded of a call is written by :meth:`write`, for loops that wait for the device at every step: it
            idles as long as the training thread does anything else before the next call.
    """

    def __init__(
        self,
        job: Job,
        windows: StepWindows,
        recorder: StepRecorder,
        mark_step: Callable[[int], AbstractContextManager[None]],
        after_steps: Callable[[int, int], None] = lambda _first, _last: None,
        evaluate: Callable[[int], None] = lambda _steps: None,
    ) -> None:
        self._job, self._windows, self._recorder = job, windows, recorder
        self._mark_step, self._after_steps, self._evaluate = mark_step, after_steps, evaluate
        self._training = job.options.training
        self._progress = StepProgress(job)
        self._memory = ResidentMemory()
        self._step = 0
        self._away_since_ns: int | None = None
        self._unwritten: list[Callable[[], None]] = []
        self.needs_new_pipeline = self.writes_later = False

    @property
    def steps(self) -> int:
        """Steps so far, warm-up included."""
        return self._step

    def next_steps(self, most: int) -> int:
        """Return how many steps the next call takes, ``most`` at most; 0 to end the loop."""
        warmup = self._training.warmup_steps
        if self._step == 0:
            self._job.enter("warmup")
        if self._step < warmup:
            return 0 if self._job.stop.is_set or self.needs_new_pipeline else min(most, warmup - self._step)
        if not self._progress.has_begun:
            self._job.enter("training")
            self._progress.start()
        if self._job.stop.is_set or self._progress.is_complete:
            self._progress.report()
            self.needs_new_pipeline = False
            return 0
        if self.needs_new_pipeline:
            return 0
        self._windows.before_step(self._step)
        return most if self._progress.left is None else min(most, self._progress.left)

    def mark(self) -> AbstractContextManager[None]:
        """Surround a call with its marker."""
        return self._mark_step(self._step)

    def record(self, taken: Sequence[TakenStep]) -> None:
        """Write the rows of a call's steps."""
        self._unwritten.append(functools.partial(self._write_rows, self._step, self._windows.number, taken))
        if not self.writes_later:
            self.write()

    def write(self) -> None:
        """Write what has not been written of the calls so far."""
        due, self._unwritten = self._unwritten, []
        for write in due:
            write()

    def finish_call(self, taken: Sequence[TakenStep]) -> None:
        """Advance past a call; does nothing where the data ended before its first step."""
        if not taken:
            return
        self._unwritten.append(functools.partial(self._write_samples, self._step, taken))
        if not self.writes_later:
            self.write()
        first, self._step = self._step, self._step + len(taken)
        self._after_steps(first, self._step - 1)
        self._windows.after_step(self._step - 1)
        self._progress.count_steps(max(0, self._step - max(first, self._training.warmup_steps)))
        self._job.pause()
        if is_due(self._training.evaluate_every, first, self._step):
            self._pause_to_evaluate()

    def take_new_pipeline(self) -> None:
        """Continue: the pipeline has been rebuilt."""
        self.needs_new_pipeline = False

    def _write_rows(self, first: int, window: int, taken: Sequence[TakenStep]) -> None:
        rss_bytes = self._memory.read_bytes()
        for step, one in enumerate(taken, first):
            is_warmup = step < self._training.warmup_steps
            self._recorder.record(StepPlace(step, is_warmup, window, rss_bytes, self._take_pause_ns(one)), one)

    def _write_samples(self, first: int, taken: Sequence[TakenStep]) -> None:
        for step, one in enumerate(taken, first):
            self._recorder.record_samples(step, one.batch)

    def _pause_to_evaluate(self) -> None:
        """Evaluate, outside of all windows."""
        self._windows.interrupt()
        self.write()
        self._recorder.catch_up()
        self._away_since_ns = self._job.clock.now_ns()
        if not self._job.stop.is_set:
            self._evaluate(self._step)
        self.needs_new_pipeline = self._training.evaluation == "rebuild"

    def _take_pause_ns(self, first: TakenStep) -> int:
        """Return how long training paused before a step, ns."""
        since_ns, self._away_since_ns = self._away_since_ns, None
        return 0 if since_ns is None else max(0, first.start_ns - since_ns)

    def end_of_data(self) -> None:
        """Say that the data ended before the training did."""
        self._job.log.write(NoteEvent(_early_end(self._step, self._training)))
        self._progress.report()


class StepProgress:
    """Progress of the steps after the warm-up."""

    def __init__(self, job: Job) -> None:
        self._job, self._training = job, job.options.training
        self._steps = 0
        self._begun_ns: int | None = None
        self._reported_ns, self._reported_steps = 0, -1

    @property
    def has_begun(self) -> bool:
        return self._begun_ns is not None

    def start(self) -> None:
        self._begun_ns = self._job.clock.now_ns()
        self.report()

    @property
    def left(self) -> int | None:
        """Remaining steps; None where the job trains for a time."""
        return None if self._training.steps is None else max(0, self._training.steps - self._steps)

    @property
    def is_complete(self) -> bool:
        return self.left == 0 if self.left is not None else self._elapsed_s >= (self._training.seconds or 0)

    def count_steps(self, steps: int) -> None:
        self._steps += steps
        now_ns = self._job.clock.now_ns()
        period_ns = max(PROGRESS_PERIOD_NS, (now_ns - (self._begun_ns or 0)) // PROGRESS_SHARE)
        if now_ns - self._reported_ns >= period_ns:
            self.report()

    def report(self) -> None:
        """Report progress, if there is any since the last report."""
        if self._begun_ns is None or self._steps == self._reported_steps:
            return
        self._reported_ns, self._reported_steps = self._job.clock.now_ns(), self._steps
        training = self._training
        self._job.log.write(ProgressEvent(self._steps, training.steps, self._elapsed_s, training.seconds))

    @property
    def _elapsed_s(self) -> float:
        return (self._job.clock.now_ns() - (self._begun_ns or 0)) / NS_PER_S


def is_due(every: int | None, before: int, by_now: int) -> bool:
    """Say whether something that is due every n steps became due between two counts of steps."""
    return every is not None and by_now // every > before // every


def _early_end(step: int, training: TrainingOptions) -> str:
    wanted = f"{training.seconds:g} s" if training.steps is None else f"{training.warmup_steps + training.steps} steps"
    return (
        f"The data ended after {step} of {wanted}, warm-up included; add a repeat stage to continue with another epoch."
        if training.steps is not None
        else f"The data ended after {step} steps, before {wanted} were over; add a repeat stage to continue."
    )


Follow = Callable[[Any], None]
"""Called with the iterator over the pipeline once it exists."""


class Loop(Protocol):
    """Trains on a pipeline until the course is over or the data ends."""

    def run(self, dataset: Any, follow: Follow) -> None: ...


class PlainLoop:
    """A Python loop that calls the steps.

    Args:
        course: Called around each call.
        steps: Takes the steps.
    """

    def __init__(self, course: Course, steps: StepCalls) -> None:
        self._course, self._steps = course, steps

    def run(self, dataset: Any, follow: Follow) -> None:
        batches: Iterator[Any] = iter(dataset)
        follow(batches)
        while most := self._course.next_steps(self._steps.per_call):
            with self._course.mark():
                taken = self._steps.take(batches, most)
                self._course.record(taken)
            self._course.finish_call(taken)
            if len(taken) < most:
                self._course.end_of_data()
                return


Examples: TypeAlias = tuple[IntArray, list[str]]
"""File and record of each example of a batch, shape (examples,), and their names, none where they have none."""


class EvaluationPasses:
    """Evaluates the model on request, each time from the beginning of the evaluation data.

    Args:
        job: The job.
        trainer: Has the model.
        make_dataset: Builds the pipeline of a pass.
        table: For file and record of each example, of schema ``EVALUATED``; None where unknown.
        first_file: Index of the first evaluated file, where ids count only evaluated files.
        is_asynchronous: The device works beside the host.
    """

    def __init__(
        self,
        job: Job,
        trainer: Trainer,
        make_dataset: Callable[[], Any],
        table: TableWriter | None,
        first_file: int,
        *,
        is_asynchronous: bool = False,
    ) -> None:
        self._is_asynchronous = is_asynchronous
        self._job, self._trainer, self._make_dataset = job, trainer, make_dataset
        self._table, self._first_file = table, first_file
        self._passes = 0

    def run(self, steps: int) -> None:
        """Make one pass after that number of steps, warm-up included.

        Raises:
            DataError: The pipeline of the pass yields no batch.
        """
        clock, log = self._job.clock, self._job.log
        log.write(PhaseEvent("evaluating"))
        started_ns = clock.now_ns()
        batches = [iter(self._trainer.distribute(self._make_dataset()))]
        ahead, first_batch_ns = ResultsAhead(self._trainer, is_asynchronous=self._is_asynchronous), 0
        pending: list[Future[Examples]] = []
        for _ in range(self._job.options.training.evaluate_steps):
            batch = None if self._job.stop.is_set else next(batches[0], None)
            if batch is None:
                break
            first_batch_ns = first_batch_ns or clock.now_ns() - started_ns
            ahead.add(self._trainer.evaluate(batch))
            pending += self._note_examples(batch, ahead)
        clear_on_thread(batches)
        for examples in pending:
            self._write_examples(examples.result())
        results = ahead.finish()
        if not results and not self._job.stop.is_set:
            raise DataError(
                "The evaluation has no batch: its files have fewer examples than one batch; hold out more files "
                "(training.held_out_files), or use a smaller batch."
            )
        if results:
            loss, accuracy = (float(values.mean()) for values in np.array(results).T)
            log.write(
                EvaluationEvent(
                    number=self._passes,
                    steps=steps,
                    started_ns=started_ns,
                    ended_ns=clock.now_ns(),
                    first_batch_ns=first_batch_ns,
                    batches=len(results),
                    loss=loss if np.isfinite(loss) else None,
                    accuracy=accuracy if np.isfinite(accuracy) else None,
                )
            )
            self._passes += 1
        log.write(PhaseEvent("training"))

    def _note_examples(self, batch: Batch, ahead: ResultsAhead) -> list[Future[Examples]]:
        """Write the examples of a batch; return what is still to come where a device holds them.

        The copy waits for the step on the batch, so it is made beside the launch of the next ones.
        """
        if self._table is None:
            return []
        if self._is_asynchronous and has_entries_on_device(batch):
            return [ahead.beside(self._read_examples, batch)]
        self._write_examples(self._read_examples(batch))
        return []

    def _read_examples(self, batch: Batch) -> Examples:
        return np.concatenate(read_parts(self._trainer, batch["id"])), read_names(self._trainer, batch)

    def _write_examples(self, examples: Examples) -> None:
        ids, names = examples
        if self._table is not None:
            files = (ids >> FILE_SHIFT) + self._first_file
            named: Sequence[str | None] = names or [None] * len(ids)
            self._table.extend([self._passes] * len(ids), files.tolist(), (ids & RECORD_MASK).tolist(), named)
