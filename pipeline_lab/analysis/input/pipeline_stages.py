"""The stages of a pipeline from all that is known of them: what the trace holds, what tf.data's own model adds.

A run has both; a log has its trace alone, and a run without a profile window its model alone. Stages are joined by their
place: the names from the root down.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline_lab.analysis.input.live_model import LiveModel, StageWork
from pipeline_lab.analysis.input.model_nodes import REFILLED, SEPARATOR
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, StageOrigin, TfData, TracedStage
from pipeline_lab.analysis.tf_data.written_words import calls_of_stages, say_calls
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenCall, WrittenPipeline


@dataclass(frozen=True, kw_only=True)
class PipelineStage:
    """One stage.

    Attributes:
        name: Kind of its iterator, such as ``ParallelMapV2``.
        path: Its place.
        depth: Stages above it.
        written: The calls that it was written as, with their lines where a script was watched; several where TensorFlow fused
            them, none where it is not known.
        origin: How it came to be; None where no trace tells.
        work_ns: Thread time that one batch takes of it.
        visits_per_batch: Its elements for one batch.
        exposed_ns: Wait that it caused and that left the device idle, in all windows; None without a critical path.
        element_bytes: Size of one element.
        parallelism: Mean number of parallel calls that it was allowed.
        buffered_elements, buffer_limit: Mean content of its buffer and what it may hold.
        buffered_bytes: Mean size of that content.
        traced: All that the trace tells of it; None where only tf.data's own model does.
        traced_work_ns: Thread time that one batch took of it inside the windows; None without a trace. ``work_ns`` is that
            of the model where there is one, which speaks of the whole run.
    """

    name: str
    path: str
    depth: int
    written: tuple[WrittenCall, ...]
    origin: StageOrigin | None
    work_ns: float
    visits_per_batch: float
    exposed_ns: int | None
    element_bytes: float | None
    parallelism: float | None
    buffered_elements: float | None
    buffer_limit: float | None
    buffered_bytes: float | None
    traced: TracedStage | None = None
    traced_work_ns: float | None = None


def join_stages(
    tf_data: TfData | Unavailable, model: LiveModel | Unavailable, written: WrittenPipeline | Unavailable
) -> tuple[PipelineStage, ...] | Unavailable:
    """Return every stage that ran, the outermost first; why not, where neither source has any."""
    if not isinstance(tf_data, Unavailable) and tf_data.stages:
        return _from_trace(tf_data, model, written)
    if not isinstance(model, Unavailable):
        calls = {} if isinstance(written, Unavailable) else calls_of_stages(written, model.stages)
        return tuple(_from_model(stage, calls.get(stage.path, ())) for stage in model.stages)
    return model if isinstance(tf_data, TfData) else tf_data


def stage_labels(stages: Sequence[PipelineStage]) -> dict[str, str]:
    """Return a short name for each stage by its place: its kind, and as what it was written."""
    return {stage.path: " · ".join(filter(None, (stage.name, say_calls(stage.written)))) for stage in stages}


def caused_ns(tf_data: TfData | Unavailable) -> dict[int, int] | None:
    """Return the exposed wait that each stage caused, by its number; None where it is not known."""
    if isinstance(tf_data, Unavailable) or not isinstance(tf_data.critical_path, CriticalPath):
        return None
    return tf_data.caused_ns


def _from_trace(
    tf_data: TfData, model: LiveModel | Unavailable, written: WrittenPipeline | Unavailable
) -> tuple[PipelineStage, ...]:
    live: dict[str, list[StageWork]] = {}
    for work in () if isinstance(model, Unavailable) else model.stages:
        live.setdefault(trace_path(work.path), []).append(work)
    caused = caused_ns(tf_data)
    calls = {} if isinstance(written, Unavailable) else calls_of_stages(written, tf_data.stages)

    def is_wrapped(stage: TracedStage) -> bool:
        """Say whether this is only the root around the stage that the dataset stands for."""
        return any(below.node == stage.node for below in tf_data.children(stage.number))

    batches = max((stage.elements for stage in tf_data.stages if stage.parent is None), default=0)
    alike = Counter(plain_path(stage.path) for stage in tf_data.stages)
    joined = tuple(
        _join(
            stage,
            live.get(plain_path(stage.path), []),
            alike[plain_path(stage.path)],
            () if is_wrapped(stage) else calls.get(stage.path, ()),
            None if caused is None else caused.get(stage.number, 0),
            batches or 1,
        )
        for stage in tf_data.stages
    )
    return (*joined, *_outside_of_windows(joined, model, written))


def _outside_of_windows(
    traced: Sequence[PipelineStage], model: LiveModel | Unavailable, written: WrittenPipeline | Unavailable
) -> Iterator[PipelineStage]:
    """Yield the stages that worked in no window, as they had filled a shuffle buffer before."""
    if isinstance(model, Unavailable):
        return
    traced_paths = {plain_path(stage.path) for stage in traced}
    filling = {plain_path(stage.path): stage.path for stage in traced if stage.name in REFILLED}
    calls = {} if isinstance(written, Unavailable) else calls_of_stages(written, model.stages)
    for work in model.stages:
        path = trace_path(work.path)
        above, _, name = path.rpartition(SEPARATOR)
        if path not in traced_paths and above in filling and work.work_ns:
            filling[path] = f"{filling[above]}{SEPARATOR}{name}"
            yield replace(_from_model(work, calls.get(work.path, ())), path=filling[path])


def _join(
    stage: TracedStage,
    live: Sequence[StageWork],
    alike: int,
    written: tuple[WrittenCall, ...],
    exposed_ns: int | None,
    batches: int,
) -> PipelineStage:
    threads = [work.parallelism for work in live if work.parallelism is not None]
    sizes = [work.element_bytes for work in live if work.element_bytes is not None]
    held = [work for work in live if work.buffered_elements is not None]
    limits = [work.buffer_limit for work in live if work.buffer_limit is not None]
    traced_work_ns = stage.work_ns / batches
    return PipelineStage(
        name=stage.name,
        path=stage.path,
        depth=stage.path.count("::"),
        written=written,
        origin=stage.origin,
        work_ns=sum(work.work_ns for work in live) / alike if live else traced_work_ns,
        visits_per_batch=live[0].visits_per_batch / alike if live else stage.elements / batches,
        exposed_ns=exposed_ns,
        element_bytes=sizes[0] if sizes else stage.bytes_per_element,
        parallelism=threads[0] if threads else stage.parallelism,
        buffered_elements=held[0].buffered_elements if held else stage.buffer_mean,
        buffer_limit=limits[0] if limits else stage.buffer_limit,
        buffered_bytes=held[0].buffered_bytes if held else None,
        traced=stage,
        traced_work_ns=traced_work_ns,
    )


def _from_model(work: StageWork, written: tuple[WrittenCall, ...]) -> PipelineStage:
    return PipelineStage(
        name=work.name,
        path=work.path,
        depth=work.path.count("::"),
        written=written,
        origin=None,
        work_ns=work.work_ns,
        visits_per_batch=work.visits_per_batch,
        exposed_ns=None,
        element_bytes=work.element_bytes,
        parallelism=work.parallelism,
        buffered_elements=work.buffered_elements,
        buffer_limit=work.buffer_limit,
        buffered_bytes=work.buffered_bytes,
    )


def plain_path(path: str) -> str:
    """Write a path of a trace without the numbers of inputs, as the model has it: inputs of the same names are one stage there."""
    return re.sub(r"\[\d+\]", "", path)


def trace_path(path: str) -> str:
    """Write a path of the model as traces do: a cache and the part of it that does the work are one stage."""
    return re.sub(r"(\w+)::\1Impl\b", r"\1", path)
