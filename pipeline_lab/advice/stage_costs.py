"""What each stage of the options cost: the iterators that ran, laid beside the stages that they were written as.

How many examples each stage has to hand on for one batch: more than a batch where later stages leave some out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.analysis.input.live_model import StageWork
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.units import NS_PER_MS

MAPS = frozenset({"Map", "ParallelMapV2"})
BATCHED_MAP = "MapAndBatch"
PREFETCH = "Prefetch"
UNBATCH = "Unbatch"
ROOTS = frozenset({"Root", "Model"})
ARGUMENTS = frozenset({"TensorSlice", "Range", "FromTensor", "TensorDataset"})
"""What files or generators are named by; asked once for each of them, not for each record."""

ITERATORS: dict[str, frozenset[str]] = {
    "prefetch": frozenset({PREFETCH}),
    "prefetch_to_device": frozenset({PREFETCH}),
    "batch": frozenset({"BatchV2", "ParallelBatch", "PaddedBatchV2", "Rebatch", "RebatchV2", BATCHED_MAP}),
    "rebatch": frozenset({"Rebatch", "RebatchV2"}),
    "unbatch": frozenset({UNBATCH}),
    "repeat": frozenset({"ForeverRepeat", "FiniteRepeat", "ShuffleAndRepeat"}),
    "shuffle": frozenset({"Shuffle", "ShuffleAndRepeat"}),
    "cache": frozenset({"MemoryCache", "FileCache"}),
    "filter": frozenset({"Filter"}),
    "take": frozenset({"FiniteTake"}),
    "skip": frozenset({"FiniteSkip"}),
    "shard": frozenset({"Shard"}),
    "random_shard": frozenset({"FlatMap"}),
    "bucket_by_sequence_length": frozenset({"GroupByWindow"}),
    "views": frozenset({UNBATCH, *MAPS}),
    "snapshot": frozenset(),
    "save": frozenset(),
    "service": frozenset(),
}
"""Kinds of iterators by the stage that they stand for; all below one that is not named here is its own, and any stage that
is not listed is a map."""


@dataclass(frozen=True)
class StageCost:
    """What one stage of the options took.

    Attributes:
        stage: Its name in the options, such as ``parse``.
        ms_per_example: Thread time of its own for one example that it handed on, ms.
        cpu_ms_per_example: Of it, processor time, ms.
        bytes_per_example: Mean size of what it handed on; None if it made nothing while the run was looked at.
        parallelism: Calls that were allowed at once, on average; None where it ran serially.
        examples_per_call: Examples that it saw at once: 1, or the batch size behind ``batch``.
    """

    stage: str
    ms_per_example: float
    cpu_ms_per_example: float
    bytes_per_example: float | None = None
    parallelism: float | None = None
    examples_per_call: int = 1


def attribute(works: Sequence[StageWork], options: RunOptions) -> tuple[StageCost, ...]:
    """Say what each stage of the options cost, in their order; all of the thread time passes for processor time.

    Args:
        works: Of the live model, the outermost first.
        options: What the run was told.
    """
    own = _assign(works, options)
    costs = []
    for stage, mine, size in zip(options.pipeline.stages, own, options.pipeline.batch_sizes, strict=True):
        examples = size or 1
        top = mine[0] if mine else None
        per_element = options.pipeline.batch_size if top is not None and top.name == BATCHED_MAP else examples
        ms = sum(work.self_ns * _share(work, mine[0]) for work in mine) / NS_PER_MS / per_element
        size_bytes = None if top is None or top.element_bytes is None else top.element_bytes / per_element
        parallelism = next((work.parallelism for work in mine if work.parallelism is not None), None)
        costs.append(StageCost(stage.stage, ms, ms, size_bytes, parallelism, examples))
    return tuple(costs)


def _assign(works: Sequence[StageWork], options: RunOptions) -> list[list[StageWork]]:
    """Return the iterators of each stage of the options, the outermost first.

    From the training step down each iterator is looked for among the stages that are left. The reader is all below the
    first that is none of them.
    """
    stages = options.pipeline.stages
    own: list[list[StageWork]] = [[] for _ in stages]
    left, last = len(stages), 0
    for index in _chain(works):
        name = works[index].name
        is_first = works[index].parent is None or works[works[index].parent or 0].name in ROOTS
        if name in ROOTS or (name == PREFETCH and is_first and not stages[-1].stage.startswith("prefetch")):
            continue
        found = next((at for at in range(left - 1, 0, -1) if name in _iterators(stages[at].stage)), None)
        if found is not None:
            is_fused = (
                name == BATCHED_MAP and _iterators(stages[found - 1].stage) is MAPS and not _is_ragged(stages[found])
            )
            last = left = found - 1 if is_fused else found
            own[last].append(works[index])
            if stages[found].stage == "views" and name == UNBATCH:
                left += 1  # a map that makes the views comes next
        elif name.endswith("Impl") and own[last]:
            own[last].append(works[index])
        else:
            stored = next((at for at in range(left - 1, 0, -1) if not _iterators(stages[at].stage)), 0)
            own[stored] += _subtree(works, index)
            break
    return own


def _is_ragged(stage: Stage) -> bool:
    """Say whether a batch has a map of its own, which TensorFlow fuses with it: it makes examples fit for ragged ones."""
    return isinstance(stage, BatchStage) and stage.mode == "ragged_batch"


def _iterators(stage: str) -> frozenset[str]:
    return ITERATORS.get(stage, MAPS)


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
    return float(work.name not in ARGUMENTS)  # behind a full cache nobody was asked any more
