"""Where a script takes batches: each place asks the race first, which may put another pipeline behind the iterator.

An iterator is exchanged by the resource behind it, so that types stay, nothing is traced again, and a function that was
given the iterator takes its batches from the other pipeline as well. Installed once per process; without a race each hook
costs a comparison.
"""

import contextlib
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.distribute.input_lib import DistributedDataset, DistributedIteratorBase
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

from pipeline_lab.capture.script.keras_hooks import steps_of_call
from pipeline_lab.capture.script.live_iterators import listeners, note_new_iterators


class TakesTurns(Protocol):
    """A race, as the hooks see it."""

    def before(self, iterator: Any, steps: int, *, trains: bool) -> None:
        """Is called before the script takes the batches of some steps from an iterator.

        Args:
            iterator: The script's.
            steps: Batches that the call takes.
            trains: It is known that the model is trained on them.
        """

    def note_gradients(self) -> None:
        """Is called where gradients are taken: the thread's last batches are trained on."""


class _Here(threading.local):
    """Where a thread is.

    Attributes:
        is_inside: In a call that is counted as a whole, or in the race's own code.
        method: Of Keras' that it is in.
    """

    is_inside = False
    method = ""


_here = _Here()
_races: list[TakesTurns] = []
_MARK = "_asks_for_pipeline_lab"
_installed = threading.Lock()
_datasets: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
"""What each of the script's iterators goes through: a dataset, or one that is divided among replicas."""


@contextlib.contextmanager
def switched_by(race: TakesTurns) -> Iterator[None]:
    """Ask a race before the script takes batches, while the block runs."""
    begin(race)
    try:
        yield
    finally:
        _races.remove(race)


def begin(race: TakesTurns) -> None:
    """Ask a race from now on."""
    with _installed:
        note_new_iterators()
        if _keep_dataset not in listeners:
            listeners.append(_keep_dataset)
        _wrap(OwnedIterator, "_next_internal", _asking_before_batches)
        _wrap(DistributedIteratorBase, "get_next", _asking_before_batches)
        _wrap(DistributedDataset, "__iter__", _keeping_divided)
        _wrap(Function, "__call__", _asking_before_functions)
        _wrap(tf.GradientTape, "gradient", _telling_of_gradients)
    hook_keras()
    _races.append(race)


def hook_keras() -> None:
    """Hook ``fit`` of Keras 3, where its backend is TensorFlow, and of Keras 2 (``tf_keras``), once they are loaded."""
    backend, engine = "keras.src.backend.tensorflow.trainer", "tf_keras.src.engine"
    for trainer, epochs, method, make in (
        (
            _loaded(backend, "TensorFlowTrainer"),
            _loaded(backend, "TFEpochIterator"),
            "_enumerate_iterator",
            _without_end,
        ),
        (
            _loaded(f"{engine}.training", "Model"),
            _loaded(f"{engine}.data_adapter", "DataHandler"),
            "enumerate_epochs",
            _without_ends,
        ),
    ):
        if trainer is None or epochs is None:
            continue
        with _installed:
            for each in ("fit", "evaluate", "predict"):
                _wrap(trainer, each, functools.partial(_in_method, each))
            _wrap(trainer, "make_train_function", _asking_before_training)
            _wrap(epochs, method, make)


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, None)


def dataset_of(iterator: Any) -> Any:
    """Return the dataset that the script made an iterator of; None if that was not seen."""
    found = _datasets.get(iterator)
    return getattr(found, "_original_dataset", None) if isinstance(found, DistributedDataset) else found


def divided_by(iterator: Any) -> DistributedDataset | None:
    """Return how a strategy divides what an iterator yields; None where none does."""
    found = _datasets.get(iterator)
    return found if isinstance(found, DistributedDataset) else None


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """Take batches on this thread without asking."""
    before, _here.is_inside = _here.is_inside, True
    try:
        yield
    finally:
        _here.is_inside = before


def exchange(iterator: Any, other: Any) -> None:
    """Let an iterator yield what another one does from now on."""
    behind = "_iterators" if isinstance(iterator, DistributedIteratorBase) else "_iterator_resource"
    setattr(iterator, behind, getattr(other, behind))


def _keeping_divided(original: Callable[..., Any]) -> Callable[..., Any]:
    def iterate(self: Any) -> Any:
        iterator = original(self)
        _keep_dataset(iterator, self)
        return iterator

    return iterate


def _keep_dataset(iterator: Any, dataset: Any) -> None:
    if _races:
        _datasets[iterator] = dataset


def _wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    if not hasattr(original, _MARK):
        wrapper = functools.wraps(original)(make(original))
        setattr(wrapper, _MARK, True)
        setattr(owner, name, wrapper)


def _ask(iterator: Any, steps: int, *, trains: bool = False) -> None:
    for race in _races:
        race.before(iterator, steps, trains=trains)


def _is_free() -> bool:
    """Say whether a race has to be asked here: not inside a call that is counted already, nor while a graph is built."""
    return bool(_races) and not _here.is_inside and tf.executing_eagerly()


def _asking_before_batches(original: Callable[..., Any]) -> Callable[..., Any]:
    def take(self: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_free():
            return original(self, *arguments, **options)
        _ask(self, 1)
        with inside():  # a distributed iterator takes from others
            return original(self, *arguments, **options)

    return take


def _asking_before_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_free() or (given := _iterator_in((*arguments, *options.values()))) is None:
            return original(self, *arguments, **options)
        _ask(given, 1)
        with inside():
            return original(self, *arguments, **options)

    return call


def _iterator_in(values: tuple[Any, ...]) -> Any:
    return next((value for value in values if not _ITERATORS.isdisjoint(type(value).__mro__)), None)


_ITERATORS = frozenset({OwnedIterator, DistributedIteratorBase})
"""Asked by the classes of a value: a protocol is among them, which ``isinstance`` takes long to look into."""


def _telling_of_gradients(original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(self: Any, *arguments: Any, **options: Any) -> Any:
        _tell_of_gradients()
        return original(self, *arguments, **options)

    return gradient


def _tell_of_gradients() -> None:
    for race in _races:
        race.note_gradients()


def _in_method(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        before, _here.method = _here.method, method
        try:
            return original(*arguments, **options)
        finally:
            _here.method = before

    return call


def _asking_before_training(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function that a model trains with."""

    def make(self: Any, *arguments: Any, **options: Any) -> Any:
        made = original(self, *arguments, **options)
        function = self.train_function
        if function is not None and not hasattr(function, _MARK):
            self.train_function = _training(function, functools.partial(steps_of_call, self))
        return self.train_function if made is function else made  # Keras 2 takes what it is given back

    return make


def _training(function: Callable[[Any], Any], steps: Callable[[], int]) -> Callable[[Any], Any]:
    @functools.wraps(function, updated=())
    def train(batches: Any) -> Any:
        if not _is_free():
            return function(batches)
        if _iterator_in((batches,)) is None:  # ``train_on_batch``
            _tell_of_gradients()
            return function(batches)
        _ask(batches, steps(), trains=True)
        with inside():
            return function(batches)

    setattr(train, _MARK, True)
    return train


def _without_end(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Let ``fit`` train in one epoch until the race is over: what it does between epochs belongs to no pipeline."""

    def enumerate_steps(self: Any) -> Iterator[Any]:
        if _races and _here.method == "fit":
            self.steps_per_epoch = self._num_batches = None
        yield from original(self)

    return enumerate_steps


def _without_ends(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Do the same in Keras 2."""

    def enumerate_epochs(self: Any) -> Iterator[Any]:
        for epoch in original(self):
            if _races and _here.method == "fit":
                self._inferred_steps = None
            yield epoch

    return enumerate_epochs
