"""How the stages of a pipeline run and what each of them cost: calls at a time, threads, and the measured work."""

from collections.abc import Sequence

from pipeline_lab.analysis.input.live_model import StageWork
from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.functions import MAPS
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Host, Running


@dataclass(frozen=True)
class Machine:
    """Where a pipeline runs.

    Attributes:
        cores: N, cores that the job may use.
        pool_threads: Threads of the pool unless the options set them.
    """

    cores: float
    pool_threads: int


@dataclass(frozen=True, kw_only=True)
class RunningStage(Running):
    """One stage as it will run.

    Attributes:
        index: Place among the stages of the options.
        stage: What was chosen.
        is_skipped: It comes before a full cache: after the first epoch it is not called.
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
            break  # a cache after an endless repeat is never full
        if stage.keeps is not None:
            found = index
    return found


def is_prefetch_added(options: RunOptions, last: RunningStage) -> bool:
    """Say whether TensorFlow adds a prefetch at the end: its rewrites are on and the last stage does not prefetch."""
    return options.pipeline.tensorflow_rewrites and not last.works_ahead


BATCHED_MAP = "MapAndBatch"
PREFETCH = "Prefetch"
ROOTS = frozenset({"Root", "Model"})
ARGUMENTS = frozenset({"TensorSlice", "Range", "FromTensor", "TensorDataset"})
"""What files or generators are named by; asked once for each of them, not for each record."""


@dataclass(frozen=True)
class StageCost:
    """What one stage of the options took.

    Attributes:
        stage: Its name in the options, such as ``parse``.
        ns_per_example: Thread time of its own for one example that it handed on, ns.
        cpu_ns_per_example: Of it, processor time, ns.
        bytes_per_example: Mean size of what it handed on; None if it made nothing while the run was looked at.
        parallelism: Calls that were allowed at once, on average; None where it ran serially.
        examples_per_call: Examples that it saw at once: 1, or the batch size after ``batch``.
    """

    stage: str
    ns_per_example: float
    cpu_ns_per_example: float
    bytes_per_example: float | None = None
    parallelism: float | None = None
    examples_per_call: int = 1


def attribute_costs(works: Sequence[StageWork], options: RunOptions) -> tuple[StageCost, ...]:
    """Say what each stage of the options cost, in their order; all of the thread time passes for processor time.

    Args:
        works: Of the live model, the outermost first.
        options: The run's options.
    """
    own = _assign(works, options)
    costs = []
    for stage, mine, size in zip(options.pipeline.stages, own, options.pipeline.batch_sizes, strict=True):
        examples = size or 1
        top = mine[0] if mine else None
        per_element = options.pipeline.batch_size if top is not None and top.name == BATCHED_MAP else examples
        each_ns = sum(work.self_ns * _share(work, mine[0]) for work in mine) / per_element
        size_bytes = None if top is None or top.element_bytes is None else top.element_bytes / per_element
        parallelism = next((work.parallelism for work in mine if work.parallelism is not None), None)
        costs.append(StageCost(stage.stage, each_ns, each_ns, size_bytes, parallelism, examples))
    return tuple(costs)


def _assign(works: Sequence[StageWork], options: RunOptions) -> list[list[StageWork]]:
    """Return the iterators of each stage of the options, the outermost first.

    From the training step down each iterator is looked for among the stages that are left. The reader is all below the
    first that is none of them.
    """
    stages = options.pipeline.stages
    own: list[list[StageWork]] = [[] for _ in stages]
    left, last = len(stages), 0
    inner: list[frozenset[str]] = []
    for index in _chain(works):
        name = works[index].name
        is_first = works[index].parent is None or works[works[index].parent or 0].name in ROOTS
        if name in ROOTS or (name == PREFETCH and is_first and not stages[-1].prefetches):
            continue
        if inner and name in inner[0]:
            own[last].append(works[index])
            inner.pop(0)
            continue
        found = next((at for at in range(left - 1, 0, -1) if name in stages[at].iterators), None)
        if found is not None:
            is_fused = name == BATCHED_MAP and stages[found - 1].iterators == MAPS and not stages[found].maps_inside
            last = left = found - 1 if is_fused else found
            own[last].append(works[index])
            inner = list(stages[last].inner_iterators)
        elif name.endswith("Impl") and own[last]:
            own[last].append(works[index])
        else:
            stored = next((at for at in range(left - 1, 0, -1) if not stages[at].iterators), 0)
            own[stored] += _subtree(works, index)
            break
    return own


def _chain(works: Sequence[StageWork]) -> list[int]:
    """Return the iterators on the way from the training step to the records, by the input that gives most elements."""
    chain, inputs = [], [index for index, work in enumerate(works) if work.parent is None]
    while inputs:
        index = max(inputs, key=lambda each: (works[each].name not in ARGUMENTS, works[each].elements))
        chain.append(index)
        inputs = [below for below, work in enumerate(works) if work.parent == index]
    return chain


def _subtree(works: Sequence[StageWork], top: int) -> list[StageWork]:
    inside = {top}
    for index, work in enumerate(works):
        if work.parent in inside:
            inside.add(index)
    return [works[index] for index in sorted(inside)]


def _share(work: StageWork, top: StageWork) -> float:
    """Return the elements of an iterator for one of the stage's outermost."""
    if work is top:
        return 1.0
    if top.visits_per_batch > 0:
        return work.visits_per_batch / top.visits_per_batch
    return float(work.name not in ARGUMENTS)  # before a full cache nothing is called any more
