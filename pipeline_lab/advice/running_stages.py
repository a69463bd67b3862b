"""What will run of a pipeline once TensorFlow has rewritten it: which stages work at once, and how far ahead."""

from dataclasses import dataclass

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.stage import Host, Running, Stage


@dataclass(frozen=True)
class Machine:
    """Where a pipeline runs.

    Attributes:
        cores: N, cores that the job may use.
        pool_threads: Q, threads of the pool as far as nobody sets them.
    """

    cores: float
    pool_threads: int


@dataclass(frozen=True, kw_only=True)
class RunningStage(Running):
    """One stage as it will run.

    Attributes:
        index: Place among the stages of the options.
        stage: What was chosen.
        is_skipped: It stands before a full cache: after the first epoch nobody asks it.
    """

    index: int
    stage: Stage
    is_skipped: bool = False


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
    cached = full_cache(options)
    return tuple(
        RunningStage(index=index, stage=stage, is_skipped=True)
        if cached is not None and index < cached
        else RunningStage(
            index=index, stage=stage, **vars(stage.running(_host(options, index, machine, stage.stage in ran_parallel)))
        )
        for index, stage in enumerate(options.pipeline.stages)
    )


def _host(options: RunOptions, index: int, machine: Machine, ran_parallel: bool) -> Host:
    pipeline = options.pipeline
    following = pipeline.stages[index + 1 : index + 2]
    is_fused = pipeline.tensorflow_rewrites and any(stage.fuses_with_map for stage in following)
    return Host(
        threads=pool_threads(options, machine),
        cores=machine.cores,
        size=pipeline.batch_sizes[index] or 1,
        rewrites=pipeline.tensorflow_rewrites,
        deterministic=pipeline.deterministic,
        fused_batch=pipeline.batch_size if is_fused else None,
        workload=options.workload,
        ran_parallel=ran_parallel,
    )


def full_cache(options: RunOptions) -> int | None:
    """Return the place of the last stage that keeps all elements and is read from in later epochs, None without."""
    found = None
    for index, stage in enumerate(options.pipeline.stages):
        if stage.is_endless:
            break  # a cache behind an endless repeat is never full
        if stage.keeps is not None:
            found = index
    return found


def is_prefetch_added(options: RunOptions, last: RunningStage) -> bool:
    """Say whether TensorFlow adds a prefetch at the end: its rewrites are on and the last stage does not work ahead."""
    return options.pipeline.tensorflow_rewrites and not last.works_ahead
