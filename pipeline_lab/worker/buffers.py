"""What an iterator of tf.data holds ready, and what its autotuner has chosen, from the live model behind it."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from pipeline_lab.errors import DataError

_ASYNCHRONOUS = (2, 4, 6)
"""``ASYNC_INTERLEAVE_MANY``, ``ASYNC_KNOWN_RATIO`` and ``ASYNC_UNKNOWN_RATIO`` of TensorFlow's ``model.proto``."""

Parameters = tuple[tuple[int, str, float], ...]


class Buffers:
    """Asks an iterator for the elements that its threads have prepared; one look costs some ten microseconds."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def batches(self) -> float:
        """Return how many batches the elements in all buffers will make.

        An element deep in the pipeline counts by the share of a batch that it becomes. A shuffle buffer does not
        count: nothing refills it while nobody asks.
        """
        return sum(float(node.buffered_elements) / visits for node, visits in self._nodes() if _is_asynchronous(node))

    def elements(self) -> int:
        """Return the elements in all buffers, whatever they are; it stands still once every buffer is full."""
        return sum(int(node.buffered_elements) for node, _ in self._nodes() if _is_asynchronous(node))

    def has_room(self) -> bool:
        """Say whether a prefetch of a fixed depth holds less than that, so that its thread is still at work."""
        return any(
            node.buffered_elements < parameter.value
            for node, _ in self._nodes()
            if node.name == "Prefetch"
            for parameter in node.parameters
            if parameter.name == "buffer_size" and not _may_change(parameter)
        )

    def tuned(self) -> Parameters:
        """Return the parameters that the autotuner may change, with their present values."""
        return tuple(
            (node.id, parameter.name, parameter.state_value)
            for node, _ in self._nodes()
            for parameter in node.parameters
            if _may_change(parameter)
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
                "A race must know what an idle pipeline has buffered, and tf.data only knows with its model on; "
                "leave options.autotune.enabled of the dataset as it is."
            ) from None
        except ValueError:
            raise DataError(
                "A race must know what an idle pipeline has buffered, and tf.data does not tell for batches that are "
                "divided among several replicas; race with training.replicas = 1, or compare recorded runs."
            ) from None


def _may_change(parameter: Any) -> bool:
    return bool(parameter.tunable and parameter.min < parameter.max)


def _is_asynchronous(node: Any) -> bool:
    return int(node.node_class) in _ASYNCHRONOUS
