"""The tf.data iterators of the user's job: registered when created, and the busiest of them found.

Only iterators that Python holds can be reached, not those inside a graph, as in a TensorFlow 1 session.
"""

import contextlib
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pipeline_lab.worker.recipe.notes import STAND_INS

listeners: list[Callable[[Any, Any], None]] = []
"""Called with each new iterator and its dataset, in the thread that makes it; their errors are dropped."""

_lock = threading.Lock()
_known: "weakref.WeakSet[Any]" = weakref.WeakSet()


def note_new_iterators() -> None:
    """Register every iterator that is created from now on, while it exists; a second call does nothing."""
    owned = _owned_iterator()
    if owned is None or hasattr(owned.__init__, "notes_for_pipeline_lab"):
        return
    create = owned.__init__

    @functools.wraps(create)
    def create_and_note(self: Any, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        dataset = arguments[0] if arguments else options.get("dataset")
        with contextlib.suppress(Exception), _lock:
            if dataset is None or not _stands_in(dataset):
                _known.add(self)
        if dataset is not None:  # else it stands for one that exists already, inside of a function
            for listen in listeners:
                with contextlib.suppress(Exception):
                    listen(self, dataset)

    create_and_note.notes_for_pipeline_lab = True  # type: ignore[attr-defined]  # a mark on a function
    owned.__init__ = create_and_note
    with _lock:  # those that exist already
        _known.update(one for one in gc.get_objects() if type(one) is owned)


def _stands_in(dataset: Any) -> bool:
    """Say whether a dataset hands the batches of another one to one of several devices; its model shows nothing else."""
    return type(dataset).__name__.strip("_") in STAND_INS or any(map(_stands_in, dataset._inputs()))


class BusiestIterator:
    """Finds the iterator that has yielded most since the last call: usually the training's."""

    def __init__(self) -> None:
        self._elements: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def find(self) -> Any:
        """Return it; None if none has yielded anything or can be inspected."""
        with _lock:
            alive = list(_known)
        best, most = None, 0
        for iterator in alive:
            elements = _elements_of(iterator)
            gained = elements - self._elements.get(iterator, 0)
            self._elements[iterator] = elements
            if gained > most:
                best, most = iterator, gained
        return best


def _elements_of(iterator: Any) -> int:
    """Return how many elements an iterator has yielded; 0 where TensorFlow keeps no model of it."""
    try:
        model = tf.data.experimental.get_model_proto(iterator)
        return int(model.nodes[model.output].num_elements)
    except Exception:  # symbolic, distributed, without a model or being destroyed: must not affect the job
        return 0


def _owned_iterator() -> Any:
    """Return TensorFlow's iterator class; None if this version has none."""
    try:
        from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    except ImportError:
        return None
    return OwnedIterator
