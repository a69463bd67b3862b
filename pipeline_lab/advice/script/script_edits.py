"""What a change of a script's calls does to the stages that ran: one edit after the other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from pipeline_lab.advice.script.cache_room import NoRoom, find_kept, find_no_room
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    CallEdit,
    Edit,
    InBatches,
    Insert,
    IntoStep,
    MoveBefore,
    Remove,
    Rename,
    SetArgument,
    SetTraining,
    Split,
    Value,
)
from pipeline_lab.stages.stage_values import TAKEN_NS

COPY_NS_PER_BYTE = 0.2
"""Time to read back a byte of a cache in files: 5 GB/s, what a copy reaches beside other work; one in memory hands on what it holds."""
CALL_NS = 30_000.0
"""Time of a call of a stage's function beside its ops: starting it, its thread, handing over the result (2.5 GHz core)."""
PYTHON_CALL_NS = 200_000.0
"""The same of a call into Python."""
Stages: TypeAlias = tuple[ScriptStage, ...]


@dataclass(frozen=True)
class Assumed:
    """What nobody measured.

    Attributes:
        other_cores: Cores that other programs will use.
        holds_lock: Python holds its lock while it computes, so that no two calls compute at once.
        split: Part of a function's work that comes before its random draws.
        overhead: What a call of a function takes beside its work, which whole batches save; 1 for :data:`CALL_NS`.
    """

    other_cores: float
    holds_lock: bool = True
    overhead: float = 1.0
    split: float = 0.5


NOT_MEASURED = "What {what} would bring does not follow from what was measured; race it."
NOT_RUN = "No stage that ran was found for {what}, so its change cannot be predicted; race it."


def has_no_room(run: ScriptRun, edits: Sequence[Edit]) -> NoRoom | None:
    """Say why the cache of a change does not fit into memory; None where it does, nothing is cached there, or that is unknown."""
    kept = find_kept(run.recipe, edits)
    if not kept or run.memory_bytes is None or run.epoch_batches is None:
        return None
    held = [run.stages[place] for each in kept for place in _places(run.stages, each.call)]
    batch_bytes = sum(stage.visits * (stage.element_bytes or 0.0) for stage in held)
    return find_no_room(run.epoch_batches * batch_bytes, run.memory_bytes)


def apply_edit(
    run: ScriptRun, stages: Stages, edit: CallEdit | SetTraining | IntoStep, assumed: Assumed
) -> Stages | Unavailable:
    match edit:
        case SetArgument():
            return _set(run, stages, edit)
        case Insert():
            return _put_in(run, stages, edit)
        case MoveBefore(call, _, "cache"):
            return _cache(run, stages, call)
        case MoveBefore(call, before):
            return _move(run, stages, call, before, assumed)
        case Split(call, _):
            return _keep_part(run, stages, call, assumed)
        case InBatches(call, size):
            return _hand_over(run, stages, call, size, assumed)
        case Rename(call, _):
            return stages if _places(stages, call) else _without_stage(run, stages, call)
        case SetTraining(name, value):
            return _with_workers(stages, name, value)
        case Remove() | IntoStep():
            return _take_out(run, stages, edit)
        case _:
            assert_never(edit)


def _set(run: ScriptRun, stages: Stages, edit: SetArgument) -> Stages | Unavailable:
    if edit.name in ("num_parallel_calls", "num_parallel_reads"):
        return _run_at_once(run, stages, edit.call, edit.value)
    if edit.name == "deterministic":
        return _in_any_order(run, stages, edit.call, bool(edit.value))
    return Unavailable(NOT_MEASURED.format(what=edit.name))


def _put_in(run: ScriptRun, stages: Stages, edit: Insert) -> Stages | Unavailable:
    if edit.method == "prefetch":
        return _insert(run, stages, edit.after, ScriptStage("Prefetch", None, 0.0, works_ahead=True, words="prefetch"))
    if edit.method == "cache":
        return _cache(run, stages, edit.after, in_files=bool(edit.arguments))
    if edit.method == "with_options":  # the layout takes the pool's threads from the run
        return stages
    return Unavailable(NOT_MEASURED.format(what=edit.method))


def _without_stage(run: ScriptRun, stages: Stages, call: int) -> Stages | Unavailable:
    """Return what a change does to a call that no stage ran for: nothing where tf.data leaves it out; else nobody knows."""
    return stages if _is_left_out(run, stages, call) else Unavailable(NOT_RUN.format(what=run.recipe.call(call).words))


def _places(stages: Stages, call: int) -> list[int]:
    """Return the outermost stages that a call made, as several datasets of one line may have it."""
    mine = [index for index, stage in enumerate(stages) if call in stage.calls]
    return [index for index in mine if (parent := stages[index].parent) is None or call not in stages[parent].calls]


def _is_left_out(run: ScriptRun, stages: Stages, call: int) -> bool:
    """Say whether tf.data leaves out a map, as it does one that hands on what it is given: what is before and after it ran."""
    made, trained = run.recipe.call(call), run.recipe.trained
    if made.method != "map" or trained is None or not made.inputs or _places(stages, call):
        return False
    after = [each.number for each in run.recipe.upstream(trained.call) if call in each.inputs]
    return bool(_places(stages, made.inputs[0])) and any(_places(stages, each) for each in after)


def _places_after(run: ScriptRun, stages: Stages, call: int) -> list[int]:
    """Return the outermost stages that hand on the elements of a call."""
    return _places(stages, run.recipe.call(call).inputs[0] if _is_left_out(run, stages, call) else call)


def _run_at_once(run: ScriptRun, stages: Stages, call: int, value: object) -> Stages | Unavailable:
    places = _places(stages, call)
    if not places:
        return _without_stage(run, stages, call)
    is_map = "interleave" not in run.recipe.call(call).method and "Reads" not in run.recipe.call(call).method
    asked = run.pool_threads if value == AUTOTUNE else value
    if not isinstance(asked, int):
        return Unavailable(NOT_MEASURED.format(what="num_parallel_calls"))
    at_once = float(max(1, min(asked, run.pool_threads) if is_map else asked))
    changed = list(stages)
    for place in places:
        stage = stages[place]
        name = stage.name if stage.works_ahead else f"Parallel{stage.name}"
        changed[place] = replace(stage, name=name, at_once=at_once, works_ahead=True, is_pooled=is_map)
    return tuple(changed)


def _in_any_order(run: ScriptRun, stages: Stages, call: int, keeps_order: bool) -> Stages | Unavailable:
    places = _places(stages, call)
    if not places:
        return _without_stage(run, stages, call)
    changed = list(stages)
    for place in places:
        changed[place] = replace(stages[place], keeps_order=keeps_order)
    return tuple(changed)


def _insert(run: ScriptRun, stages: Stages, after: int, new: ScriptStage) -> Stages | Unavailable:
    """Put a stage between those of a call and what takes their elements; the last one is found above the outermost stage."""
    places = _places_after(run, stages, after)
    if not places:
        trained = run.recipe.trained
        if trained is None or trained.call != after:
            return _without_stage(run, stages, after)
        places = [next(index for index, stage in enumerate(stages) if stage.parent is None)]
    changed = list(stages)
    for place in places:
        top = place
        while (parent := stages[top].parent) is not None and stages[parent].name in ("Root", "Model"):
            top = parent
        changed.append(replace(new, parent=changed[place].parent, visits=stages[place].visits))
        changed[place] = replace(changed[place], parent=len(changed) - 1)
    return tuple(changed)


def _cache(run: ScriptRun, stages: Stages, after: int, *, in_files: bool = False) -> Stages | Unavailable:
    """Skip all that is upstream of a full cache; what it holds is handed on."""
    places = _places_after(run, stages, after)
    if not places:
        return _without_stage(run, stages, after)
    changed = _with_idle_upstream(stages, places)
    for place in places:
        held = stages[place]
        read_ns = COPY_NS_PER_BYTE * (held.element_bytes or 0.0) if in_files else 0.0
        handed_ns = held.visits * (TAKEN_NS + read_ns)
        changed[place] = replace(
            held, work_ns=handed_ns, at_once=1.0, works_ahead=False, is_pooled=False, python_share=0.0
        )
    return tuple(changed)


def _keep_part(run: ScriptRun, stages: Stages, call: int, assumed: Assumed) -> Stages | Unavailable:
    """Skip all that is upstream of a function's draws, and what the function does before them."""
    places = _places(stages, call)
    if not places:
        return _without_stage(run, stages, call)
    changed = _with_idle_upstream(stages, places)
    for place in places:
        drawing = stages[place]
        changed[place] = replace(drawing, work_ns=(1.0 - assumed.split) * drawing.work_ns + drawing.visits * TAKEN_NS)
    return tuple(changed)


def _with_idle_upstream(stages: Stages, places: Sequence[int]) -> list[ScriptStage]:
    idle = {index for place in places for index in _upstream(stages, place)}
    return [replace(stage, work_ns=0.0) if index in idle else stage for index, stage in enumerate(stages)]


def _upstream(stages: Stages, place: int) -> Iterator[int]:
    yield place
    for index, stage in enumerate(stages):
        if stage.parent == place:
            yield from _upstream(stages, index)


def _move(run: ScriptRun, stages: Stages, call: int, before: int, assumed: Assumed) -> Stages | Unavailable:
    """Let a function see whole batches, or a cache keep what an endless repeat hands on."""
    moved, other = run.recipe.call(call), run.recipe.call(before)
    if moved.method == "cache" and other.inputs:
        return _cache(run, stages, other.inputs[0])
    if not moved.method.endswith("batch") or other.method != "map":
        return Unavailable(NOT_MEASURED.format(what=f"{moved.words} before {other.words}"))
    places = _places(stages, before)
    if not places:
        return _without_stage(run, stages, before)
    changed = list(stages)
    for place in places:
        stage = stages[place]
        examples = _examples(run, stages, stage, call)
        if examples <= 1.0:
            return Unavailable(NOT_MEASURED.format(what=f"{moved.words} before {other.words}"))
        each_ns = stage.work_ns / examples
        call_ns = assumed.overhead * (PYTHON_CALL_NS if stage.python_share > 0.5 else CALL_NS)
        work_ns = max(each_ns, stage.work_ns - examples * call_ns)
        changed[place] = replace(stage, work_ns=work_ns, visits=stage.visits / examples)
    return tuple(changed)


def _examples(run: ScriptRun, stages: Stages, stage: ScriptStage, batch: int) -> float:
    """Return the elements in a batch, by what ran or by what the script says."""
    size = run.recipe.call(batch).arguments.get("batch_size")
    if isinstance(size, int) and size > 0:
        return float(size)
    above = [stages[place].visits for place in _places(stages, batch)]
    return stage.visits / above[0] if above and above[0] else math.nan


def _hand_over(run: ScriptRun, stages: Stages, call: int, size: int, assumed: Assumed) -> Stages | Unavailable:
    """Call Python once for ``size`` elements of a generator."""
    places = [place for place in _places(stages, call) if stages[place].visits]
    if not places:
        return _without_stage(run, stages, call)
    changed = list(stages)
    for place in places:
        inside = [index for index in _upstream(stages, place) if stages[index].python_share]
        for index in inside or [place]:
            stage = stages[index]
            saved_ns = stage.visits * (1.0 - 1.0 / size) * assumed.overhead * PYTHON_CALL_NS
            changed[index] = replace(stage, work_ns=max(stage.work_ns / size, stage.work_ns - saved_ns))
    return tuple(changed)


STEP_UNKNOWN = "What a function takes of the training step where no device computes it was not measured, so its gain is not predicted."
SIZES_UNKNOWN = "The run says too little of the map's elements to tell how much less would be copied."


def _take_out(run: ScriptRun, stages: Stages, edit: Remove | IntoStep) -> Stages | Unavailable:
    """Skip a function that the device computes; what it takes where the step computes on the cores, nobody measured."""
    if isinstance(edit, Remove):
        return Unavailable(NOT_MEASURED.format(what=f"leaving out {run.recipe.call(edit.call).words}"))
    if run.copied_ns is None:
        return Unavailable(STEP_UNKNOWN)
    places = _places(stages, edit.call)
    if not places:
        return _without_stage(run, stages, edit.call)
    return tuple(
        replace(stage, work_ns=stage.visits * TAKEN_NS) if place in places else stage
        for place, stage in enumerate(stages)
    )


def left_of_copies(run: ScriptRun, call: int) -> float | None:
    """Return the part of the bytes of a map's elements that its function is given, at most 1; None where they were not measured."""
    sizes = [
        (below.element_bytes, run.stages[place].element_bytes)
        for place in _places(run.stages, call)
        for below in run.stages
        if below.parent == place
    ]
    known = [(given, made) for given, made in sizes if given and made]
    if not known or len(known) < len(sizes):
        return None
    return min(1.0, sum(given for given, _ in known) / sum(made for _, made in known))


def _with_workers(stages: Stages, name: str, count: Value) -> Stages | Unavailable:
    """Let several threads or processes make the batches of a ``PyDataset``: Python's lock lets them wait, not compute, together."""
    makes = [index for index, stage in enumerate(stages) if stage.python_share and "Generator" in stage.name]
    if not makes or name != "workers" or not isinstance(count, int):
        return Unavailable(NOT_MEASURED.format(what=name))
    changed = list(stages)
    for index in makes:
        changed[index] = replace(stages[index], at_once=float(count), works_ahead=True)
    return tuple(changed)
