"""Changes of a script's pipelines: what is done to which calls of its recipe, and what that does to the examples.

A change is made of a few primitive edits, each of which can be written into the source
(:mod:`pipeline_lab.pipeline.source_edits`) and replayed on the datasets of the running script. Edits name calls by their
numbers in the recipe of the script as it is, also where several changes are made together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import field, replace
from enum import Enum
from typing import TypeAlias, assert_never

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.function_parts import FunctionParts
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe, SourcePlace
from pipeline_lab.pipeline.stacked_functions import StackedFunction

AUTOTUNE = -1
"""``tf.data.AUTOTUNE`` as an argument of a call."""
OF_ANY_ELEMENTS = frozenset({"prefetch", "with_options"})
"""Calls that hand on whatever they get; they may stand where a dataset is read."""

KEEPING = frozenset({"cache", "snapshot"})
"""Calls that keep elements for later passes."""

Value: TypeAlias = bool | int | float | str | None


class Effect(Enum):
    """What a change does to the examples that the model sees; the value says it."""

    NOTHING = "the same elements in the same order"
    STEP = "the same once the training step has begun"
    PREDICTIONS = "the same predictions"
    ORDER = "the same examples in another order"
    CONTENT = "other examples"


class Risk(Enum):
    """How much has to be thought over before a change: nothing, memory or reproducibility, what the model learns from."""

    LOW = "low risk"
    SOME = "some risk"
    HIGH = "high risk"


@dataclass(frozen=True)
class SetArgument:
    """Give a call an argument, or another value for one that it has."""

    call: int
    name: str
    value: Value


@dataclass(frozen=True)
class Insert:
    """Call a method of the dataset that a call made, before anything else reads that dataset.

    Where the call itself moves upstream, it is the dataset at the place that it leaves.
    """

    after: int
    method: str
    arguments: Mapping[str, Value] = field(default_factory=dict)

    @property
    def call(self) -> int:
        return self.after


THREADS, AUTOTUNER = "threading.private_threadpool_size", "autotune.enabled"
"""Options that ``with_options`` sets, as the arguments of its :class:`Insert`: the threads that run functions, and whether tf.data tunes itself."""


@dataclass(frozen=True)
class Remove:
    """Leave a call out."""

    call: int


@dataclass(frozen=True)
class MoveBefore:
    """Move a call upstream, directly before another one of the same chain.

    Attributes:
        call: That moves.
        before: The other one.
        then: Method that is called of what it makes there, if any.
        stacked: The function of the other one, where it has to stack along the last axis from then on.
    """

    call: int
    before: int
    then: str = ""
    stacked: StackedFunction | None = None


@dataclass(frozen=True)
class Rename:
    """Call another method with the same arguments."""

    call: int
    method: str


@dataclass(frozen=True)
class InBatches:
    """Let a generator hand its elements over in batches, which are split up again after it."""

    call: int
    size: int


@dataclass(frozen=True)
class Split:
    """Let a map's function end before it draws at random, keep in memory what it has made by then, and map the rest of it.

    Attributes:
        call: The map.
        parts: Of its function.
        before: The shuffle that the map takes, before which the first part is mapped and kept; None where it takes none.
    """

    call: int
    parts: FunctionParts
    before: int | None = None


@dataclass(frozen=True)
class SetTraining:
    """Give the training an argument: ``steps_per_execution`` of ``compile``, or ``workers`` of a ``PyDataset`` or ``Sequence``."""

    name: str
    value: Value


@dataclass(frozen=True)
class OneIterator:
    """Let one iterator serve all epochs: it goes through the dataset repeated without an end, an epoch's elements at a time.

    Attributes:
        is_closed: Nothing that callbacks, or a loop, may change between epochs is read by the dataset's functions.
        of_loop: A loop of the script's own goes through the dataset, instead of ``fit``.
    """

    is_closed: bool = True
    of_loop: bool = False


@dataclass(frozen=True)
class IntoStep:
    """Call the function of a map in the training step, on whole batches, instead of in the pipeline.

    Attributes:
        call: The map.
    """

    call: int


CallEdit: TypeAlias = SetArgument | Insert | Remove | MoveBefore | Rename | InBatches | Split
TrainingEdit: TypeAlias = SetTraining | OneIterator | IntoStep
Edit: TypeAlias = CallEdit | TrainingEdit


@dataclass(frozen=True)
class Change:
    """What a rewrite does to one script.

    Attributes:
        rewrite: Key of the rewrite in the registry.
        call: Number of the call that it is about; None where it is about the training.
        edits: What is done.
        effect: What it does to the examples, as declared; a proof tells whether that holds.
        risk: See :class:`Risk`.
        words: What is done, a sentence with its place.
        also: What else it changes, a sentence each.
        place: Where its call stands in the source, or what trains; None where nobody knows.
        nth: Which call of its line it is about, from 1; None where the line alone tells.
    """

    rewrite: str
    call: int | None
    edits: tuple[Edit, ...]
    effect: Effect
    risk: Risk
    words: str
    also: tuple[str, ...] = ()
    place: SourcePlace | None = None
    nth: int | None = None

    @property
    def cannot_race(self) -> bool:
        """Whether pipelines cannot differ in it that share one training: it changes how that runs, or hides what they have buffered."""
        return any(isinstance(edit, TrainingEdit) or stops_tuning(edit) for edit in self.edits)

    @property
    def joins_epochs(self) -> bool:
        """Whether the dataset goes on with the next epoch where it ended before."""
        return any(isinstance(edit, OneIterator) for edit in self.edits)

    @property
    def stops_tuning(self) -> bool:
        """Whether it turns tf.data's autotuner off."""
        return any(map(stops_tuning, self.edits))

    @property
    def fills_step(self) -> bool:
        """Whether the training step does what a map did before."""
        return any(isinstance(edit, IntoStep) for edit in self.edits)

    @property
    def request(self) -> str:
        """How it is asked for on the command line."""
        if self.rewrite == "pool":
            return next(
                f"{name.rpartition('.')[2]}={value}"
                for edit in self.edits
                if isinstance(edit, Insert)
                for name, value in edit.arguments.items()
            )
        settings = [edit for edit in self.edits if isinstance(edit, (SetArgument, SetTraining))]
        what = f"{settings[0].name}={settings[0].value}" if self.rewrite == "set" and settings else self.rewrite
        if self.call is None or self.place is None:
            return what
        return f"{self.place}{'' if self.nth is None else f'{NTH}{self.nth}'} {what}"


def stops_tuning(edit: Edit) -> bool:
    """Say whether an edit turns tf.data's autotuner off."""
    return isinstance(edit, Insert) and AUTOTUNER in edit.arguments


NTH = "#"
"""Between a line and which of its calls is meant: ``train.py:41#2``."""


def nth_of_line(recipe: Recipe, call: DatasetCall) -> int:
    """Return which call of its line a call is, from 1, in the order in which the source has them."""
    assert call.place is not None
    of_line = {
        (one.place.end_line, one.place.end_column or 0)
        for one in recipe.calls
        if one.place is not None and (one.place.file, str(one.place)) == (call.place.file, str(call.place))
    }
    return sorted(of_line).index((call.place.end_line, call.place.end_column or 0)) + 1


def told_apart(recipe: Recipe, changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return changes so that no two are asked for in the same words."""
    given = tuple(changes)
    asked = Counter(change.request for change in given)
    return tuple(
        replace(change, nth=nth_of_line(recipe, recipe.call(change.call)))
        if change.call is not None and change.place is not None and asked[change.request] > 1
        else change
        for change in given
    )


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits as they are made: what hands on whatever it gets comes last, behind a cache at the same place.

    One iterator for all epochs repeats what a cache keeps, which would have no end the other way around.
    """

    def place(edit: Edit) -> int:
        if isinstance(edit, Insert) and edit.method in OF_ANY_ELEMENTS:
            return 2
        return int(isinstance(edit, OneIterator))

    return sorted(edits, key=place)


def calls_of(edits: Iterable[Edit]) -> Iterator[int]:
    """Yield the numbers of the calls that edits touch."""
    for edit in edits:
        if isinstance(edit, (SetTraining, OneIterator)):
            continue
        yield edit.call
        if isinstance(edit, (MoveBefore, Split)) and edit.before is not None:
            yield edit.before


def are_compatible(changes: Iterable[Change]) -> bool:
    """Say whether changes can be made together: nothing is set twice, a call that moves or goes is moved once, and one change that
    keeps elements is enough, as is one that is about the ends of iterators.
    """
    given = tuple(changes)
    edits = [edit for change in given for edit in change.edits]
    set_once = [_key(edit) for edit in edits]
    moving = (MoveBefore, Remove, Rename, Split, IntoStep)
    moved = [number for edit in edits if isinstance(edit, moving) for number in calls_of([edit])]
    torn = {edit.before for edit in edits if isinstance(edit, MoveBefore)}
    gone = {edit.call for edit in edits if isinstance(edit, (Remove, IntoStep))}
    is_torn = any(isinstance(edit, Insert) and edit.after in torn | gone for edit in edits)
    is_torn |= any(isinstance(edit, SetArgument) and edit.call in gone for edit in edits)
    keeping = sum(any(map(_keeps, change.edits)) for change in given)
    ending = sum(change.joins_epochs or change.stops_tuning for change in given)
    return (
        len(set(set_once)) == len(set_once)
        and len(set(moved)) == len(moved)
        and not is_torn
        and keeping < 2
        and ending < 2
    )


def _keeps(edit: Edit) -> bool:
    is_inserted = isinstance(edit, Insert) and edit.method in KEEPING
    return is_inserted or isinstance(edit, Split) or (isinstance(edit, MoveBefore) and edit.then == "cache")


def _key(edit: Edit) -> tuple[object, ...]:
    match edit:
        case SetArgument(call, name, _):
            return ("argument", call, name)
        case Insert(after, method, _):
            return ("insert", after, method)
        case SetTraining("steps_per_execution", _):
            return ("training", "steps")  # an epoch of a dataset without an end is a multiple of them
        case SetTraining(name, _):
            return ("training", name)
        case OneIterator():
            return ("training", "steps")
        case Remove(call) | MoveBefore(call) | Rename(call) | InBatches(call) | Split(call) | IntoStep(call):
            return (type(edit).__name__, call)
        case _:
            assert_never(edit)


def made_at_one_place(recipe: Recipe, number: int) -> tuple[DatasetCall, ...]:
    """Return the calls that one expression of the source made, the given one among them."""
    given = recipe.call(number)
    if given.place is None:
        return (given,)
    return tuple(call for call in recipe.calls if call.place == given.place and call.method == given.method)


def spread(recipe: Recipe, change: Change) -> Change:
    """Return the change for all calls that the same expressions made, as the source can only have it for all of them.

    A dataset that is inserted at one end of a chain stays where it is: see
    :func:`~pipeline_lab.pipeline.source_edits.edit_sources`.
    """
    edits: list[Edit] = []
    for edit in change.edits:
        if isinstance(edit, Split) and edit.before is not None:
            shuffles = {each.number for each in made_at_one_place(recipe, edit.before)}
            made = (each for each in made_at_one_place(recipe, edit.call) if each.number != edit.call)
            edits += [edit, *(replace(edit, call=each.number, before=_one_of(each.inputs, shuffles)) for each in made)]
        elif isinstance(edit, (SetArgument, Remove, Rename, InBatches, Split)):
            edits += [replace(edit, call=call.number) for call in made_at_one_place(recipe, edit.call)]
        else:
            edits.append(edit)
    return replace(change, edits=tuple(edits))


def _one_of(inputs: tuple[int, ...], numbers: Set[int]) -> int | None:
    """Return the input of a call that is among some numbers."""
    return next((each for each in inputs if each in numbers), None)
