"""What will run of a pipeline once TensorFlow has rewritten it: which stages work at once, and how far ahead."""

import math
from dataclasses import dataclass

from pipeline_lab.fields import Parallelism
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage
from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import CacheStage, SaveStage, SnapshotStage
from pipeline_lab.workloads.registry import FUNCTION_STAGES
from pipeline_lab.workloads.synthetic import SyntheticWorkload

AHEAD_PER_FILE = 9
"""Records that a parallel interleave holds for each open file (seen with TensorFlow 2.21)."""
MOST_MAPPED_BATCHES = 16
"""Batches that a fused map and batch holds at most."""
TUNED_PREFETCH = 2
"""Batches that AUTOTUNE lets a last prefetch hold at least; more change no mean."""


@dataclass(frozen=True)
class Machine:
    """Where a pipeline runs.

    Attributes:
        cores: N, cores that the job may use.
        pool_threads: Q, threads of the pool as far as nobody sets them.
    """

    cores: float
    pool_threads: int


@dataclass(frozen=True)
class RunningStage:
    """One stage as it will run.

    Attributes:
        index: Place among the stages of the options.
        stage: What was chosen.
        calls: Calls that really run at once, 1 where it is serial.
        slots: Calls that are begun at once. Each holds its slot while the stage's own thread fetches its input.
        works_ahead: It has threads of its own, so that it works while the stage behind it does something else.
        held_examples: What its buffer holds, examples; 0 where it has none.
        uses_pool: Its calls run on the threads of the pool.
        is_skipped: It stands before a full cache: after the first epoch nobody asks it.
        keeps_order: Several of its calls run at once, and finished ones wait for slower ones before them.
    """

    index: int
    stage: Stage
    calls: float = 1.0
    slots: float = math.inf
    works_ahead: bool = False
    held_examples: float = 0.0
    uses_pool: bool = False
    is_skipped: bool = False
    keeps_order: bool = False


def pool_threads(options: RunOptions, machine: Machine) -> int:
    """Return Q, the threads that run functions."""
    return options.pipeline.private_threadpool_size or machine.pool_threads


def running_stages(
    options: RunOptions, machine: Machine, *, ran_parallel: frozenset[str] = frozenset()
) -> tuple[RunningStage, ...]:
    """Work out how each stage will run.

    Args:
        options: What is chosen.
        machine: Where.
        ran_parallel: Stages without ``num_parallel_calls`` that are known to be made parallel by TensorFlow's rewrites.
    """
    stages = options.pipeline.stages
    threads = pool_threads(options, machine)
    cached = full_cache(options)
    found = []
    for index, stage in enumerate(stages):
        size = options.pipeline.batch_sizes[index] or 1
        running = _running(index, stage, size, options, threads, machine, stage.stage in ran_parallel)
        found.append(_skipped(running) if cached is not None and index < cached else running)
    return tuple(found)


def full_cache(options: RunOptions) -> int | None:
    """Return the place of the last stage that keeps all elements and is read from in later epochs, None without."""
    found = None
    for index, stage in enumerate(options.pipeline.stages):
        if isinstance(stage, RepeatStage) and stage.count is None:
            break  # a cache behind an endless repeat is never full
        if isinstance(stage, CacheStage | SnapshotStage | SaveStage):
            found = index
    return found


def is_prefetch_added(options: RunOptions, last: RunningStage) -> bool:
    """Say whether TensorFlow adds a prefetch at the end: its rewrites are on and the last stage does not work ahead."""
    return options.pipeline.tensorflow_rewrites and not last.works_ahead


def _running(
    index: int, stage: Stage, size: int, options: RunOptions, threads: int, machine: Machine, ran_parallel: bool
) -> RunningStage:
    pipeline = options.pipeline
    if isinstance(stage, PrefetchStage | PrefetchToDeviceStage):
        ahead = TUNED_PREFETCH if stage.buffer_size == "autotune" else stage.buffer_size
        return RunningStage(index, stage, works_ahead=True, held_examples=float(ahead * size))
    if isinstance(stage, BatchStage) and stage.num_parallel_calls is not None:
        calls = _calls(stage.num_parallel_calls, threads)
        return RunningStage(index, stage, calls, works_ahead=True, held_examples=calls * size)
    if isinstance(stage, ReadStage) and stage.num_parallel_calls is not None:
        calls, opened = _reading(stage, threads, machine)
        return RunningStage(
            index, stage, calls, works_ahead=True, held_examples=opened * AHEAD_PER_FILE, uses_pool=True
        )
    if stage.stage in FUNCTION_STAGES:
        written: Parallelism = getattr(stage, "num_parallel_calls", None)
        if written is None and pipeline.tensorflow_rewrites and (ran_parallel or _is_made_parallel(stage, options)):
            written = "autotune"
        if written is None:
            return RunningStage(index, stage)
        calls = _calls(written, threads)
        asked = calls if written == "autotune" else float(written)
        held = asked * size
        if (
            pipeline.tensorflow_rewrites
            and index + 1 < len(pipeline.stages)
            and pipeline.stages[index + 1].stage == "batch"
        ):
            held = pipeline.batch_size * min(MOST_MAPPED_BATCHES, max(1.0, asked / pipeline.batch_size))
        in_order = calls > 1 and _keeps_order(getattr(stage, "deterministic", None), pipeline.deterministic)
        return RunningStage(index, stage, calls, asked, True, held, uses_pool=True, keeps_order=in_order)
    return RunningStage(index, stage)


def _keeps_order(own: bool | None, of_all: bool | None) -> bool:
    return own if own is not None else of_all is not False


def _calls(written: int | str, threads: int) -> float:
    """Return the calls that run at once; AUTOTUNE goes up to the threads of the pool (2.21), and no call runs without one."""
    return float(threads if isinstance(written, str) else min(written, threads))


def _reading(stage: ReadStage, threads: int, machine: Machine) -> tuple[float, float]:
    """Return how many files are read at once, and how many are open."""
    opened = stage.cycle_length or (
        stage.num_parallel_calls
        if stage.mode == "parallel_reads" and isinstance(stage.num_parallel_calls, int)
        else None
    )
    opened = opened or max(1, int(machine.cores))
    assert stage.num_parallel_calls is not None
    return min(_calls(stage.num_parallel_calls, threads), opened), float(opened)


def _is_made_parallel(stage: Stage, options: RunOptions) -> bool:
    """Say whether TensorFlow makes a serial function parallel by itself: not if it is random or runs Python."""
    if isinstance(stage, ViewsStage):
        return False
    if isinstance(stage, AugmentStage):
        return not (stage.flip or stage.rotate_degrees or stage.cutout or stage.crop)
    workload = options.workload
    return not (isinstance(workload, SyntheticWorkload) and workload.has_map_time)


def _skipped(stage: RunningStage) -> RunningStage:
    return RunningStage(stage.index, stage.stage, is_skipped=True)
