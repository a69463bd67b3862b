"""Makes a dataset of the script again, in the same process, with changes at some of its calls.

Each call is made again as it was, so that nothing is shared with the script's own iterators: shuffles draw their own order,
caches fill by themselves, functions are traced again. Data that a source was made of is shared, and so is a dataset that was
made in a way that is not known. A cache in a file takes the same file unless an edit names another one.
"""

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.worker.recipe import notes
from pipeline_lab.worker.recipe.notes import MADE_BY, MadeBy, Note, note_of
from pipeline_lab.worker.recipe.places import write_site
from pipeline_lab.worker.recipe.wrapping import current_graph, datasets_in, finish, key_of, leave, stack


class CannotReplayError(PipelineLabError):
    """A dataset of the script cannot be made again."""


class ReplayedCall:
    """A call that is about to be made again.

    Attributes:
        note: Of the call of the script.
        inputs: The datasets that it takes, made again already.
    """

    def __init__(self, note: Note, made_by: MadeBy, inputs: Sequence[Any]) -> None:
        self.note, self.inputs, self._made_by = note, tuple(inputs), made_by
        self._given = made_by.signature.bind_partial(*made_by.arguments, **made_by.options).arguments

    @property
    def method(self) -> str:
        """Of ``tf.data.Dataset``, or the class that was called."""
        return self.note.method

    @property
    def arguments(self) -> dict[str, Any]:
        """What the script gave, by parameter, without datasets."""
        return {name: value for name, value in self._given.items() if not any(datasets_in(value))}

    def again(self, *inputs: Any, **arguments: Any) -> Any:
        """Make the call.

        Args:
            inputs: Datasets to take instead of its own; one for each of them.
            arguments: Values that replace what the script gave.
        """
        made_by = self._made_by
        given = made_by.signature.bind_partial(*made_by.arguments, **made_by.options)
        instead = iter(inputs or self.inputs)
        for name, value in given.arguments.items():
            given.arguments[name] = _exchange(value, instead)
        if unknown := set(arguments) - set(made_by.signature.parameters):
            raise CannotReplayError(f"{_words(self.note)} takes no {', '.join(sorted(unknown))}.")
        given.arguments.update(arguments)
        note = Note(self.note.method, self.note.site, current_graph())
        note.is_again = True
        stack.notes.append(note)
        try:
            made = made_by.function(*given.args, **given.kwargs)
        except BaseException:
            leave(note)
            raise
        note.is_again = False
        finish(note, made, MadeBy(made_by.function, made_by.signature, given.args, given.kwargs))
        return made


Edit = Callable[[ReplayedCall], Any]
"""Returns the dataset that stands for a call's: ``call.again(num_parallel_calls=2)``, ``call.inputs[0]`` to leave it out."""


def replay(dataset: Any, edits: Mapping[Note, Edit]) -> Any:
    """Make a dataset again.

    Args:
        dataset: Of the script.
        edits: What to do at some of its calls, those inside of functions among them (``note.upstream()``, ``note.made``).

    Raises:
        CannotReplayError: One of the calls cannot be made again, or an edit does not suit it.
    """
    if current_graph() is not None:
        raise CannotReplayError("A dataset inside a function cannot be made again; make it outside of tf.function.")
    unused = set(edits)
    inner: dict[object, Callable[[Note, MadeBy], Any]] = {}
    inner |= {(note.method, key_of(note.site)): _inside(note, edit, unused) for note, edit in edits.items()}
    with _random_state_kept(), _edits_inside(inner):
        made = _Replay(edits, unused).make(dataset)
    if unused:
        methods = ", ".join(sorted(note.method for note in unused))
        raise CannotReplayError(
            f"No call of {methods} was met again; the function around it may not have made it this time."
        )
    return made


def keep_calls(*, keeps: bool = True) -> None:
    """Keep the datasets that are read from now on, so that they can be made again after the script has dropped them."""
    notes.keep_datasets(keeps=keeps)


@dataclass
class _Replay:
    edits: Mapping[Note, Edit]
    unused: set[Note]

    def __post_init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._is_new: set[int] = set()

    def make(self, dataset: Any) -> Any:
        if id(dataset) not in self._made:
            self._made[id(dataset)] = self._make(dataset)
        return self._made[id(dataset)]

    def _make(self, dataset: Any) -> Any:
        note, made_by = note_of(dataset), vars(dataset).get(MADE_BY)
        if made_by is None:
            return self._share(dataset, note)
        inputs = [self.make(below) for value in _values(made_by) for below in datasets_in(value)]
        call = ReplayedCall(note, made_by, inputs)
        self.unused.discard(note)
        try:
            return self.edits.get(note, ReplayedCall.again)(call)
        except CannotReplayError:
            raise
        except Exception as error:  # of the user's function or of TensorFlow
            raise CannotReplayError(f"{_words(note)} cannot be made again: {type(error).__name__}: {error}") from error

    def _share(self, dataset: Any, note: Note) -> Any:
        """Take the script's own dataset, where it is nothing but data, or made in a way that is not known."""
        if note in self.edits:
            raise CannotReplayError(f"{_words(note)} cannot be changed: what it was given is not kept.")
        if any(below in self.edits for below in note.upstream()):
            raise CannotReplayError(
                f"{_words(note)} was made in a way that is not known, so nothing before it can be changed."
            )
        return dataset


def _inside(note: Note, edit: Edit, unused: set[Note]) -> Callable[[Note, MadeBy], Any]:
    def make(_met: Note, made_by: MadeBy) -> Any:
        unused.discard(note)
        return edit(ReplayedCall(note, made_by, [below for value in _values(made_by) for below in datasets_in(value)]))

    return make


def _values(made_by: MadeBy) -> Iterator[Any]:
    yield from made_by.signature.bind_partial(*made_by.arguments, **made_by.options).arguments.values()


def _exchange(value: Any, instead: Iterator[Any]) -> Any:
    """Return an argument with its datasets replaced, in the order of :func:`datasets_in`."""
    if hasattr(type(value), "_variant_tensor"):
        return next(instead)
    if not any(datasets_in(value)):
        return value
    if isinstance(value, Mapping):
        return type(value)({name: _exchange(each, instead) for name, each in value.items()})  # type: ignore[call-arg]
    items = [_exchange(each, instead) for each in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _words(note: Note) -> str:
    if note.site is None:
        return f".{note.method}(…)"
    written = write_site(note.site, note.method)
    return f"{written.place} {written.text or note.method}"


@contextlib.contextmanager
def _edits_inside(edits: Mapping[object, Callable[[Note, MadeBy], Any]]) -> Iterator[None]:
    before, stack.edits, stack.until = (stack.edits, stack.until), edits, ReplayedCall.again.__code__
    try:
        yield
    finally:
        stack.edits, stack.until = before


@contextlib.contextmanager
def _random_state_kept() -> Iterator[None]:
    """Leave the seeds that the script's next operations get as they are; those of datasets are drawn from them."""
    from tensorflow.python.eager import context

    drawn = getattr(context.context(), "_rng", None)
    kept = None if drawn is None else drawn.getstate()
    numpy = sys.modules["numpy"].random
    own, of_numpy = random.getstate(), numpy.get_state()
    try:
        yield
    finally:
        random.setstate(own)
        numpy.set_state(of_numpy)
        if drawn is not None:
            drawn.setstate(kept)
