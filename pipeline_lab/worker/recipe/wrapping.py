"""Wraps what makes datasets, so that each carries a note of the call that made it.

Methods of ``tf.data.Dataset`` and the classes of files are found by looking at TensorFlow, not by a list; what is made in
another way is noted by its class. Nothing that the user sees changes: not the types, not the results, not the errors; a
failure to note something leaves the dataset as it was.
"""

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from pipeline_lab.pipeline.recipe import UserFunction
from pipeline_lab.worker.recipe.notes import (
    MADE_BY,
    NOTE,
    STAND_INS,
    Ledger,
    MadeBy,
    Note,
    NotedPython,
    UseFacts,
    UseKey,
    name_node,
    note_of,
    role_of,
)
from pipeline_lab.worker.recipe.places import (
    CallSite,
    carried_over,
    describe_frame_owner,
    find_site,
    is_framework,
    is_users,
)
from pipeline_lab.worker.recipe.values import as_plain, function_of, method_of, reads_state, stateful_operations

_OTHERS = frozenset(
    {"apply", "as_numpy_iterator", "cardinality", "fingerprint", "get_single_element", "options", "reduce", "save"}
)
"""Methods that make no dataset of their own; the function of ``apply`` calls those that do."""
_UNNOTED = frozenset({"_VariantDataset", "_OptionsDataset"})
"""Made by TensorFlow around others, again and again."""
_LOOP_BODY = "ScanDataset"
"""What AutoGraph makes of a loop's body; what a script makes itself is noted by its method, ``scan``."""
_DATA = frozenset({"from_tensor_slices", "from_tensors"})
"""What they are given is large; nobody changes it."""
MAX_LOOKED_AT = 64
"""Items of a list that may be datasets; one of more, such as of file names, is told by its first."""
_MARK = "notes_for_pipeline_lab"
_NODE = "_pipeline_lab_node"
"""Attribute of a dataset that holds the name that it has in traces."""

ledger = Ledger()
"""Of this process."""


readers: list[Callable[[Any, UseKey, CallSite | None], None]] = []
"""Called with each dataset that is about to be read, what tells this use apart from others, and the place."""


class _Stack(threading.local):
    """Where a thread is.

    Attributes:
        notes: Of calls that have begun.
        nodes: Names that were given to a dataset before its call was known.
        edits: By method and site, what to do instead of calls that functions make, while datasets are made again.
        until: Code whose callers have no part in a call, while datasets are made again.
    """

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.nodes: list[str] = []
        self.edits: Mapping[object, Callable[[Note, MadeBy], Any]] = {}
        self.until: CodeType | None = None


stack = _Stack()


def note_datasets() -> None:
    """Wrap TensorFlow, which has to be loaded; a second call does nothing."""
    from tensorflow.python.data.ops import dataset_ops, multi_device_iterator_ops
    from tensorflow.python.ops import script_ops

    base = dataset_ops.DatasetV2
    if hasattr(base.__init__, _MARK):
        return
    _wrap_methods(base)
    _wrap_methods(dataset_ops.DatasetV1)
    for kind in _classes(base):
        kind.__init__ = _constructor(kind.__init__, _public_name(kind))
    base.__init__ = _creation(base.__init__)
    base._metadata = property(_naming(base._metadata.fget))
    base.reduce = _reading(base.reduce)
    spec = dataset_ops.DatasetSpec
    spec._to_components = _passing(spec._to_components)
    devices = multi_device_iterator_ops.OwnedMultiDeviceIterator
    devices.__init__ = _iteration(devices.__init__)
    script_ops._internal_py_func = _python_function(script_ops._internal_py_func)


def note_use(dataset: Any) -> None:
    """Note that an iterator is being made of a dataset; to be called where that happens."""
    with contextlib.suppress(Exception):
        dataset = _of_script(dataset)
        note = note_of(dataset)
        if any(each.method in STAND_INS for each in note.upstream()):
            return
        frame = sys._getframe(1)
        site = find_site(frame)
        ask = functools.partial(_facts_of, dataset)
        key = ledger.add_use(note, role_of(frame), site, ask, carried_over(frame))
        for read in readers:
            read(dataset, key, site)


def _of_script(dataset: Any) -> Any:
    """Return what a loop inside of a function goes over, without the stages that AutoGraph makes of its body."""
    behind = next(iter(dataset._inputs()), dataset)  # it may take_while the loop goes on
    for each in (dataset, behind):
        if note_of(each).method == _LOOP_BODY:
            return each._inputs()[0]
    return dataset


def _facts_of(dataset: Any) -> UseFacts:
    import tensorflow as tf

    if not hasattr(dataset._variant_tensor, "numpy"):  # made inside of a function
        return UseFacts()
    with tf.init_scope():  # it may be a function that reads it
        length = int(dataset.cardinality())
        threads = dataset.options().threading.private_threadpool_size
        return UseFacts(threads, length if length >= 0 else None, reads_state(dataset))


def _wrap_methods(base: Any) -> None:
    for name, given in list(vars(base).items()):
        is_static = isinstance(given, staticmethod)
        function = given.__func__ if is_static else given
        if name.startswith("_") or name in _OTHERS or not isinstance(function, FunctionType):
            continue
        wrapped = _method(function, name)
        setattr(base, name, staticmethod(wrapped) if is_static else wrapped)


def _classes(base: Any) -> Iterator[Any]:
    """Yield the classes that users make datasets with by name, such as ``TFRecordDataset``."""
    for kind in base.__subclasses__():
        if "__init__" in vars(kind) and _public_name(kind) not in ("", "Dataset"):
            yield kind
        yield from _classes(kind)


def _public_name(kind: Any) -> str:
    names = vars(kind).get("_tf_api_names") or vars(kind).get("_tf_api_names_v1") or ("",)
    return str(names[0]).rpartition(".")[2]


def _method(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        note = _begin(name)
        if stack.edits and note is not None and note.graph is not None:
            edit = stack.edits.get((name, key_of(note.site)))
            if edit is not None:
                leave(note)
                return edit(note, MadeBy(function, signature, arguments, options))
        try:
            made = function(*arguments, **options)
        except BaseException:
            leave(note)
            raise
        finish(note, made, MadeBy(function, signature, arguments, options))
        return made

    return call


def _constructor(function: Callable[..., None], name: str) -> Callable[..., None]:
    given = inspect.signature(function)
    signature = given.replace(parameters=tuple(given.parameters.values())[1:])

    @functools.wraps(function)
    def create(self: Any, *arguments: Any, **options: Any) -> None:
        note = _begin(name)
        try:
            function(self, *arguments, **options)
        except BaseException:
            leave(note)
            raise
        finish(note, self, MadeBy(type(self), signature, arguments, options))

    return create


def _creation(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap the constructor that all datasets share: it sees those that no wrapped call makes."""

    @functools.wraps(function)
    def create(self: Any, *arguments: Any, **options: Any) -> None:
        function(self, *arguments, **options)
        if not stack.notes and type(self).__name__ not in _UNNOTED:
            with contextlib.suppress(Exception):
                note = Note(
                    type(self).__name__.strip("_"), find_site(sys._getframe(1)), current_graph(), is_understood=False
                )
                note.inputs = [note_of(each) for each in self._inputs()]
                note.nodes, stack.nodes = stack.nodes, []
                note.stateful = stateful_operations(self)
                note.hang_on(self)

    create.notes_for_pipeline_lab = True  # type: ignore[attr-defined]  # a mark on a function
    return create


def _naming(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap the property that TensorFlow writes into traces, so that each dataset of eager code has a name that is known.

    Datasets inside of functions keep the names that TensorFlow gives to each of their instances.
    """

    def metadata(self: Any) -> Any:
        found = read(self)
        with contextlib.suppress(Exception):
            if current_graph() is None:
                found.name = found.name or vars(self).setdefault(_NODE, name_node(self).encode())
                nodes = (stack.notes[-1] if stack.notes else stack).nodes
                if (name := found.name.decode()) not in nodes:
                    nodes.append(name)
        return found

    return metadata


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what goes through a dataset without an iterator, as loops inside of ``tf.function`` do."""

    @functools.wraps(function)
    def reduce(self: Any, *arguments: Any, **options: Any) -> Any:
        note_use(self)
        return function(self, *arguments, **options)

    return reduce


def _passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what hands a dataset to a ``tf.function``, which may go through it."""

    @functools.wraps(function)
    def to_components(self: Any, value: Any) -> Any:
        if NOTE in getattr(value, "__dict__", ()) and not stack.notes and current_graph() is None:
            note_use(value)
        return function(self, value)

    return to_components


def _iteration(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def create(self: Any, dataset: Any = None, *arguments: Any, **options: Any) -> None:
        function(self, dataset, *arguments, **options)
        if dataset is not None:
            note_use(dataset)

    return create


def _python_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what ``py_function`` and ``numpy_function`` share, which learns what they call inside of a stage's function."""

    @functools.wraps(function)
    def _internal_py_func(func: Any, *arguments: Any, **options: Any) -> Any:
        if stack.notes:
            with contextlib.suppress(Exception):
                is_eager = options.get("use_eager_py_func", False)
                _note_python(func, "py_function" if is_eager else "numpy_function", sys._getframe(1))
        return function(func, *arguments, **options)

    return _internal_py_func


def _note_python(func: Any, kind: str, frame: Any) -> None:
    site = find_site(frame)
    called = function_of(func)
    if called is None or not is_users(called.file):
        return
    stack.notes[-1].python.append(NotedPython(kind, called, site))


def _begin(name: str) -> Note | None:
    """Begin a call; None for one that is a part of the user's call around it."""
    try:
        site, graph = find_site(sys._getframe(2), stack.until), current_graph()
        around = stack.notes[-1] if stack.notes else None
        if site is None and around is not None:
            site = around.site
        if around is not None and around.graph is graph and (around.is_again or key_of(around.site) == key_of(site)):
            return None
        note = Note(name, site, graph)
        stack.notes.append(note)
    except Exception:  # must not affect the script
        return None
    return note


def key_of(site: CallSite | None) -> object:
    """Return what tells a call's site from others; None without one."""
    return None if site is None else site.key


def leave(note: Note | None) -> None:
    """End a call that makes no dataset."""
    if note is not None:
        while stack.notes and stack.notes.pop() is not note:
            pass
        stack.nodes.clear()


def finish(note: Note | None, made: Any, made_by: MadeBy) -> None:
    """End a call and hang its note on the dataset that it made."""
    if note is None:
        return
    leave(note)
    with contextlib.suppress(Exception):
        if not hasattr(made, "_variant_tensor"):
            return
        for name, value in _named(made_by):
            below = [*datasets_in(value)]
            note.inputs += [note_of(each) for each in below if type(each).__name__ != "_VariantDataset"]  # an element
            if not below and value is not None:
                note.arguments[name] = as_plain(value)
        if note.method == "from_generator":
            given = made_by.options.get("generator", made_by.arguments[0] if made_by.arguments else None)
            _note_generator(note, given)
        note.hang_on(made)
        with contextlib.suppress(Exception):
            note.stateful = stateful_operations(made)
        adapted = getattr(made, "_dataset", None)  # the shell of TensorFlow 1 hands it on to iterators
        if adapted is not None:
            vars(adapted)[NOTE] = note
        if note.graph is None and note.method not in _DATA:
            for each in filter(None.__ne__, (made, adapted)):
                vars(each)[MADE_BY] = made_by
        if stack.notes and note.graph is not stack.notes[-1].graph:
            stack.notes[-1].made.append(note)
        note.graph = None  # it is large


def _named(made_by: MadeBy) -> Iterator[tuple[str, Any]]:
    left = list(made_by.arguments)
    for parameter in made_by.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            if left:
                yield parameter.name, tuple(left)
            left = []
        elif left and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            yield parameter.name, left.pop(0)
    yield from made_by.options.items()


def datasets_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the datasets in an argument."""
    if hasattr(type(value), "_variant_tensor"):
        yield value
    elif depth < 3 and isinstance(value, Mapping):
        for each in value.values():
            yield from datasets_in(each, depth + 1)
    elif depth < 3 and isinstance(value, (list, tuple)):
        is_data = len(value) > MAX_LOOKED_AT and not hasattr(type(value[0]), "_variant_tensor")
        for each in () if is_data else value:
            yield from datasets_in(each, depth + 1)


def _note_generator(note: Note, generator: Any) -> None:
    """Note the user's Python behind ``from_generator``, which Keras calls for what ``fit`` is given."""
    given = describe_frame_owner(sys._getframe(2))
    if given is not None and hasattr(given, "__getitem__") and (method := method_of(given, "__getitem__")) is not None:
        kind = (
            "Sequence" if any(each.__module__.startswith("tf_keras.") for each in type(given).__mro__) else "PyDataset"
        )
        maker = _makers.setdefault(id(given), len(_makers))
        note.python.append(NotedPython(kind, method, None, maker, _called_by_keras(given)))
    elif (called := function_of(given if given is not None else generator)) is not None:
        note.python.append(NotedPython("generator", called, None))


_makers: dict[int, int] = {}
"""Numbers of what Keras was given; one that is gone may share its number with a later one."""


def _called_by_keras(given: Any) -> UserFunction | None:
    """Return what of the user's an iterator of Keras' own runs: the function, or the class, of an ``ImageDataGenerator``."""
    generator = getattr(given, "image_data_generator", None)
    if generator is None:
        return None
    is_own = type(generator).__module__.partition(".")[0] not in ("keras", "tf_keras")
    called = function_of(type(generator) if is_own else generator.preprocessing_function)
    return None if called is None or is_framework(called.file) else called


def current_graph() -> Any:
    """Return the graph that is being built; None in eager code."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    return None if context.executing_eagerly() else ops.get_default_graph()
