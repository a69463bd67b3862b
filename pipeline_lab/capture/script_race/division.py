"""Batches that a strategy divides among replicas: made again behind an iterator whose buffers are known.

A strategy hands a dataset to an iterator of several devices, of which tf.data tells nothing. So an arm's pipeline gets an
iterator of its own, which tells what it has buffered, and the strategy divides what comes out of that. What lies behind it is the
same in all arms: a few batches, on their way to the devices.
"""

from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops.from_generator_op import _GeneratorDataset
from tensorflow.python.data.util import structure
from tensorflow.python.distribute.input_lib import DistributedDataset
from tensorflow.python.ops import gen_dataset_ops

from pipeline_lab.errors import OptionsError

DISTRIBUTED = (
    "The script divides its batches among replicas in a way that cannot be made again: among several workers, or by a function that "
    "makes a dataset for each; race it with experimental_distribute_dataset on one worker, or without a strategy."
)
THREADS = (
    "Each pipeline has threads of its own that divide its batches. On a machine with 2 cores, both busy all the time, two equal "
    "pipelines differed by up to 22 %: do not rely on a small difference."
)


class Division:
    """How the batches of a dataset are divided.

    Args:
        distributed: What the script reads.

    Raises:
        OptionsError: It cannot be made again.
    """

    def __init__(self, distributed: DistributedDataset) -> None:
        context = distributed._input_context
        workers = context.num_input_pipelines if context else distributed._input_workers.num_workers
        if workers != 1 or getattr(distributed, "_original_dataset", None) is None:
            raise OptionsError(DISTRIBUTED)
        self._distributed = distributed

    @property
    def replicas(self) -> int:
        """Among which they are divided."""
        return int(self._distributed._strategy.num_replicas_in_sync)

    @property
    def batches_beyond(self) -> int:
        """Batches between an arm's own iterator and the step, once its threads are idle (counted with TensorFlow 2.21).

        Each replica has a buffer on its device and one on the host, and behind what divides them lies a prefetch.
        """
        each = getattr(self._distributed._options, "experimental_per_replica_buffer_size", 1)
        return 2 * int(each) + (self.replicas > 1)

    def divide(self, iterator: Any) -> Any:
        """Return an iterator that yields the batches of another one, divided.

        Raises:
            OptionsError: The parts would be other ones than the script's.
        """
        was = self._distributed
        with tf.device("/CPU:0"):
            dataset = _dataset_of(iterator, was._original_dataset.element_spec).with_options(_nothing_added())
            divided = was._strategy.experimental_distribute_dataset(dataset, was._options)
        if divided.element_spec != was.element_spec:
            raise OptionsError(DISTRIBUTED)
        return iter(divided)


def _nothing_added() -> tf.data.Options:
    """Return options with which tf.data adds no buffer, and looks for nothing to divide among workers, where there are none."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options


def _dataset_of(iterator: Any, spec: Any) -> Any:
    """Return a dataset of what an iterator yields, without Python in between."""
    types, shapes = structure.get_flat_tensor_types(spec), structure.get_flat_tensor_shapes(spec)

    def stay(state: Any) -> Any:
        return state

    def take(_state: Any) -> Any:
        taken = gen_dataset_ops.iterator_get_next(iterator._iterator_resource, types, shapes)
        return structure.from_compatible_tensor_list(spec, taken)

    def end(_state: Any) -> Any:
        return tf.constant(0, tf.int64)

    return _GeneratorDataset(tf.constant(0, tf.int64), stay, take, end, spec)
