"""Makes a dataset of the script again as an arm of a race: with the edits of a change, files of its own, and steady buffers."""

import __future__

import ast
import inspect
import itertools
import linecache
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, assert_never

import tensorflow as tf

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    CallEdit,
    Edit,
    InBatches,
    Insert,
    MoveBefore,
    Remove,
    Rename,
    SetArgument,
    Split,
    TrainingEdit,
    in_order,
)
from pipeline_lab.pipeline.function_parts import FunctionParts
from pipeline_lab.pipeline.recipe import Recipe
from pipeline_lab.pipeline.stacked_functions import StackedFunction, find_stacks
from pipeline_lab.worker.recipe.notes import MADE_BY, Note, note_of
from pipeline_lab.worker.recipe.replaying import CannotReplayError, ReplayedCall, replay
from pipeline_lab.worker.recipe.wrapping import datasets_in

PREFETCHED = 8
"""Batches that a prefetch holds in a race where the script leaves that to tf.data, which doubles a buffer that was full once
and then empty; an arm's buffers are full after each of its pauses."""


@dataclass(frozen=True)
class NotedDatasets:
    """What the datasets of the script are made of.

    Attributes:
        recipe: In words.
        notes: Of each call, by its number in the recipe.
    """

    recipe: Recipe
    notes: Mapping[int, Note]

    def number_of(self, dataset: Any) -> int:
        mine = note_of(dataset)
        return next(number for number, note in self.notes.items() if note is mine)


def change_dataset(dataset: Any, noted: NotedDatasets, edits: Iterable[Edit], scratch: Path) -> Any:
    """Make a dataset again with edits; what it keeps in files is kept in others, below a folder, and buffers do not grow.

    Args:
        dataset: Of the script.
        noted: What it is made of.
        edits: Of calls by their numbers; those of the training do nothing here.
        scratch: The folder.

    Raises:
        CannotReplayError: One of its calls cannot be made again, or an edit does not suit it.
    """
    wanted = [edit for edit in in_order(edits) if not isinstance(edit, TrainingEdit)]
    own = [_as_in_a_race(edit, scratch) for edit in wanted]
    plan = _Plan(dataset, noted.notes)
    for edit in [*_of_any_arm(noted, dataset, scratch), *own]:
        plan.add(edit)
    return replay(dataset, {noted.notes[number]: plan.edits[number].make for number in plan.edits})


def as_written(dataset: Any, noted: NotedDatasets, scratch: Path) -> Any:
    """Return the script's dataset as it is, unless pauses would let a buffer grow, or others would take its cache as theirs."""
    return change_dataset(dataset, noted, (), scratch) if any(_of_any_arm(noted, dataset, scratch)) else dataset


def _of_any_arm(noted: NotedDatasets, dataset: Any, scratch: Path) -> Iterator[SetArgument]:
    """Yield the edits that every arm needs."""
    for number in _written(noted, dataset):
        yield SetArgument(number, "filename", _file(scratch, number))
    for call in noted.recipe.upstream(noted.number_of(dataset), inside=False):
        if call.method == "prefetch" and call.is_understood and call.arguments.get("buffer_size") == AUTOTUNE:
            yield SetArgument(call.number, "buffer_size", PREFETCHED)


def _written(noted: NotedDatasets, dataset: Any) -> Iterator[int]:
    """Yield the caches in files that are not complete yet."""
    for call in noted.recipe.upstream(noted.number_of(dataset)):
        name = call.arguments.get("filename")
        if call.method == "cache" and name and not Path(f"{name}.index").exists():
            yield call.number


def _file(scratch: Path, number: int) -> str:
    scratch.mkdir(parents=True, exist_ok=True)
    return str(scratch / f"call-{number}")


def _as_in_a_race(edit: CallEdit, scratch: Path) -> CallEdit:
    match edit:
        case Insert(after, "cache", arguments) if arguments.get("filename"):
            return replace(edit, arguments={"filename": _file(scratch, after)})
        case Insert(after, "snapshot", _):
            return replace(edit, arguments={"path": _file(scratch, after)})
        case Insert(_, "prefetch", arguments) if arguments.get("buffer_size") == AUTOTUNE:
            return replace(edit, arguments={"buffer_size": PREFETCHED})
        case SetArgument(_, "buffer_size", value) if value == AUTOTUNE:
            return replace(edit, value=PREFETCHED)
        case Insert() | SetArgument() | Remove() | Rename() | MoveBefore() | InBatches() | Split():
            return edit
        case _:
            assert_never(edit)


@dataclass
class _CallEdits:
    """All edits of one call.

    Attributes:
        arguments: Set.
        at_a_time: Elements that a generator hands over at a time.
        method: To call instead; None for its own.
        stacked: Its function, where it stacks along the last axis.
        parts: Of its function, between which what the first one makes is kept; None for the whole function.
        is_kept_before: The first part is made elsewhere.
        stays: Whether it is made at its place.
        first: Calls that are made directly before it, with their arguments.
        then: Calls that are inserted after it.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    at_a_time: int = 1
    method: str | None = None
    stacked: StackedFunction | None = None
    parts: FunctionParts | None = None
    is_kept_before: bool = False
    stays: bool = True
    first: list["_Moved | _First"] = field(default_factory=list)
    then: list[Insert] = field(default_factory=list)

    def make(self, call: ReplayedCall) -> Any:
        inputs = call.inputs
        for moved in self.first:
            inputs = (moved.make(inputs),)
        if not self.stays:
            (made,) = inputs
        elif self.method is not None:
            (below,) = inputs
            made = getattr(below, self.method)(**{**call.arguments, **self.arguments})
        elif self.parts is not None:
            _, rest = make_parts(call.arguments["map_func"], self.parts)
            if not self.is_kept_before:
                inputs = (self.make_first(call, inputs),)
            made = inputs[0].map(**{**call.arguments, **self.arguments, "map_func": rest})
        else:
            made = call.again(*inputs, **{**self._stacking_last(call), **self.arguments, **self._in_batches(call)})
            made = made.unbatch() if self.at_a_time > 1 else made
        for each in self.then:
            made = _called(made, each)
        return made

    def make_first(self, call: ReplayedCall, inputs: tuple[Any, ...]) -> Any:
        """Map the first part of a function, and keep what it makes."""
        assert self.parts is not None
        first, _ = make_parts(call.arguments["map_func"], self.parts)
        at_once = call.arguments.get("num_parallel_calls") or AUTOTUNE
        return call.again(*inputs, map_func=first, num_parallel_calls=at_once).cache()

    def _stacking_last(self, call: ReplayedCall) -> dict[str, Any]:
        return {} if self.stacked is None else {"map_func": stack_last(call.arguments["map_func"], self.stacked)}

    def _in_batches(self, call: ReplayedCall) -> dict[str, Any]:
        if self.at_a_time == 1:
            return {}
        given = call.arguments
        signature = given["output_signature"]
        wider = tf.nest.map_structure(lambda one: tf.TensorSpec([None, *one.shape], one.dtype), signature)
        return {"generator": _by_the_batch(given["generator"], signature, self.at_a_time), "output_signature": wider}


def _by_the_batch(generator: Callable[..., Any], signature: Any, size: int) -> Callable[..., Iterator[Any]]:
    """Return a generator of as many elements at a time of another one; the same as is written into the source."""

    def together(elements: list[Any]) -> Any:
        if isinstance(signature, dict):
            return {name: [each[name] for each in elements] for name in signature}
        return tuple(zip(*elements, strict=False)) if isinstance(signature, tuple) else elements

    def batches(*arguments: Any) -> Iterator[Any]:
        elements = iter(generator(*arguments))
        while chunk := list(itertools.islice(elements, size)):
            yield together(chunk)

    return batches


def make_parts(function: Callable[..., Any], parts: FunctionParts) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the two functions that a function of the user's is split into; AutoGraph finds their source."""
    file, is_inner = f"<{parts.name} in parts>", parts.first[:1].isspace()
    text = "\n\n".join(["if True:"] * is_inner + [parts.first, parts.rest])
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    exec(compile(text, file, "exec"), scope)  # noqa: S102 - the user's own function, in two
    return scope[parts.kept_name], scope[parts.rest_name]


def stack_last(function: Callable[..., Any], stacked: StackedFunction) -> Callable[..., Any]:
    """Return a function of the user's as it is where it stacks along the last axis; AutoGraph finds its source.

    Raises:
        CannotReplayError: It is no plain function, or does not stack what the source says.
    """
    own = getattr(function, "python_function", function)
    if not inspect.isfunction(own) or own.__defaults__ or own.__kwdefaults__ or hasattr(own, "__wrapped__"):
        raise CannotReplayError(
            f"{stacked.name} is no plain function, so that it cannot be made again with another axis."
        )
    tree = ast.parse(textwrap.dedent(inspect.getsource(own)))
    calls = list(find_stacks(tree, {name for name, value in own.__globals__.items() if value is tf}))
    if len(calls) != len(stacked.calls):
        raise CannotReplayError(f"{stacked.name} stacks something else than its source says.")
    for call in calls:
        call.keywords.append(ast.keyword("axis", ast.Constant(-1)))
    file, text = f"<{own.__name__} of batches>", ast.unparse(ast.fix_missing_locations(tree))
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    scope = {**own.__globals__, **inspect.getclosurevars(own).nonlocals}
    flags = own.__code__.co_flags & __future__.annotations.compiler_flag
    exec(compile(text, file, "exec", flags, dont_inherit=True), scope)  # noqa: S102 - the user's own function
    changed: Callable[..., Any] = scope[own.__name__]
    return changed


def _called(dataset: Any, inserted: Insert) -> Any:
    if inserted.method != "with_options":
        return getattr(dataset, inserted.method)(**inserted.arguments)
    options = tf.data.Options()
    for name, value in inserted.arguments.items():
        group, _, option = name.partition(".")
        setattr(getattr(options, group), option, value)
    return dataset.with_options(options)


@dataclass(frozen=True)
class _Moved:
    note: Note
    made_by: Any
    edits: _CallEdits
    then: str

    def make(self, inputs: tuple[Any, ...]) -> Any:
        made = ReplayedCall(self.note, self.made_by, inputs).again(*inputs, **self.edits.arguments)
        return getattr(made, self.then)() if self.then else made


@dataclass(frozen=True)
class _First:
    """The first part of a map's function, which is made before a shuffle."""

    note: Note
    made_by: Any
    edits: _CallEdits

    def make(self, inputs: tuple[Any, ...]) -> Any:
        return self.edits.make_first(ReplayedCall(self.note, self.made_by, inputs), inputs)


class _Plan:
    def __init__(self, dataset: Any, notes: Mapping[int, Note]) -> None:
        self._dataset, self._notes = dataset, notes
        self.edits: defaultdict[int, _CallEdits] = defaultdict(_CallEdits)

    def add(self, edit: CallEdit) -> None:
        mine = self.edits[edit.call]
        match edit:
            case SetArgument():
                mine.arguments[edit.name] = edit.value
            case Insert():
                mine.then.append(edit)
            case Remove():
                mine.stays = False
            case Rename():
                mine.method = edit.method
            case InBatches():
                mine.at_a_time = edit.size
            case Split():
                mine.parts, mine.is_kept_before = edit.parts, edit.before is not None
                if edit.before is not None:
                    note = self._notes[edit.call]
                    self.edits[edit.before].first.append(_First(note, _made_by(self._dataset, note), mine))
            case MoveBefore():
                mine.stays = False
                note = self._notes[edit.call]
                self.edits[edit.before].stacked = edit.stacked
                self.edits[edit.before].first.append(_Moved(note, _made_by(self._dataset, note), mine, edit.then))
            case _:
                assert_never(edit)


def _made_by(dataset: Any, note: Note) -> Any:
    """Return how the dataset of a note was made, which a dataset is made of."""
    for each in _upstream(dataset, set()):
        if note_of(each) is note and MADE_BY in vars(each):
            return vars(each)[MADE_BY]
    raise CannotReplayError(f"The call of {note.method} is inside of a function, where calls keep their order.")


def _upstream(dataset: Any, seen: set[int]) -> Iterator[Any]:
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    yield dataset
    made_by = vars(dataset).get(MADE_BY)
    if made_by is not None:
        given = made_by.signature.bind_partial(*made_by.arguments, **made_by.options).arguments
        for value in given.values():
            for below in datasets_in(value):
                yield from _upstream(below, seen)
