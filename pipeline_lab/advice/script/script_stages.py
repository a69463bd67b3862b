"""The pipeline of a watched script as it ran: a tree of stages, what each takes for a batch, and the calls that made it."""

from dataclasses import replace

from pipeline_lab.analysis.input.model_nodes import REFILLED
from pipeline_lab.analysis.input.pipeline_stages import PipelineStage, join_stages
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.tf_data.iterator_places import place_above
from pipeline_lab.analysis.tf_data.kinds import is_asynchronous
from pipeline_lab.analysis.tf_data.tf_data import TracedStage
from pipeline_lab.analysis.tf_data.written_words import name_stage
from pipeline_lab.analysis.verdict.input_causes import GENERATOR
from pipeline_lab.analysis.verdict.input_facts import PYTHON_OPS
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe
from pipeline_lab.runs.run_documents import WrittenCall


@dataclass(frozen=True)
class ScriptStage:
    """One stage that ran.

    Attributes:
        name: Kind of its iterator.
        parent: Place of the stage that takes its elements; None for the outermost.
        work_ns: Thread time of its own for one batch.
        visits: Elements that it hands on for one batch.
        calls: Numbers of the calls of the recipe that made it: several where TensorFlow fused them, or where one line of the
            source made several datasets.
        at_once: Calls that run at the same time.
        works_ahead: It has threads of its own.
        is_pooled: Its calls run on the threads of the pool.
        keeps_order: Its finished elements wait for slower ones before them.
        python_share: Part of its work that is Python, 0 to 1.
        element_bytes: Size of an element that it hands on; None where nobody knows.
        words: What it is called: the lines that made it.
    """

    name: str
    parent: int | None
    work_ns: float
    visits: float = 1.0
    calls: tuple[int, ...] = ()
    at_once: float = 1.0
    works_ahead: bool = False
    is_pooled: bool = False
    keeps_order: bool = True
    python_share: float = 0.0
    element_bytes: float | None = None
    words: str = ""


def read_stages(results: Diagnosis, recipe: Recipe, pool_threads: int) -> tuple[ScriptStage, ...] | Unavailable:
    """Return the stages of the pipeline that was trained on, each after the one that takes its elements.

    Args:
        results: Of the run.
        recipe: Of its script.
        pool_threads: Threads that run functions.
    """
    found = join_stages(results.tf_data, results.live_model, results.written)
    if isinstance(found, Unavailable):
        return found
    trained = recipe.trained
    calls = () if trained is None else tuple(recipe.upstream(trained.call))
    place = {stage.path: index for index, stage in enumerate(found)}
    stages = tuple(
        _stage(stage, place.get(place_above(stage.path)), numbers_of(stage.written, calls), pool_threads)
        for stage in found
    )
    return _with_all_that_was_buffered(stages)


def _with_all_that_was_buffered(stages: tuple[ScriptStage, ...]) -> tuple[ScriptStage, ...]:
    """Count all that a shuffle hands on as made by what is upstream of it, though that worked at the epoch's beginning and was not seen."""
    found = list(stages)
    for place, stage in enumerate(found):
        above = None if stage.parent is None else found[stage.parent]
        if above is None or above.name not in REFILLED or not 0.0 < stage.visits < above.visits:
            continue
        more, mine = above.visits / stage.visits, {place}
        for index, other in enumerate(found):
            if index in mine or other.parent in mine:
                mine.add(index)
                found[index] = replace(other, work_ns=other.work_ns * more, visits=other.visits * more)
    return tuple(found)


def numbers_of(written: tuple[WrittenCall, ...], calls: tuple[DatasetCall, ...]) -> tuple[int, ...]:
    """Return the numbers of the calls that are written so: one line may have made several datasets."""
    return tuple(
        call.number
        for each in written
        for call in calls
        if call.place is not None and (call.words, call.place) == (each.text, each.place)
    )


def _stage(stage: PipelineStage, parent: int | None, calls: tuple[int, ...], pool_threads: int) -> ScriptStage:
    is_pooled = "Map" in stage.name and stage.parallelism is not None
    allowed = stage.parallelism or 1.0
    return ScriptStage(
        name=stage.name,
        parent=parent,
        work_ns=stage.work_ns,
        visits=stage.visits_per_batch,
        calls=calls,
        at_once=max(1.0, min(allowed, pool_threads) if is_pooled else allowed),
        works_ahead=is_asynchronous(stage.name),
        is_pooled=is_pooled,
        python_share=_python_share(stage),
        element_bytes=stage.element_bytes,
        words=name_stage(stage.written, stage.name),
    )


def _python_share(stage: PipelineStage) -> float:
    if stage.name == GENERATOR:
        return 1.0
    seen = _operations_ns(stage.traced)
    if seen is not None:
        return seen
    return float(any(call.python for call in stage.written) and "Map" in stage.name)


def _operations_ns(seen: TracedStage | None) -> float | None:
    """Return the part of all ops in a stage's function that is Python; None where the trace shows none."""
    total_ns = 0 if seen is None else sum(op.self_ns for op in seen.operations)
    if seen is None or not total_ns:
        return None
    return sum(op.self_ns for op in seen.operations if op.name in PYTHON_OPS) / total_ns
