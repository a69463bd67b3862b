"""The tf.data iterators of a job that is not ours: noted as they are made, and which of them is at work.

Only iterators that Python holds can be reached; those inside a graph, as in a TensorFlow 1 session, cannot.
"""

import contextlib
import functools
import gc
import threading
import weakref
from typing import Any

import tensorflow as tf

_lock = threading.Lock()
_known: "weakref.WeakSet[Any]" = weakref.WeakSet()


def note_new_iterators() -> None:
    """Remember every iterator that is made from now on, for as long as it lives; a second call does nothing."""
    owned = _owned_iterator()
    if owned is None or hasattr(owned.__init__, "notes_for_pipeline_lab"):
        return
    create = owned.__init__

    @functools.wraps(create)
    def create_and_note(self: Any, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        with contextlib.suppress(Exception), _lock:
            _known.add(self)

    create_and_note.notes_for_pipeline_lab = True  # type: ignore[attr-defined]  # a mark on a function
    owned.__init__ = create_and_note
    with _lock:  # those that were made before us
        _known.update(one for one in gc.get_objects() if type(one) is owned)


class BusiestIterator:
    """Finds the iterator that has yielded most since the last look: training's, while validation is over."""

    def __init__(self) -> None:
        self._elements: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def find(self) -> Any:
        """Return it; None if none has yielded anything, or none can be looked into."""
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
    """Return what an iterator has yielded; 0 where TensorFlow keeps no model of it."""
    try:
        model = tf.data.experimental.get_model_proto(iterator)
        return int(model.nodes[model.output].num_elements)
    except Exception:  # symbolic, distributed, without a model, or just being destroyed: the job must not notice
        return 0


def _owned_iterator() -> Any:
    """Return TensorFlow's class of iterators; None where a version has none."""
    try:
        from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    except ImportError:
        return None
    return OwnedIterator
