"""What is noted of each dataset while the script runs, and the recipe that is made of it.

A note hangs on its dataset and goes with it; only notes of datasets that were read are kept.
"""

import inspect
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from types import FrameType
from typing import Any, NamedTuple

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.recipe import (
    ADAPTING,
    EVALUATION,
    LOOP,
    PREDICTION,
    TRAINING,
    VALIDATION,
    DatasetCall,
    DatasetUse,
    PythonPart,
    Recipe,
    UserFunction,
)
from pipeline_lab.worker.recipe.places import CallSite, source_of, write_site

MAX_USES = 100
"""Places that datasets are read at; those not read for longest are forgotten, so that a loop that writes code cannot fill the memory."""
NOTE = "_pipeline_lab_note"
"""Attribute of a dataset that holds its note."""
STAND_INS = frozenset({"VariantDataset", "PerDeviceGenerator", "ReincarnatedPerDeviceGenerator"})
"""What stands for a dataset inside of a function and on a device; that dataset's own reading is noted."""
MADE_BY = "_pipeline_lab_made_by"
"""Attribute of a dataset that holds what makes it again."""


@dataclass(frozen=True)
class NotedPython:
    """Python that runs inside a call's function; see :class:`~pipeline_lab.pipeline.recipe.PythonPart`."""

    kind: str
    function: UserFunction
    site: CallSite | None
    maker: int | None = None
    calls: UserFunction | None = None


@dataclass(frozen=True, eq=False)
class MadeBy:
    """The call that made a dataset, as it was; it hangs on the dataset and goes with it.

    Attributes:
        function: A method without its wrapper, or a class.
        signature: Of the function.
        arguments, options: That it was given.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]

    def __deepcopy__(self, _memo: object) -> "MadeBy":
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


_keeps = False


def keep_datasets(*, keeps: bool = True) -> None:
    """Keep each dataset that is read from now on as long as its note, so that it can be made again after the script dropped it."""
    global _keeps
    _keeps = keeps


class Note:
    """One call that made a dataset, as it is noted while the script runs; fields as of ``DatasetCall``.

    Attributes:
        inputs: Notes of the datasets that it takes.
        graph: That was being built; None in eager code.
        made: Notes of datasets that its functions make.
        is_again: The call is made again, by :mod:`pipeline_lab.worker.recipe.replaying`.
    """

    __slots__ = (
        "_dataset",
        "arguments",
        "graph",
        "inputs",
        "is_again",
        "is_understood",
        "made",
        "method",
        "nodes",
        "python",
        "site",
        "stateful",
    )

    def __init__(self, method: str, site: CallSite | None, graph: object = None, *, is_understood: bool = True) -> None:
        self.method, self.site, self.graph, self.is_understood = method, site, graph, is_understood
        self.arguments: dict[str, Any] = {}
        self.inputs: list[Note] = []
        self.made: list[Note] = []
        self.nodes: list[str] = []
        self.python: list[NotedPython] = []
        self.stateful: tuple[str, ...] = ()
        self.is_again = False
        self._dataset: Callable[[], Any] = lambda: None

    @property
    def dataset(self) -> Any:
        """The dataset; None once the script has dropped it, unless datasets are kept."""
        return self._dataset()

    def hang_on(self, dataset: Any) -> None:
        """Make it the dataset's note."""
        vars(dataset)[NOTE] = self
        self._dataset = (lambda: dataset) if _keeps else weakref.ref(dataset)

    @property
    def inner(self) -> "Note | None":
        """The dataset that its function returns: the last one made there that no other takes."""
        taken = {id(below) for note in self.made for below in note.inputs}
        return next((note for note in reversed(self.made) if id(note) not in taken), None)

    def upstream(self) -> "Iterator[Note]":
        """Yield it and all that its dataset is made of."""
        yield self
        for below in self.inputs:
            yield from below.upstream()

    def __deepcopy__(self, _memo: object) -> "Note":
        return self

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # a copy in another process has none


UNSEEN = "unseen"
"""Stands for the operations of a dataset's functions that nobody looked at."""


def note_of(dataset: Any) -> Note:
    """Return the note of a dataset; a new one with its class alone where nothing was noted."""
    found = vars(dataset).get(NOTE)
    if isinstance(found, Note):
        return found
    note = Note(type(dataset).__name__.strip("_"), None, is_understood=False)
    note.stateful = (UNSEEN,)
    note.inputs = [note_of(each) for each in dataset._inputs()]
    note.hang_on(dataset)
    return note


@dataclass(frozen=True)
class UseFacts:
    """What is asked of a dataset when it is first read; see :class:`~pipeline_lab.pipeline.recipe.DatasetUse`."""

    pool_threads: int | None = None
    length: int | None = None
    reads_state: bool = False

    def beside(self, other: "UseFacts") -> "UseFacts":
        """Return the facts of a later dataset at the same line; its length is known only if all lengths there are, and any may read state."""
        length = None if self.length is None else other.length
        return UseFacts(other.pool_threads, length, self.reads_state or other.reads_state)


class UseKey(NamedTuple):
    """What tells a use apart from others.

    Attributes:
        role: What for.
        read_at: Key of the site; None where nobody knows.
        made_at: The same of all calls that make the dataset.
        method: The last call.
    """

    role: str
    read_at: tuple[object, ...] | None
    made_at: frozenset[tuple[object, ...]]
    method: str


@dataclass(eq=False)
class TrainedSteps:
    """Steps of a loop in which gradients were taken, as they are counted."""

    count: int = 0


@dataclass
class _Use:
    role: str
    site: CallSite | None
    note: Note
    facts: UseFacts
    carried_over: str | None = None
    iterators: int = 0
    read: int = 0
    """When it was read last, in iterators of all uses."""
    seconds: float = 0.0
    trained: TrainedSteps = field(default_factory=TrainedSteps)


class Ledger:
    """The datasets that were read, and where."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: dict[UseKey, _Use] = {}
        self._reads = 0
        self._latest: _Use | None = None
        self._since_s = 0.0
        self.version = 0
        """Raised whenever a dataset is read at a new place."""

    def add_use(
        self, note: Note, role: str, site: CallSite | None, ask: Callable[[], UseFacts], carried_over: str | None = None
    ) -> UseKey:
        """Note that a dataset is iterated over; facts about it are asked for at the first time, but for what may come with each epoch."""
        made_at = frozenset(each.site.key for each in note.upstream() if each.site is not None)
        key = UseKey(role, None if site is None else site.key, made_at, note.method)
        with self._lock:
            use = self._uses.get(key)
            if use is None:
                if len(self._uses) >= MAX_USES:
                    del self._uses[min(self._uses, key=lambda each: self._uses[each].read)]
                use = self._uses[key] = _Use(role, site, note, ask())
                self.version += 1
            elif use.note is not note:  # another dataset, read at the same line
                use.facts = use.facts.beside(ask())
            if role != VALIDATION:  # that is a part of the training, which goes on afterwards
                self._count_time()
                self._latest = use
            if carried_over is not None:
                use.carried_over = use.carried_over or carried_over
            use.note = note  # the latest one, which the latest trace names
            use.iterators += 1
            self._reads += 1
            use.read = self._reads
        return key

    def find_steps(self, note: Note) -> TrainedSteps | None:
        """Return the count of the use in which a dataset was read last; None where that was not noted."""
        with self._lock:
            used = [use for use in self._uses.values() if use.note is note]
            self.version += 1
        return max(used, key=lambda use: use.read).trained if used else None

    def steps_of(self, key: UseKey) -> TrainedSteps:
        """Return the count of a use that was noted just now."""
        with self._lock:
            self.version += 1
            return self._uses[key].trained

    def _count_time(self) -> None:
        now_s = time.monotonic()
        if self._latest is not None:
            self._latest.seconds += now_s - self._since_s
        self._since_s = now_s

    def recipe(self) -> Recipe:
        """Write all of it down, with places and texts read from the source."""
        return self.noted()[0]

    def noted(self) -> tuple[Recipe, dict[int, Note]]:
        """Return the recipe, and the note of each of its calls by number."""
        with self._lock:
            self._count_time()
            uses = [replace(use) for use in self._uses.values()]
        writer = _Writer(uses)
        return writer.write(), writer.notes


class _Writer:
    def __init__(self, uses: Iterable[_Use]) -> None:
        self._uses = tuple(uses)
        self._numbers: dict[int, int] = {}
        self._calls: list[DatasetCall] = []
        self.notes: dict[int, Note] = {}

    def write(self) -> Recipe:
        uses = tuple(self._write_use(use) for use in self._uses)
        return Recipe(tuple(self._calls), uses)

    def _write_use(self, use: _Use) -> DatasetUse:
        written = None if use.site is None else write_site(use.site, use.role)
        return DatasetUse(
            use.role,
            self._write(use.note),
            None if written is None else written.place,
            "" if written is None else written.text,
            use.iterators,
            use.facts.pool_threads or None,
            round(use.seconds, 3),
            use.facts.length,
            use.facts.reads_state,
            use.trained.count,
            use.carried_over,
        )

    def _write(self, note: Note) -> int:
        if (known := self._numbers.get(id(note))) is not None:
            return known
        inputs = tuple(self._write(below) for below in note.inputs)
        inner = None if note.inner is None else self._write(note.inner)
        number = self._numbers[id(note)] = len(self._calls) + 1
        self.notes[number] = note
        site = note.site
        written = None if site is None else write_site(site, note.method)
        self._calls.append(
            DatasetCall(
                number=number,
                method=note.method,
                arguments=note.arguments,
                inputs=inputs,
                inner=inner,
                place=None if written is None else written.place,
                text="" if written is None else written.text,
                is_direct=site is None or site.is_direct,
                is_understood=note.is_understood,
                nodes=tuple(note.nodes),
                python=tuple(_write_python(part) for part in note.python),
                stateful=note.stateful,
            )
        )
        return number


def _write_python(part: NotedPython) -> PythonPart:
    place = None if part.site is None else write_site(part.site, part.kind).place
    return PythonPart(part.kind, part.function, place, part.maker, part.calls)


_KERAS_ROLES = {"fit": TRAINING, "evaluate": EVALUATION, "predict": PREDICTION, "adapt": ADAPTING}


def role_of(frame: FrameType | None) -> str:
    """Say what an iterator is made for, from the functions of Keras that led to it."""
    roles = [
        _KERAS_ROLES[code.co_name]
        for code in _codes(frame)
        if code.co_name in _KERAS_ROLES and "keras" in code.co_filename
    ]
    if not roles:
        return LOOP
    return VALIDATION if roles[0] == EVALUATION and TRAINING in roles else roles[0]


def _codes(frame: FrameType | None) -> Iterator[Any]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


_numbers = itertools.count(10**6)
"""Numbers of named datasets; those that TensorFlow names itself begin at 0."""


def take_number() -> int:
    """Return a number that is larger than those in the names of all datasets so far."""
    return next(_numbers)


def name_node(dataset: Any) -> str:
    """Return a new name of a dataset for traces, of the form of TensorFlow's own: ``MapDataset:1000000``."""
    return f"{type(dataset).__name__.strip('_')}:{next(_numbers)}"


def files_of(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield the user's files that a recipe speaks of, and their text, each once."""
    places = [
        *(call.place.file for call in recipe.calls if call.place),
        *(use.place.file for use in recipe.uses if use.place),
        *(part.function.file for call in recipe.calls for part in call.python),
        *(_function_file(value) for call in recipe.calls for value in call.arguments.values()),
    ]
    for file in dict.fromkeys(filter(None, places)):
        if text := source_of(file):
            yield file, text


def _function_file(value: Any) -> str:
    return str(value.get("file", "")) if isinstance(value, dict) and "function" in value else ""
