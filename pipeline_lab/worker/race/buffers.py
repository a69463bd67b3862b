"""What an iterator of tf.data has buffered, read from its performance model."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline_lab.errors import DataError
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
