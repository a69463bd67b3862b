"""A pipeline's Python while its data are read for a proof: in what order its calls come, and what they draw.

Calls that run at once come in the order of their elements more often than not, and hide what depends on it; here each may wait a
moment first. They take their random numbers from one generator as they come, so two readings differ although every call does what
it did; here each may have a generator of its own, seeded by what the call is given and by the pass.
"""

import contextlib
import functools
import hashlib
import itertools
import queue
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pipeline_lab.capture.script.at_import import after_import

SEEDED = (
    "the script sets the seed of Python's or NumPy's random numbers, and which example a draw goes to would depend on which call "
    "comes first"
)
GOLDEN_RATIO = 0.6180339887
"""Multiples of it, without their whole part, lie far from their neighbors."""
SWITCHING_S = 1e-5
"""Time after which Python changes threads, 5 ms as a rule: calls that share something then meet in the middle of it."""
LONGEST_WAIT_S = 0.001
"""Of a call before it begins: calls that were started together are started within microseconds."""
DRAWS = "Python draws random numbers, which calls at once take as they come"
UNTOLD = (
    "a Python function of the pipeline receives no argument that identifies the element, so its draws cannot be fixed"
)
STARTS_LATE = (
    "{name}.on_epoch_begin changes what the PyDataset holds, and Keras lets the workers begin before it is called"
)
ENDS_TWICE = (
    "{name}.on_epoch_end changes what the Sequence holds, and Keras 2 with workers calls it once or twice per epoch"
)
_SEEDING = frozenset({"seed", "set_state", "setstate", "set_bit_generator"})


class _Own(threading.local):
    """The generators of the call that a thread is in; None outside of any."""

    is_inside = False
    python: random.Random | None = None
    numpy: np.random.RandomState | None = None


class PythonCalls:
    """The calls of functions of ``py_function`` and its like, and of each ``PyDataset``.

    Args:
        draws_anew: For each element.
        waits: Each call waits a moment first, one longer than the other, and threads change often.

    Attributes:
        number: Of the pass; a later one draws others, so that what a cache keeps shows.
        refusal: Why draws cannot be made anew for each element; empty where they can.
    """

    def __init__(self, *, draws_anew: bool, waits: bool) -> None:
        self.number = 0
        self.refusal = ""
        self._counter = itertools.count()
        self._draws_anew, self._waits, self._own = draws_anew, waits, _Own()

    def begin_pass(self, number: int) -> None:
        self.number = number

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the script's Python be called so."""
        with contextlib.ExitStack() as stack:
            if self._changes_calls:
                self._exchange_draws(stack)
                self._adapt_py_datasets(stack)
            else:
                stack.callback(after_import("keras", lambda: self._adapt_py_datasets(stack)))
            stack.callback(after_import("tf_keras", lambda: self._adapt_sequences(stack)))
            yield

    @property
    def _changes_calls(self) -> bool:
        return self._draws_anew or self._waits

    def _exchange_draws(self, stack: contextlib.ExitStack) -> None:
        from tensorflow.python.ops import script_ops

        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        if self._waits:
            sys.setswitchinterval(SWITCHING_S)
        for module, name in ((random, "python"), (np.random, "numpy")):
            for function in list(vars(module)):
                if _is_drawn(module, function):
                    wrapped = self._dispatched(getattr(module, function), function, name)
                    stack.enter_context(exchanged(module, function, wrapped))
        stack.enter_context(exchanged(script_ops, "_internal_py_func", self._called(script_ops._internal_py_func)))

    def _dispatched(self, function: Callable[..., Any], method: str, name: str) -> Callable[..., Any]:
        """Return a module's function for the generator of the call that a thread is in."""

        @functools.wraps(function)
        def draw(*arguments: Any, **options: Any) -> Any:
            own = getattr(self._own, name)
            if self._draws_anew and method in _SEEDING:
                self.refusal = SEEDED
            elif not self._draws_anew and self._own.is_inside:
                self.refusal = DRAWS
            return getattr(own, method, function)(*arguments, **options)

        return draw

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def _internal_py_func(func: Any, *arguments: Any, **options: Any) -> Any:
            return function(func if _is_of_generators(func) else self._seeded(func), *arguments, **options)

        return _internal_py_func

    def _adapt_py_datasets(self, stack: contextlib.ExitStack) -> None:
        from keras.src.trainers.data_adapters.py_dataset_adapter import PyDataset, PyDatasetAdapter

        def refuse(given: Any, _options: Mapping[str, Any]) -> None:
            if given.workers > 1 and type(given).on_epoch_begin is not PyDataset.on_epoch_begin:
                raise RuntimeError(STARTS_LATE.format(name=type(given).__name__))

        adapter, read = PyDatasetAdapter, "_get_iterator"
        if self._changes_calls:
            stack.enter_context(exchanged(adapter, "__init__", self._adapted(adapter, refuse, stack)))
        stack.enter_context(exchanged(adapter, read, _beginning(getattr(adapter, read))))

    def _adapt_sequences(self, stack: contextlib.ExitStack) -> None:
        from tf_keras.src.engine.data_adapter import KerasSequenceAdapter
        from tf_keras.utils import Sequence as KerasSequence

        def refuse(given: Any, options: Mapping[str, Any]) -> None:
            if options.get("workers", 1) > 1 and type(given).on_epoch_end is not KerasSequence.on_epoch_end:
                raise RuntimeError(ENDS_TWICE.format(name=type(given).__name__))

        adapter, of_workers = KerasSequenceAdapter, "_handle_multiprocessing"
        if self._changes_calls:
            stack.enter_context(exchanged(adapter, "__init__", self._adapted(adapter, refuse, stack)))
        stack.enter_context(exchanged(adapter, of_workers, _beginning_and_ending(getattr(adapter, of_workers))))

    def _adapted(
        self, adapter: Any, refuse: Callable[[Any, Mapping[str, Any]], None], stack: contextlib.ExitStack
    ) -> Callable[..., None]:
        """Wrap what Keras makes of a ``PyDataset`` or ``Sequence``, whose class is wrapped once, until the stack ends."""
        known: set[type] = set()
        function = adapter.__init__

        @functools.wraps(function)
        def create(made: Any, x: Any, *arguments: Any, **options: Any) -> None:
            refuse(x, options)
            kind: Any = next(each for each in type(x).__mro__ if "__getitem__" in vars(each))
            if kind not in known:
                known.add(kind)
                stack.enter_context(exchanged(kind, "__getitem__", self._seeded(kind.__getitem__, leaves_out=1)))
            function(made, x, *arguments, **options)

        return create

    def _seeded(self, function: Callable[..., Any], leaves_out: int = 0) -> Callable[..., Any]:
        """Return a function that waits, or draws from generators of its own; the first arguments may be left out of their seed."""

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if self._waits:
                time.sleep(LONGEST_WAIT_S * (next(self._counter) * GOLDEN_RATIO % 1.0))
            own = self._own
            before = own.is_inside, own.python, own.numpy
            own.is_inside = True
            if self._draws_anew:
                given = [*arguments[leaves_out:], *options.values()]
                self.refusal = self.refusal or ("" if given else UNTOLD)
                seed = _seed(given, self.number)
                own.python, own.numpy = random.Random(seed), np.random.RandomState(seed)  # noqa: S311 (as the script draws)
            try:
                return function(*arguments, **options)
            finally:
                own.is_inside, own.python, own.numpy = before

        return call


def _beginning(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Let each reading of a ``PyDataset`` begin with its first batch: workers go on where the one before was broken off."""
    read: weakref.WeakSet[Any] = weakref.WeakSet()

    @functools.wraps(function)
    def _get_iterator(adapter: Any) -> Iterator[Any]:
        if adapter in read and adapter.enqueuer is not None:
            adapter.enqueuer.stop()
            adapter.enqueuer.ready_queue = queue.Queue()  # what was made for that
        read.add(adapter)
        return function(adapter)

    return _get_iterator


def _beginning_and_ending(function: Callable[..., Callable[[], Iterator[Any]]]) -> Callable[..., Any]:
    """Let each reading of a ``Sequence`` be a whole one: ``fit`` of Keras 2 counts the batches, and its workers begin again unasked."""

    @functools.wraps(function)
    def _handle_multiprocessing(adapter: Any, x: Any, *arguments: Any, **options: Any) -> Callable[[], Iterator[Any]]:
        generate = function(adapter, x, *arguments, **options)

        def generate_once() -> Iterator[Any]:
            _stop_workers(adapter)
            yield from itertools.islice(generate(), len(x))
            _stop_workers(adapter)

        return generate_once

    return _handle_multiprocessing


def _stop_workers(adapter: Any) -> None:
    if adapter._enqueuer is not None and adapter._enqueuer.is_running():
        adapter._enqueuer.stop()


def _is_drawn(module: Any, name: str) -> bool:
    """Say whether a module's function is a method of the generator that it has for all."""
    kind = random.Random if module is random else np.random.RandomState
    return not name.startswith("_") and (hasattr(kind, name) or name in _SEEDING) and callable(getattr(module, name))


def _is_of_generators(function: Any) -> bool:
    """Say whether a function is TensorFlow's own, around a generator: what it is given says nothing of the elements."""
    return str(getattr(function, "__module__", "")).startswith("tensorflow.python.data.ops.")


def _seed(given: Sequence[Any], number: int) -> int:
    digest = hashlib.blake2b(str(number).encode(), digest_size=4)
    for part in given:
        array = np.asarray(part.numpy() if hasattr(part, "numpy") else part)
        is_text = array.dtype.hasobject
        digest.update(repr(array.ravel().tolist()).encode() if is_text else np.ascontiguousarray(array).tobytes())
    return int.from_bytes(digest.digest(), "big")


@contextlib.contextmanager
def exchanged(holder: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute for the duration of the block."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)
