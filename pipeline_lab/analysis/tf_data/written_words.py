"""Say a stage of the written pipeline as its author wrote it: ``map(parse, AUTOTUNE)``, ``shuffle(2048)``."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from pipeline_lab.analysis.declaring.declaration import Analysis, JobView, PerJob
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.pipeline.recipe import INSIDE
from pipeline_lab.runs.run_documents import WrittenCall, WrittenPipeline, WrittenStage

NOT_WRITTEN = "A log tells what ran, not what was written; the options of a run of Pipeline Lab do."
WRITTEN_NOT_KEPT = (
    "The run does not keep its pipeline as written: it was recorded before Pipeline Lab kept it, or TensorFlow could not "
    "write it as a graph; record it again."
)
ROOTS = frozenset({"Root", "Model"})
AUTOTUNE, AUTOTUNE_WORD = -1, "AUTOTUNE"
_METHODS = {
    "Batch": "batch",
    "PaddedBatch": "padded_batch",
    "Cache": "cache",
    "Concatenate": "concatenate",
    "DirectedInterleave": "sample_from_datasets",
    "Filter": "filter",
    "FlatMap": "flat_map",
    "Interleave": "interleave",
    "LegacyParallelInterleave": "parallel reads",
    "Map": "map",
    "Prefetch": "prefetch",
    "Repeat": "repeat",
    "Load": "load",
    "Rebatch": "rebatch",
    "Shard": "shard",
    "Shuffle": "shuffle",
    "Skip": "skip",
    "Snapshot": "snapshot",
    "Take": "take",
    "TensorSlice": "from_tensor_slices",
    "Unbatch": "unbatch",
    "Zip": "zip",
    "FromTensor": "from_tensors",
    "GroupByWindow": "group_by_window",
    "ParseExample": "parse_example",
    "Range": "range",
    "Scan": "scan",
    "TakeWhile": "take_while",
    "Unique": "unique",
    "Window": "window",
}
_NUMBERS = ("batch_size", "buffer_size", "cycle_length", "count", "num_parallel_calls")
"""Arguments that a label names, by TensorFlow's names."""


def stage_call(stage: WrittenStage) -> str:
    """Return a stage as a short call."""
    if stage.call is not None:
        return stage.call.text
    method = method_of(stage.op)
    if method is None:
        return kind_of(stage.op)
    function = (stage.function or "").removeprefix(f"{method}_")
    arguments = [function] if function.isidentifier() and function not in (method, "read_one_file") else []
    for name in _NUMBERS:
        value = stage.arguments.get(name)
        if value is None or isinstance(value, str) or (value == AUTOTUNE and name == "count"):
            continue
        arguments.append(AUTOTUNE_WORD if value == AUTOTUNE else f"{value:g}")
    if stage.arguments.get("filename"):
        arguments.append("file")
    return f"{method}({', '.join(arguments)})"


class RanStage(Protocol):
    """A stage that ran, as a trace or tf.data's own model has it; the one above it comes before it."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def parent(self) -> int | None: ...

    @property
    def node(self) -> str:
        """Its dataset: ``MapDataset:2`` or ``fused(ParallelMapDatasetV2:27,BatchDatasetV2:28)``; empty where not told."""


def calls_of_stages(written: WrittenPipeline, ran: Sequence[RanStage]) -> dict[str, tuple[WrittenCall, ...]]:
    """Return the written calls behind each stage that ran, by its path: several for a fused one, none for an injected one.

    A stage's dataset has a name, which tells its calls. Where it has none, as one that a function makes or one of tf.data's own
    model, its call is the next one upstream of the stage above it that runs as its kind of iterator, else that stage's.
    """
    number = {stage.name: index for index, stage in enumerate(written.stages) if stage.name}
    found: list[tuple[int, ...]] = []
    for stage in ran:
        named = tuple(number[name] for name in re.findall(r"\w+(?::\d+)?", stage.node) if name in number)
        found.append(named or _next_calls(written, stage, ran, found))
    return {
        stage.path: tuple(dict.fromkeys(_call_of(written.stages[each]) for each in calls))
        for stage, calls in zip(ran, found, strict=True)
    }


def say_calls(calls: Sequence[WrittenCall]) -> str:
    """Return calls in one line, a file named once, and a call of which several are parts: ``train.py:41 .map(load) + :42 .batch(16)``.

    It is empty without any.
    """
    said, last, around = [], "", ("", "")
    for call in calls:
        file = "" if call.place is None else call.place.file
        outer, inside, part = call.text.rpartition(INSIDE)
        if inside and (str(call.place), outer) == around:
            said.append(part)
        else:
            said.append(f":{call.place.name_line} {call.text}" if call.place and file == last else str(call))
        last, around = file, (str(call.place), outer)
    return " + ".join(said)


def name_stage(calls: Sequence[WrittenCall], iterator: str) -> str:
    """Name a stage as its author knows it: by the lines of a script, those that run Python before others, else by its iterator."""
    placed = [call for call in calls if call.place]
    return say_calls([call for call in placed if call.python] or placed) or iterator


def name_python(calls: Sequence[WrittenCall]) -> str:
    """Name the functions of Python that calls run: ``decode (train.py:7)``; empty where none is known."""
    return ", ".join(dict.fromkeys(str(part.function) for call in calls for part in call.python))


def _next_calls(
    written: WrittenPipeline, stage: RanStage, ran: Sequence[RanStage], found: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    above = stage.parent
    while above is not None and not found[above]:
        above = ran[above].parent
    is_script = any(each.call for each in written.stages)
    if not is_script or stage.node.startswith("inject/") or stage.name in ROOTS:
        return ()
    taken = {each for calls in found for each in calls}
    calls: list[int] = []
    for kind in reversed(stage.name.split("And")):  # of a fused iterator, the consumer first
        begin = calls[-1:] or (() if above is None else found[above][:1])
        match = next(
            (each for each in _upstream(written, begin) if each not in taken and _runs_as(written, each, kind)), None
        )
        calls += [] if match is None else [match]
    return tuple(calls) or (() if above is None else _made_inside(written, found[above]))


def _made_inside(written: WrittenPipeline, calls: tuple[int, ...]) -> tuple[int, ...]:
    """Return the call whose dataset a call's function returns, which alone has no name; the call itself without one."""
    inside = [below for each in calls for below in written.stages[each].inputs if not written.stages[below].name]
    return tuple(inside[-1:]) or calls


def _upstream(written: WrittenPipeline, begin: Sequence[int]) -> Iterator[int]:
    """Yield the stages before one, the nearest first; from the last one on where there is none to begin with."""
    left = [below for each in begin for below in written.stages[each].inputs] if begin else [0]
    seen: set[int] = set()
    while left:
        index = left.pop(0)
        if index not in seen:
            seen.add(index)
            yield index
            left += written.stages[index].inputs


def _runs_as(written: WrittenPipeline, index: int, iterator: str) -> bool:
    from pipeline_lab.stages.registry import iterators_of  # loads pydantic, which stages that have names do without

    stage = written.stages[index]
    kind = re.sub(r"^(Forever|Finite|Memory|File)(?=Repeat|Take|Skip|Cache)", "", iterator)
    ops = (
        stage.op,
        stage.name.partition(":")[0],
    )  # of a script the former is the call, which may have made several datasets
    return any(
        iterator in iterators_of(op) or op == method_of(kind) or kind_of(op) == kind_of(kind) for op in ops if op
    )


def _call_of(stage: WrittenStage) -> WrittenCall:
    return stage.call or WrittenCall(stage_call(stage))


def kind_of(op: str) -> str:
    """Return an op or iterator without its version: ``ParallelMap`` for ``ParallelMapDatasetV2``."""
    return re.sub(r"(V\d+)?$", "", re.sub(r"Dataset(V\d+)?$", "", op))


def method_of(op: str) -> str | None:
    """Return the call that one writes for an op or iterator, such as ``map``; None for a source of elements."""
    kind = kind_of(op)
    return _METHODS.get(kind) or _METHODS.get(kind.removeprefix("Parallel"))


def _read(job: JobView) -> WrittenPipeline:
    if job.tables.written is None:
        raise TraceIncompleteError(WRITTEN_NOT_KEPT)
    return job.tables.written


WRITTEN = Analysis(WrittenPipeline, per_job=PerJob(_read, NOT_WRITTEN), json_inside="tf_data")
