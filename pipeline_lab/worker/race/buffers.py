"""What an iterator of tf.data has buffered, read from its performance model, and buffers that pauses do not let grow."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from pipeline_lab.errors import DataError
from pipeline_lab.worker.recipe.changed import PREFETCHED
from pipeline_lab.worker.record.pipeline_model import may_change

UNKNOWN_BUFFERS = "A race must know what an idle pipeline has buffered, which tf.data does not report"

_ASYNCHRONOUS = (2, 4, 6)
"""``ASYNC_INTERLEAVE_MANY``, ``ASYNC_KNOWN_RATIO`` and ``ASYNC_UNKNOWN_RATIO`` of TensorFlow's ``model.proto``."""

Parameters = tuple[tuple[int, str, float], ...]


class Buffers:
    """Reads from tf.data's model what an iterator has buffered; takes some tens of microseconds."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def batches(self) -> float:
        """Return the batches that the elements in all buffers amount to.

        An element counts as its share of a batch. A shuffle buffer does not count: nothing refills it without requests.
        """
        return sum(float(node.buffered_elements) / visits for node, visits in self._nodes() if _is_asynchronous(node))

    def elements(self) -> int:
        """Return the number of elements in all buffers; it stays constant once they are full."""
        return sum(int(node.buffered_elements) for node, _ in self._nodes() if _is_asynchronous(node))

    def has_room(self) -> bool:
        """Say whether a prefetch of fixed depth is not full, so that its thread is still busy."""
        return any(
            node.buffered_elements < parameter.value
            for node, _ in self._nodes()
            if node.name == "Prefetch"
            for parameter in node.parameters
            if parameter.name == "buffer_size" and not may_change(parameter)
        )

    def tuned(self) -> Parameters:
        """Return the parameters that the autotuner may change, with their current values."""
        return tuple(
            (node.id, parameter.name, parameter.state_value)
            for node, _ in self._nodes()
            for parameter in node.parameters
            if may_change(parameter)
        )

    def _nodes(self) -> Iterator[tuple[Any, float]]:
        """Walk the model from the consumer to the sources, each node with its elements per batch."""
        model = self._model()
        waiting = [(model.output, 1.0)]
        while waiting:
            number, visits = waiting.pop()
            node = model.nodes[number]
            yield node, visits
            below = visits * (node.ratio if node.ratio > 0 else 1.0)
            waiting += [(child, below) for child in node.inputs]

    def _model(self) -> Any:
        try:
            return tf.data.experimental.get_model_proto(self._iterator)
        except tf.errors.NotFoundError:
            raise DataError(
                f"{UNKNOWN_BUFFERS} without its performance model; do not change options.autotune.enabled of the dataset."
            ) from None
        except ValueError:
            raise DataError(
                f"{UNKNOWN_BUFFERS} for batches of several replicas; race with training.replicas = 1, or compare recorded runs."
            ) from None


def _is_asynchronous(node: Any) -> bool:
    return int(node.node_class) in _ASYNCHRONOUS


def make_steady(make: Callable[[], Any]) -> Any:
    """Make a dataset for a race: where the depth of a prefetch is left to tf.data, pauses would double it, so it is fixed."""
    kind = tf.data.Dataset
    prefetch = kind.prefetch
    kind.prefetch = _fixed(prefetch)
    try:
        dataset = make()
    finally:
        kind.prefetch = prefetch
    return end_steady(dataset)


def end_steady(dataset: Any, ended: Any = None) -> Any:
    """Let a dataset end with a prefetch of fixed depth where TensorFlow would end it with one of its own.

    Args:
        dataset: As it was made.
        ended: What is read instead of it, such as its repetition.
    """
    ended = dataset if ended is None else ended
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return (ended.prefetch(PREFETCHED) if _gets_prefetch(dataset) else ended).with_options(options)


def _fixed(prefetch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(prefetch)
    def call(self: Any, buffer_size: Any, *arguments: Any, **options: Any) -> Any:
        is_tuned = isinstance(buffer_size, int) and buffer_size == tf.data.AUTOTUNE
        return prefetch(self, PREFETCHED if is_tuned else buffer_size, *arguments, **options)

    return call


def _gets_prefetch(dataset: Any) -> bool:
    """Say whether TensorFlow ends a dataset with a prefetch, as it does with one that has none there."""
    options = dataset.options()
    optimization = options.experimental_optimization
    if False in (options.autotune.enabled, optimization.apply_default_optimizations, optimization.inject_prefetch):
        return False
    while type(dataset).__name__ == "_OptionsDataset":
        (dataset,) = dataset._inputs()
    return type(dataset).__name__ != "_PrefetchDataset"
