"""The steps as the job itself timed them: every step of a run, profiled or not."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline_lab.analysis.activity.intervals import EMPTY, IntArray, as_intervals, length_within
from pipeline_lab.analysis.causes import WITHOUT_PREDICT
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import Partly
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, as_it_is, to_ms
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.steps.checkpoints import checkpoint_spans
from pipeline_lab.analysis.steps.step_rows import StepRows, divide_time, pick
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_events import EagerStepEvent, OwnBatchesEvent, OwnPythonEvent, PredictEvent, WindowEvent
from pipeline_lab.units import NS_PER_S

JOB_STEP_TABLE = pa.schema(
    [
        ("step", pa.int64()),
        ("warmup", pa.bool_()),
        ("start_ns", pa.int64()),  # on the diagnosis' axis
        ("wait_ns", pa.int64()),  # these three as in StepRows
        ("compute_ns", pa.int64()),  # null where the row is not divided, or the wait is not known
        ("step_ns", pa.int64()),
        ("loss", pa.float64()),
        ("accuracy", pa.float64()),
        ("profiled", pa.bool_()),
    ]
)
"""One row per step."""

NO_JOB_STEPS = (
    "The job's own step times are only known for runs of Pipeline Lab; launch the job with `pipeline-lab run`, or the script "
    "with `pipeline-lab watch`, to have every step timed, profiled or not."
)
FEWEST_PREDICTS, PREDICTS_PERCENT = 10, 10.0
"""Calls of ``predict``, and their part of the time, from which on they are worth a finding."""
LONGEST_PREDICT_NS = 0.2 * NS_PER_S
"""A longer call computes most of its time: what ``predict`` adds to it is some tens of ms."""
FEWEST_LOOKS = 5
"""Times that a script's own Python has to be seen before a place of it is named."""
MODERATE_PERCENT = 5.0
"""A wait for input of this share of the step is worth acting on: from here on XProf calls a job moderately input-bound."""
NO_LOSS = Unavailable("Not computed: the step has no loss.")
NO_JOB_WAITS = (
    "Nothing times the waits of these steps: the script makes their batches itself, or a graph takes them from an iterator that "
    "tf.data keeps no model of (a PyDataset, replicas, autotuning switched off). Only windows tell what is known of waits."
)
NOT_YET = "No step after the warm-up has ended yet."
NO_LENGTH = (
    "The steps after the warm-up have no length: the machine's clock was set back while they ran; run the job again."
)


@dataclass(frozen=True)
class Predicts:
    """Calls of Keras' ``predict`` between steps; see :class:`~pipeline_lab.runs.run_events.PredictEvent`.

    Attributes:
        lines: What each line called, the longest first; at least one.
    """

    lines: tuple[PredictEvent, ...]

    @classmethod
    def of(cls, events: Sequence[PredictEvent]) -> "Predicts | None":
        """Return the calls of each line; None without any."""
        return cls(tuple(events)) if events else None

    @property
    def count(self) -> int:
        """All calls."""
        return sum(line.count for line in self.lines)

    @property
    def total_ns(self) -> int:
        """What they took."""
        return sum(line.total_ns for line in self.lines)

    @property
    def percent(self) -> float:
        """Their part of the time from the first step to the last one."""
        return sum(map(self.percent_of, self.lines))

    def percent_of(self, line: PredictEvent) -> float:
        """Return the part of one of the lines."""
        return 100.0 * line.total_ns / line.span_ns if line.span_ns else 0.0

    @property
    def matter(self) -> bool:
        """Whether they are many, and take enough to be worth a change."""
        is_short = self.total_ns < LONGEST_PREDICT_NS * self.count
        return is_short and self.count >= FEWEST_PREDICTS and self.percent >= PREDICTS_PERCENT

    @property
    def calls(self) -> str:
        """All lines: ``q.predict at train.py:40, q.predict at train.py:34``."""
        return ", ".join(line.call for line in self.lines)

    @property
    def change(self) -> str:
        """What to do about them."""
        call, *others = (line.call for line in self.lines)
        model = call.partition(" at ")[0].removesuffix("predict").removesuffix(".")
        change = WITHOUT_PREDICT.change.format(call=call, model=model or "model")
        return f"{change} Do the same with {', '.join(others)}." if others else change


@dataclass(frozen=True, eq=False)
class JobSteps:
    """What the probe noted on every step; warm-up steps are in the table but in no number.

    Attributes:
        table: One row per step, :data:`JOB_STEP_TABLE`.
        count: Steps after the warm-up.
        median_ns, p95_ns, total_ns: Of the step time.
        wait_total_ns: Sum of waits; steps whose wait is not known count like the others. None where none is known.
        examples_per_second: Over the measured steps; None where examples were not counted.
        call_total_ns: Sum of the calls for a batch; where a device still had earlier steps to do meanwhile, that is more than
            the waits. None where none is known.
        break_total_ns: From the return of each epoch's last call to the first request of the next, evaluations and checkpoints left out,
            summed; what devices still had to do then is part of it.
        own_call: Call of the step with batches that the script makes itself: ``train_step at train.py:40``; its waits are what passes
            between these calls. None where a dataset makes them.
        predicts: Calls of Keras' ``predict`` with a batch at a time; None where there are none.
        own_python: Where the script's own Python is between calls to the framework, most of the times that it was seen there:
            ``Monitor.on_train_batch_end (train.py:35)``; None where no place is.
        eager_steps: What takes the gradients where that is done op by op.
    """

    table: pa.Table
    count: int
    median_ns: float
    p95_ns: float
    total_ns: int
    wait_total_ns: int | None
    examples_per_second: float | None
    call_total_ns: int | None = None
    break_total_ns: int = 0
    own_call: str | None = None
    predicts: Predicts | None = None
    own_python: str | None = None
    eager_steps: tuple[EagerStepEvent, ...] = ()

    @property
    def has_hidden_waits(self) -> bool:
        """Whether devices were seen to work during calls for a batch, which the waits then leave out."""
        return None not in (self.call_total_ns, self.wait_total_ns) and (self.call_total_ns or 0) > (
            self.wait_total_ns or 0
        )

    @property
    def mean_ns(self) -> float:
        """Mean step time; what of it is a wait is that share of the sum."""
        return self.total_ns / self.count

    @property
    def wait_percent(self) -> float | None:
        """Share of the steps spent waiting; None where that is not known."""
        return None if self.wait_total_ns is None else 100.0 * self.wait_total_ns / self.total_ns

    @property
    def first_batch_ns(self) -> int | None:
        """How long the job waited for its very first batch: shuffle buffers fill, files open; None if not noted."""
        if self.own_call is not None:
            return None  # the script makes it
        first = tables.ints(self.table, "step") == 0
        waits = tables.ints(self.table, "wait_ns")[first & tables.valid(self.table, "wait_ns")]
        return int(waits[0]) if len(waits) else None


def measure_job_steps(
    steps: pa.Table,
    samples: pa.Table,
    origin_ns: int,
    *,
    rows: StepRows | None = None,
    checkpoints: IntArray | None = EMPTY,
) -> JobSteps:
    """Summarize the steps of a run.

    Args:
        steps: Of schema ``runs.run_tables.STEPS``, in order.
        samples: Of schema ``runs.run_tables.SAMPLES``; no rows without the probe.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        rows: What :func:`divide_time` returned for these steps, where it was called before.
        checkpoints: When they were being written, a set, ns since the epoch; None where that is not known, so that no break is counted.

    Raises:
        TraceIncompleteError: No step has ended after the warm-up, or a clock that was set back leaves these no time.
    """
    warmup = tables.bools(steps, "warmup")
    if warmup.all():
        raise TraceIncompleteError(NOT_YET)
    rows = rows or divide_time(steps)
    chosen = pick(~warmup)
    measured = rows.step_ns[chosen]
    total_ns = int(measured.sum())
    if not total_ns:
        raise TraceIncompleteError(NO_LENGTH)
    waited = tables.valid(steps, "wait_ns")
    table = tables.build(
        JOB_STEP_TABLE,
        steps.num_rows,
        step=tables.ints(steps, "step"),
        warmup=warmup,
        start_ns=rows.start_ns - origin_ns,
        wait_ns=Partly(rows.wait_ns, waited),
        compute_ns=Partly(rows.compute_ns, waited & rows.is_divided),
        step_ns=rows.step_ns,
        loss=tables.floats(steps, "loss"),
        accuracy=tables.floats(steps, "accuracy"),
        profiled=tables.ints(steps, "window") >= 0,
    )
    median_ns, p95_ns = np.percentile(measured, (50, 95))
    examples = _examples(samples, tables.ints(steps, "step")[chosen]) or _counted(steps, ~warmup)
    return JobSteps(
        table=table,
        count=len(measured),
        median_ns=float(median_ns),
        p95_ns=float(p95_ns),
        total_ns=total_ns,
        wait_total_ns=_wait_total_ns(rows.wait_ns[chosen], waited[chosen], measured),
        examples_per_second=examples * NS_PER_S / total_ns if examples else None,
        call_total_ns=_wait_total_ns(tables.ints(steps, "wait_ns")[chosen], waited[chosen], measured),
        break_total_ns=0 if checkpoints is None else _break_total_ns(steps, ~warmup, checkpoints),
    )


def _break_total_ns(steps: pa.Table, measured: NDArray[np.bool_], checkpoints: IntArray) -> int:
    """Return the time between the epochs of the measured steps, as :class:`JobSteps` says."""
    epoch, known = tables.ints(steps, "epoch"), tables.valid(steps, "epoch") & measured
    last = np.flatnonzero((epoch[1:] != epoch[:-1]) & known[1:] & known[:-1])
    breaks = as_intervals(tables.ints(steps, "end_ns")[last], tables.ints(steps, "start_ns")[last + 1])
    away = tables.or_zero(steps, "away_ns")[last + 1]
    left = breaks[:, 1] - breaks[:, 0] - away - length_within(checkpoints, breaks)
    return int(np.maximum(left, 0).sum())


def _wait_total_ns(wait: IntArray, known: NDArray[np.bool_], step_ns: IntArray) -> int | None:
    of = pick(known)
    known_ns = int(step_ns[of].sum())
    return round(int(wait[of].sum()) * (int(step_ns.sum()) / known_ns)) if known_ns else None


def _counted(steps: pa.Table, measured: NDArray[np.bool_]) -> float:
    """Return the examples of the measured steps as the steps noted them, 0 where they did not."""
    known = measured & tables.valid(steps, "examples")
    examples = tables.ints(steps, "examples")[known]
    return float(examples.mean() * measured.sum()) if len(examples) else 0.0


def _examples(samples: pa.Table, measured: IntArray) -> int:
    if not samples.num_rows:
        return 0
    step = tables.ints(samples, "step")  # a job under way notes the examples of a step before the step
    return int(((step >= measured.min()) & (step <= measured.max())).sum())


def flushes(events: JobEvents) -> IntArray:
    """Return when windows were being written, as a set of intervals, ns since the epoch."""
    return events.spans(WindowEvent, "stopped_ns", "flushed_ns")


def _checkpoints(job: JobView) -> IntArray | None:
    try:
        return checkpoint_spans(job.tables.events)
    except TraceIncompleteError:  # the events are damaged, which others say
        return None


def _measure(job: JobView) -> JobSteps:
    if not job.tables.times_steps:
        raise TraceIncompleteError(NO_JOB_STEPS)
    found = job.tables
    measured = measure_job_steps(
        found.steps,
        found.samples,
        job.origin_ns,
        rows=found.step_rows,
        checkpoints=_checkpoints(job),
    )
    try:
        events = job.tables.events
    except TraceIncompleteError:  # they are damaged, which others say
        return measured
    own_call = next((event.call for event in events.of(OwnBatchesEvent)), None)
    predicts = Predicts.of(events.of(PredictEvent))
    own_python = next(map(_place_of, events.of(OwnPythonEvent)), None)
    eager_steps = tuple(events.of(EagerStepEvent))
    return replace(measured, own_call=own_call, predicts=predicts, own_python=own_python, eager_steps=eager_steps)


def _place_of(event: OwnPythonEvent) -> str | None:
    """Name the place where the script's own Python was seen; None where it was seen too rarely, or at several places."""
    if event.of < FEWEST_LOOKS or 2 * event.seen < event.of:
        return None
    place = f"{Path(event.file).name}:{event.line}"
    return place if event.function.startswith("<") else f"{event.function} ({place})"


def _to_json(job: JobSteps) -> Document:
    return {
        "count": job.count,
        "median_ms": to_ms(job.median_ns),
        "p95_ms": to_ms(job.p95_ns),
        "total_ms": to_ms(job.total_ns),
        "wait_ms": to_ms(job.wait_total_ns),
        "first_batch_ms": to_ms(job.first_batch_ns),
        "examples_per_second": job.examples_per_second,
    }


JOB_STEPS = Analysis(JobSteps, per_job=PerJob(_measure, NO_JOB_STEPS, later=as_it_is), to_json=_to_json)
