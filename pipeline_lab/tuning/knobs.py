"""What can be changed about a pipeline without changing what the model is trained on, one knob at a time.

A knob rewrites the document of a job; whether the result is valid is for the options to say, whether it is allowed for
:mod:`pipeline_lab.tuning.outlook`.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.stages.stage import Stage
from pipeline_lab.workloads.module import ModuleWorkload, parse_arguments

Document: TypeAlias = dict[str, Any]

CALLS = (1, 2, 4, 8, 16, 32)
POOLS = (2, 4, 8, 16, 32)
FILES_OPEN = (2, 4, 8, 16)
DEPTHS = (1, 2, 4, 8, 16)
AS_IS = "as it is"
"""The value of a knob that leaves alone what no number describes."""


@dataclass(frozen=True)
class Knob:
    """One thing that can be changed.

    Attributes:
        name: Short, for people.
        now: Its value in the pipeline that it was made for.
        values: Every value it can take, ``now`` among them, in ascending order where there is one.
        turn: Writes a value into the document of a job.
        is_ordered: The values lie on a line, so that neighbours behave alike.
    """

    name: str
    now: str
    values: tuple[str, ...]
    turn: Callable[[Document, str], None]
    is_ordered: bool = True


def find_knobs(options: RunOptions, *, may_reorder: bool = False) -> tuple[Knob, ...]:
    """Return the knobs of a pipeline; those with a single value are left out.

    Args:
        options: Of the pipeline.
        may_reorder: The order of the elements need not be kept.
    """
    found = (*_knobs(options), *([_order(options)] if may_reorder else []))
    return tuple(knob for knob in found if len(knob.values) > 1)


def argument_knob(workload: ModuleWorkload, name: str, values: Sequence[str]) -> Knob:
    """Return the knob that calls a user's own workload with other values of one argument.

    Args:
        workload: The user's own.
        name: Of the argument.
        values: To try, as they are written on a command line; what it is called with now comes first.

    Raises:
        OptionsError: No argument can have that name, or no value is written like that.
    """
    for value in values:
        _read_argument(name, value)
    now = write_argument(workload.arguments[name]) if name in workload.arguments else AS_IS

    def turn(document: Document, value: str) -> None:
        document["workload"]["arguments"] |= _read_argument(name, value)

    return Knob(name, now, tuple(dict.fromkeys((now, *values))), turn, is_ordered=False)


def write_argument(value: object) -> str:
    """Write a value as a command line would: JSON, but a text bare where it is read as the same text.

    Raises:
        TypeError: It is nothing that JSON can hold.
    """
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            if parse_arguments(f"text={value}") == {"text": value}:
                return value
    return json.dumps(value)


def _read_argument(name: str, written: str) -> Document:
    try:
        found: Document = parse_arguments(f"{name}={written}")
    except ValueError as error:
        raise OptionsError(f"{name[:80]} cannot be {written[:80]!r}: {error}.") from None
    if list(found) != [name]:
        raise OptionsError(f"{name[:80]} cannot be {written[:80]!r}; a text with commas is written in double quotes.")
    return found


def _knobs(options: RunOptions) -> Iterator[Knob]:
    pipeline = options.pipeline
    read = pipeline.first(ReadStage)
    if read is not None and len(options.file_sizes or (0, 0)) > 1:
        yield from _files_at_once(read, len(options.file_sizes or ()))
    if any(stage.is_tuned for stage in pipeline.stages):
        yield _map_calls(pipeline)
        yield _pool(pipeline)
        yield from _vectorised(options)
    yield from _cache(options)
    for index, stage in enumerate(pipeline.stages):
        yield from (_field(index, stage, name, values) for name, values in stage.tuned_fields.items())
    yield _prefetch(pipeline)


def _files_at_once(read: ReadStage, files: int) -> Iterator[Knob]:
    if read.mode == "sample":
        return
    key = "num_parallel_calls" if read.mode == "parallel_reads" else "cycle_length"
    now = "1" if read.is_in_order else _word(getattr(read, key))

    def turn(document: Document, value: str) -> None:
        stage = document["pipeline"]["stages"][0]
        if value == "1":
            stage |= {"mode": "sequential", "cycle_length": None, "num_parallel_calls": None, "block_length": 1}
            stage |= {"deterministic": None}
        elif stage["mode"] == "parallel_reads":
            stage["num_parallel_calls"] = int(value)
        else:
            stage |= {"mode": "interleave", "cycle_length": int(value), "num_parallel_calls": int(value)}

    yield Knob("files at once", now, _values(now, (1, *(n for n in FILES_OPEN if not files or n <= files))), turn)


def _map_calls(pipeline: PipelineOptions) -> Knob:
    calls = {_word(getattr(stage, "num_parallel_calls", None), "1") for stage in pipeline.stages if stage.is_tuned}
    now = calls.pop() if len(calls) == 1 else AS_IS

    def turn(document: Document, value: str) -> None:
        for stage in document["pipeline"]["stages"]:
            if STAGE_TYPES[stage["stage"]].is_tuned:
                stage["num_parallel_calls"] = _number(value, "1")

    return Knob("map calls", now, _values(now, CALLS), turn)


def _field(index: int, stage: Stage, name: str, values: Sequence[str]) -> Knob:
    """Return the knob that tries other values of a field of a stage."""

    def turn(document: Document, value: str) -> None:
        document["pipeline"]["stages"][index][name] = json.loads(value)

    now = json.dumps(stage.model_dump(mode="json")[name])
    return Knob(f"{stage.stage} {name}", now, tuple(dict.fromkeys((now, *values))), turn)


def _pool(pipeline: PipelineOptions) -> Knob:
    def turn(document: Document, value: str) -> None:
        document["pipeline"]["private_threadpool_size"] = _number(value, "default")

    now = _word(pipeline.private_threadpool_size, "default")
    return Knob("pool threads", now, ("default", *(each for each in _values(now, POOLS) if each != "default")), turn)


def _prefetch(pipeline: PipelineOptions) -> Knob:
    last = pipeline.stages[-1]
    now = _word(last.buffer_size) if isinstance(last, PrefetchStage) else "none"

    def turn(document: Document, value: str) -> None:
        stages = document["pipeline"]["stages"]
        if stages[-1]["stage"] == "prefetch":
            stages.pop()
        if value != "none":
            stages.append({"stage": "prefetch", "buffer_size": value if value == "autotune" else int(value)})

    if pipeline.find("prefetch_to_device") is not None:
        return Knob("prefetch", AS_IS, (AS_IS,), turn)
    return Knob("prefetch", now, _values(now, DEPTHS), turn)


def _vectorised(options: RunOptions) -> Iterator[Knob]:
    """Batch before the first map, so that each of them sees a whole batch at once; only next to each other do they swap."""
    kinds = [stage.stage for stage in options.pipeline.stages]
    maps = [place for place, stage in enumerate(options.pipeline.stages) if stage.is_tuned]
    batch = kinds.index("batch") if "batch" in kinds else None
    if maps != list(range(maps[0], maps[0] + len(maps))) or batch not in (maps[-1] + 1, maps[0] - 1):
        return

    def turn(document: Document, value: str) -> None:
        stages = document["pipeline"]["stages"]
        place = next(at for at, stage in enumerate(stages) if stage["stage"] == "batch")
        stage = stages.pop(place)
        kept = [at for at, each in enumerate(stages) if STAGE_TYPES[each["stage"]].is_tuned]
        stages.insert(kept[0] if value == "batch" else kept[-1] + 1, stage)

    now = "batch" if batch < maps[0] else "example"
    yield Knob("map over", now, ("example", "batch"), turn, is_ordered=False)


def _cache(options: RunOptions) -> Iterator[Knob]:
    """Keep the records, or what parse makes of them, in memory; both before anything that is random."""
    stages = options.pipeline.stages
    stored, is_random = any(stage.keeps for stage in stages), stages[0].mixes is not None
    is_cut = any(stage.stops_early for stage in stages)  # no cache before it is read to its end
    if stored or is_random or is_cut or options.workload.kind == "generator":
        return

    def turn(document: Document, value: str) -> None:
        stages = document["pipeline"]["stages"]
        if value == "parsed":
            place = next(at for at, stage in enumerate(stages) if stage["stage"] == "parse")
            stages.insert(1, stages.pop(place))
        if value != "none":
            stages.insert(2 if value == "parsed" else 1, {"stage": "cache", "where": "memory"})

    values = ("none", "records", "parsed") if options.pipeline.find("parse") else ("none", "records")
    yield Knob("cache", "none", values, turn, is_ordered=False)


def _order(options: RunOptions) -> Knob:
    def turn(document: Document, value: str) -> None:
        document["pipeline"]["deterministic"] = None if value == "kept" else False

    now = "any" if options.pipeline.deterministic is False else "kept"
    return Knob("order", now, ("kept", "any"), turn, is_ordered=False)


def _values(now: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
    """Return the numbers as words, with the present value among them: words first, then numbers upwards."""
    words = {now, *map(str, numbers)}
    return tuple(sorted(words, key=lambda word: (word.isdecimal(), int(word) if word.isdecimal() else 0)))


def _word(value: int | str | None, none: str = AS_IS) -> str:
    return none if value is None else str(value)


def _number(word: str, none: str) -> int | str | None:
    if word == none:
        return None
    return int(word) if word.isdecimal() else word
