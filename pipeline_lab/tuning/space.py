"""What can be changed about a pipeline without changing what the model is trained on, and every combination of it.

A knob rewrites the document of a job. Whether the result is valid is for the options to decide, whether it is allowed for
:mod:`pipeline_lab.tuning.outlook`.
"""

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, TypeAlias

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, did_you_mean
from pipeline_lab.options.run_options import RunOptions, read_options
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
        is_ordered: The values lie on a line, so that neighbors behave alike.
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
        yield from _vectorized(options)
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


def _vectorized(options: RunOptions) -> Iterator[Knob]:
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


MAX_CONFIGURATIONS = 20_000
"""More are not looked at: naming fewer values in ``only`` makes a space smaller."""
START = "start"


@dataclass(frozen=True, eq=False)
class Configuration:
    """One point of the space.

    Attributes:
        name: The values that differ from the start's, or ``start``; no two configurations of a space share it.
        setting: Value of each knob, in the order of the knobs.
        options: The whole job; its name is the configuration's.
    """

    name: str
    setting: tuple[str, ...]
    options: RunOptions

    def distance(self, other: "Configuration") -> int:
        """Count the knobs with different values."""
        return sum(one != another for one, another in zip(self.setting, other.setting, strict=True))


class Space:
    """The configurations around a start."""

    def __init__(self, start: RunOptions, knobs: Sequence[Knob]) -> None:
        self.knobs = tuple(knobs)
        self._document = start.model_dump(mode="json")
        self.start = self._start(start)

    @property
    def size(self) -> int:
        """Combinations of values, valid or not."""
        return math.prod(len(knob.values) for knob in self.knobs)

    def configurations(self) -> Iterator[Configuration]:
        """Return every valid configuration, the start among them.

        Raises:
            OptionsError: There are too many.
        """
        if self.size > MAX_CONFIGURATIONS:
            raise OptionsError(
                f"The search would look at {self.size:,} configurations, more than {MAX_CONFIGURATIONS:,}; "
                "name fewer values of the knobs in `only`, or explore."
            )
        for setting in product(*(knob.values for knob in self.knobs)):
            configuration = self.at(setting)
            if configuration is not None:
                yield configuration

    def at(self, setting: Sequence[str]) -> Configuration | None:
        """Return the configuration with these values, or None if it is not a valid pipeline."""
        turned = [(knob, value) for knob, value in zip(self.knobs, setting, strict=True) if value != knob.now]
        if not turned:
            return self.start
        name = ", ".join(f"{knob.name} {value}" for knob, value in turned)
        document = deepcopy(self._document)
        for knob, value in turned:
            knob.turn(document, value)
        try:
            return Configuration(name, tuple(setting), read_options(document | {"name": name[:200]}))
        except OptionsError:
            return None

    def _start(self, options: RunOptions) -> Configuration:
        named = options.model_copy(update={"name": options.name or START})
        return Configuration(START, tuple(knob.now for knob in self.knobs), named)


def make_space(
    start: RunOptions, *, may_reorder: bool = False, only: Mapping[str, Sequence[str]] | None = None
) -> Space:
    """Return the space around a pipeline.

    Args:
        start: Its center.
        may_reorder: The order of the elements need not be kept.
        only: Values to look at, by the names of the knobs; the others stay as they are. Empty for all.

    Raises:
        OptionsError: There is no such knob or value, or nothing can be changed.
    """
    if isinstance(start.workload, ModuleWorkload):
        return _space_of_arguments(start, start.workload, only or {})
    knobs = find_knobs(start, may_reorder=may_reorder)
    if only:
        knobs = tuple(_narrow(knob, only) for knob in knobs if knob.name in only)
        missing = sorted(set(only) - {knob.name for knob in knobs})
        if missing:
            known = [knob.name for knob in find_knobs(start, may_reorder=may_reorder)]
            meant = did_you_mean(missing[0], known)
            raise OptionsError(f"This pipeline has no knob {missing[0]!r}; it has {', '.join(known)}.{meant}")
    if not knobs:
        raise OptionsError("Nothing about this pipeline can be changed; there is nothing to search.")
    return Space(start, knobs)


def _space_of_arguments(start: RunOptions, workload: ModuleWorkload, only: Mapping[str, Sequence[str]]) -> Space:
    if not only:
        raise OptionsError(f"Specify the arguments to try for {workload.target}, such as --try calls=1,4,8.")
    return Space(start, [argument_knob(workload, name, values) for name, values in only.items()])


def _narrow(knob: Knob, only: Mapping[str, Sequence[str]]) -> Knob:
    wanted = only[knob.name]
    unknown = [value for value in wanted if value not in knob.values]
    if unknown:
        raise OptionsError(f"{knob.name} cannot be {unknown[0]!r}; it can be {', '.join(knob.values)}.")
    values = tuple(value for value in knob.values if value in {*wanted, knob.now})
    return Knob(knob.name, knob.now, values, knob.turn, knob.is_ordered)
