"""The calls behind a dataset that was read: which of them the user can change, and which give the same elements each time."""

from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from itertools import takewhile

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.changes import Edit
from pipeline_lab.pipeline.recipe import LOOP, DatasetCall, DatasetUse, Recipe

_MIXED = frozenset({"shuffle_and_repeat", "sample_from_datasets", "rejection_resample", "random"})
"""Calls that a cache of the whole data cannot follow."""
_OF_ITS_INPUT = frozenset(
    {"MapDataset", "ParallelMapDataset", "FlatMapDataset", "InterleaveDataset", "ParallelInterleaveDataset"}
)
"""Datasets that a library's function makes without a method, as ``make_csv_dataset`` does; their functions tell whether they are pure."""
OF_PYTHON = frozenset({"PyFunc", "EagerPyFunc"})
"""Operations of which only the proof tells whether they give the same each time."""


_RANDOM = ("Random", "Multinomial", "TruncatedNormal", "ParameterizedTruncatedNormal", "StatefulRandom", "StatefulUniform", "StatefulStandardNormal", "StatefulTruncatedNormal", "SampleDistortedBoundingBox")  # fmt: skip


def is_random(operation: str) -> bool:
    """Say whether an operation of TensorFlow draws random numbers."""
    return operation.startswith(_RANDOM)


def is_seeded(operations: Iterable[str]) -> bool:
    """Say whether one of them draws from a seed that is set."""
    return any("(seeded)" in each for each in operations)


class Doubt(Enum):
    """What may make the elements of a call others in each epoch.

    A shuffle of file names or inside of a library's function, or one of the user's, whose order a cache would keep; or Python.
    """

    ORDER = "order"
    OWN_SHUFFLE = "own shuffle"
    PYTHON = "python"


def remembers(call: DatasetCall) -> bool:
    """Say whether it matters to a later pass of a call, or to others that take its dataset, that it has been read before."""
    return call.method in (*_MIXED, "shuffle", "cache", "snapshot") or bool(call.stateful) or bool(call.python)


def _mixes_anew(call: DatasetCall) -> bool:
    """Say whether a call mixes its elements in another way each time, or without an end: sampling from a seed of its own does not."""
    is_seeded = call.arguments.get("seed") is not None and not call.arguments.get("rerandomize_each_iteration")
    return call.method in _MIXED and not (call.method == "sample_from_datasets" and is_seeded)


@dataclass(frozen=True)
class Chain:
    """The calls behind a dataset that was read, first the source.

    Attributes:
        recipe: Of the script.
        use: The reading.
        last: Number of the call that it ends with; 0 for that of the use.
    """

    recipe: Recipe
    use: DatasetUse
    last: int = 0

    @cached_property
    def calls(self) -> tuple[DatasetCall, ...]:
        """The calls, each of which takes the dataset of the one before it; a call of several datasets begins a chain."""
        found, number = [], self.last or self.use.call
        while True:
            call = self.recipe.call(number)
            found.append(call)
            if len(call.inputs) != 1:
                return tuple(reversed(found))
            number = call.inputs[0]

    @cached_property
    def branches(self) -> tuple["Chain", ...]:
        """The chains of what ``zip`` takes, which this one begins with, and of what is zipped there.

        A reading takes elements of all of them from the start, which it does not of what ``concatenate`` and its kin are made of.
        """
        found: dict[int, Chain] = {}
        left = [self]
        while left:
            first = left.pop().calls[0]
            for number in first.inputs if first.method == "zip" else ():
                if number not in found:
                    found[number] = Chain(self.recipe, self.use, number)
                    left.append(found[number])
        return tuple(found.values())

    @cached_property
    def direct(self) -> tuple[DatasetCall, ...]:
        """Those that the user wrote, whose arguments can be changed."""
        return tuple(call for call in self.calls if call.is_direct and call.is_understood and call.place is not None)

    def consumer(self, call: DatasetCall) -> DatasetCall | None:
        """Return the call that takes a call's dataset; None at the end."""
        return next((each for each in self.calls if call.number in each.inputs), None)

    def upstream(self, call: DatasetCall) -> tuple[DatasetCall, ...]:
        """Return all that a call's dataset is made of, itself and what functions return included."""
        return tuple(self.recipe.upstream(call.number))

    @cached_property
    def ends(self) -> tuple[DatasetCall, ...]:
        """The calls after which the user can put another: their own, and the last one of each library's function."""
        found = []
        for call in self.calls:
            after = self.consumer(call)
            is_last = (after is None or after.is_direct) and not self._is_the_readers(call)
            if call.is_understood and call.place is not None and (call.is_direct or is_last):
                found.append(call)
        return tuple(found)

    def _is_the_readers(self, call: DatasetCall) -> bool:
        """Say whether Keras makes a call's dataset of what ``fit`` is given, so that the user never holds it."""
        return self.use.role != LOOP and call.place is not None and call.place == self.use.place

    def is_pure(self, call: DatasetCall) -> bool:
        """Say whether a call and all before it give the same elements each time, and those end."""
        return self.doubts(call) == frozenset()

    def until_repeated(self, call: DatasetCall) -> tuple[DatasetCall, ...]:
        """Return a call and those after it, up to the one that begins with the data again."""
        later = self.calls[self.calls.index(call) :]
        return tuple(takewhile(lambda each: each.method != "repeat" or each.arguments.get("count") == 1, later))

    def doubts(self, call: DatasetCall) -> frozenset["Doubt"] | None:
        """Say what may make the elements of a call others in each epoch; None where something certainly does, or they do not end."""
        found: set[Doubt] = set()
        for each in self.upstream(call):
            is_known = each.is_understood or (not each.is_direct and each.method in _OF_ITS_INPUT)
            if not is_known or _mixes_anew(each) or any(op not in OF_PYTHON for op in each.stateful):
                return None
            if each.is_direct and each.method == "repeat":  # a cache belongs before it
                return None
            if each.is_direct and each.method == "shuffle":
                found.add(Doubt.OWN_SHUFFLE)
            elif each.method == "shuffle" or (
                each.method == "list_files" and each.arguments.get("shuffle") is not False
            ):
                found.add(Doubt.ORDER)
            if each.python or each.stateful or each.method == "from_generator":
                found.add(Doubt.PYTHON)
        return frozenset(found) if self._is_finite(call) else None

    @property
    def beside(self) -> tuple[DatasetUse, ...]:
        """Readings of other datasets by the line that reads this one, or of this one for something else."""
        mine = self.use.call, self.use.role
        return tuple(
            each for each in self.recipe.uses if each.place == self.use.place and (each.call, each.role) != mine
        )

    @property
    def elsewhere(self) -> tuple[DatasetUse, ...]:
        """All other readings, but for a look at the data before."""
        uses = self.recipe.uses
        before = uses[: uses.index(self.use)] if self.use in uses else ()
        return tuple(each for each in uses if each != self.use and not (each in before and each.iterators == 1))

    def is_shared(self, others: Iterable[DatasetUse]) -> bool:
        """Say whether other readings read, too, what this dataset shuffles, draws or keeps, or run Python as it does, which may share a state."""
        mine = {call.number: call for call in self.recipe.upstream(self.use.call)}
        theirs = [call for use in others for call in self.recipe.upstream(use.call)]
        both_run_python = all(any(call.python for call in calls) for calls in (mine.values(), theirs))
        return both_run_python or any(remembers(call) for call in theirs if call.number in mine)

    def _is_finite(self, call: DatasetCall) -> bool:
        """Say whether the elements of a call end; those of Python do where they were read to their end."""
        if call.method == "repeat" and call.arguments.get("count") in (None, -1):
            return False
        if call.method in ("take", "take_while"):
            return True
        if call.method == "from_generator" and self.use.iterators < 2:
            return False
        below = [self._is_finite(self.recipe.call(number)) for number in call.inputs]
        return any(below) if call.method == "zip" else all(below)


@dataclass(frozen=True)
class RewritePlace:
    """A place in a chain where a rewrite applies.

    Attributes:
        call: That it is about; None for the training.
        edits: What is done.
        words: The same as a sentence.
        also: What else changes, a sentence each.
    """

    call: DatasetCall | None
    edits: tuple[Edit, ...]
    words: str
    also: tuple[str, ...] = ()


def said_at(call: DatasetCall) -> str:
    return f"{call.words} ({call.place})" if call.place else call.words
