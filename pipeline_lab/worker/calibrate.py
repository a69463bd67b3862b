"""Before training: time the pipeline and the step separately, with the data files in or out of the page cache."""

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import DataError
from pipeline_lab.runs.run_events import CalibrationEvent, NoteEvent
from pipeline_lab.units import format_bytes
from pipeline_lab.worker.job_context import Job
from pipeline_lab.worker.record.own_process import clear_on_thread
from pipeline_lab.worker.record.step_results import ResultsAhead
from pipeline_lab.worker.train.emulated_device import EmulatedTrainer
from pipeline_lab.worker.train.training_steps import Batch, StepCalls, Trainer

BUDGET_NS = 200_000_000
PATIENCE_NS = 10_000_000_000
"""After a slower first batch, no second one is requested."""
END_S = 2.0
"""Longest wait for the end of a pipeline."""
WARMUP_STEPS = 2
MIN_STEPS = 2


@dataclass(frozen=True)
class PipelineTime:
    """Times of the pipeline alone.

    Attributes:
        batch: The last batch.
        first_batch_ns: From the start to the first batch: files opened, shuffle buffer filled.
        batch_ns: Mean time of later batches, None without any.
        batches: Number of later batches.
        batch_cpu_ns: Mean CPU time of the process for each of them, None without any.
    """

    batch: Batch
    first_batch_ns: int
    batch_ns: float | None
    batches: int
    batch_cpu_ns: float | None


@dataclass(frozen=True)
class StepTime:
    """Times of the step on one batch, repeated.

    Attributes:
        step_ns, step_cpu_ns: Mean time of a step, and mean CPU time of the process.
        steps: How many were timed; 0 where the time is set.
    """

    step_ns: float
    step_cpu_ns: float
    steps: int


def calibrate(
    trainer: Trainer,
    steps: StepCalls,
    make_dataset: Callable[[], Any],
    hold: Callable[[Batch], Batch],
    *,
    is_asynchronous: bool = False,
) -> CalibrationEvent:
    """Time pipeline and step separately; the trainer's state is restored.

    Args:
        trainer: The step.
        steps: Calls the step.
        make_dataset: Builds a separate pipeline, so that the job's caches stay untouched.
        hold: Puts a batch into the device's memory.
        is_asynchronous: The device works beside the host.

    Raises:
        DataError: The pipeline yields no batch at all.
    """
    pipeline = time_pipeline(make_dataset())
    step = time_step(trainer, steps, hold(pipeline.batch), is_asynchronous=is_asynchronous)
    return CalibrationEvent(
        device_only_ns=step.step_ns,
        device_only_steps=step.steps,
        pipeline_only_ns=pipeline.batch_ns,
        pipeline_only_batches=pipeline.batches,
        first_batch_ns=float(pipeline.first_batch_ns),
        device_only_cpu_ns=step.step_cpu_ns,
        pipeline_only_cpu_ns=pipeline.batch_cpu_ns,
    )


def time_pipeline(dataset: Any) -> PipelineTime:
    """Drain a pipeline for a while, and time its first batch separately.

    Its end is waited for, but not for long, since its threads slow down what is timed next. The rest is left to a thread:
    destroying an iterator waits for the autotuner's next round, which takes as long as the iterator has existed.

    Raises:
        DataError: It yields no batch at all.
    """
    begun_ns = time.perf_counter_ns()
    iterators = [iter(dataset)]
    batch = next(iterators[0], None)
    if batch is None:
        raise DataError(
            "The pipeline yields no batch: there are fewer examples than one batch holds, and drop_remainder is on; "
            "use a smaller batch or more data."
        )
    first_ns, first_cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    now_ns, batches = first_ns, 0
    patience_ns = BUDGET_NS if first_ns - begun_ns < PATIENCE_NS else 0
    while now_ns - first_ns < patience_ns and (following := next(iterators[0], None)) is not None:
        batch, batches, now_ns = following, batches + 1, time.perf_counter_ns()
    cpu_ns = time.process_time_ns() - first_cpu_ns
    clear_on_thread(iterators).join(END_S)
    first_batch_ns = first_ns - begun_ns
    if not batches:
        return PipelineTime(batch, first_batch_ns, None, 0, None)
    return PipelineTime(batch, first_batch_ns, (now_ns - first_ns) / batches, batches, cpu_ns / batches)


def time_step(trainer: Trainer, steps: StepCalls, batch: Batch, *, is_asynchronous: bool = False) -> StepTime:
    """Time the step on one batch, repeated; its training is undone. An emulated step's time is known.

    As in training, an asynchronous device always has a step to go on with.
    """
    if isinstance(trainer, EmulatedTrainer):
        return StepTime(trainer.device.mean_ns, 0.0, 0)
    state = trainer.save_state()
    results = ResultsAhead(trainer, is_asynchronous=is_asynchronous)
    for _ in range(WARMUP_STEPS):
        results.add(steps.repeat(batch, 1))
    results.catch_up()  # before the clock starts: the first copy to the host is traced
    together = _steps_together(trainer, steps, batch)
    begun_ns, begun_cpu_ns, timed = time.perf_counter_ns(), time.process_time_ns(), 0
    while timed < MIN_STEPS or time.perf_counter_ns() - begun_ns < BUDGET_NS:
        results.add(steps.repeat(batch, together))
        timed += together
    results.finish()
    elapsed_ns, cpu_ns = time.perf_counter_ns() - begun_ns, time.process_time_ns() - begun_cpu_ns
    trainer.restore_state(state)
    return StepTime(elapsed_ns / timed, cpu_ns / timed, timed)


def _steps_together(trainer: Trainer, steps: StepCalls, batch: Batch) -> int:
    """Return the steps per call: as in training, but within the budget."""
    if steps.per_call == 1:
        return 1
    begun_ns = time.perf_counter_ns()
    trainer.read(steps.repeat(batch, 1))
    step_ns = max(1, time.perf_counter_ns() - begun_ns)
    return max(1, min(steps.per_call, BUDGET_NS // step_ns))


KEPT_PERCENT = 1.0
"""Share of the files below which they count as dropped."""
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Dropping:
    """Result of dropping files from the page cache.

    Attributes:
        size_bytes: Of all files.
        kept_bytes: Of them, still in the page cache; None if unknown.
    """

    size_bytes: int
    kept_bytes: int | None

    @property
    def kept_percent(self) -> float | None:
        if self.kept_bytes is None:
            return None
        return 100.0 * self.kept_bytes / self.size_bytes if self.size_bytes else 0.0

    @property
    def is_cold(self) -> bool:
        """Whether the files will be read from disk, as far as known."""
        return self.size_bytes > 0 and self.kept_percent is not None and self.kept_percent <= KEPT_PERCENT


def set_page_cache(job: Job, paths: Sequence[str]) -> str | None:
    """Drop a job's files from the page cache if requested, and report if that failed.

    ``posix_fadvise(POSIX_FADV_DONTNEED)`` is advice: what is in memory anyway (tmpfs), in use elsewhere or cached elsewhere (a
    network file system, a virtual machine's host) stays. ``mincore`` counts what is left.

    Returns:
        The state of the page cache: ``cold``, ``warm`` if nothing was requested, None if unknown.
    """
    if job.options.training.page_cache == "warm":
        return "warm"
    dropped = drop(paths)
    if dropped.is_cold:
        return "cold"
    if dropped.kept_bytes is None:
        kept = "does not say whether the data files have left the page cache"
    elif not dropped.size_bytes:
        kept = "found no data file that could be dropped"
    else:
        kept = f"kept {format_bytes(dropped.kept_bytes)} of {format_bytes(dropped.size_bytes)} of the data files"
    job.log.write(
        NoteEvent(
            f"A cold page cache was requested, but the system {kept}; mapped files, and files in memory or on a network, stay."
        )
    )
    return None


def drop(paths: Iterable[str]) -> Dropping:
    """Drop files, and those inside folders, from the page cache; unwritten data is written first."""
    size_bytes, kept_bytes = 0, 0
    is_known = True
    for path in _files(paths):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            length = os.fstat(descriptor).st_size
            kept = count_cached(descriptor, length)
        finally:
            os.close(descriptor)
        size_bytes += length
        kept_bytes += kept or 0
        is_known = is_known and kept is not None
    return Dropping(size_bytes, kept_bytes if is_known else None)


def count_cached(descriptor: int, length: int) -> int | None:
    """Return how many bytes of an open file are in the page cache; None if unknown."""
    if not length:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == _FAILED:
        return None
    pages = (length + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    resident = (ctypes.c_ubyte * pages)()
    try:
        if libc.mincore(address, length, resident):
            return None
    finally:
        libc.munmap(address, length)
    return min(length, sum(page & 1 for page in bytes(resident)) * mmap.PAGESIZE)


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from (inside for inside in path.rglob("*") if inside.is_file())
        elif path.is_file():
            yield path
