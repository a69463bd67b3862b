"""Record ``sparse_mirrored.xplane.pb.gz``: MirroredStrategy over two logical CPUs, batches of 17 sparse features.

Run ``python tests/data/record_sparse_mirrored.py`` to record it anew (it needs TensorFlow).
"""

import gzip
import tempfile
from pathlib import Path

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

STEPS, FEATURES, BATCH = 3, 17, 32
TARGET = Path(__file__).with_name("sparse_mirrored.xplane.pb.gz")


def make_example(_: tf.Tensor) -> dict[str, tf.SparseTensor]:
    indices = tf.reshape(tf.range(3, dtype=tf.int64), (3, 1))
    return {
        f"feature{number}": tf.SparseTensor(indices, tf.random.uniform((3,), 0, 1000, tf.int64), [10])
        for number in range(FEATURES)
    }


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.range(10**6).map(make_example, num_parallel_calls=2).batch(BATCH).prefetch(2)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    with strategy.scope():
        weights = [tf.Variable(tf.random.normal((1000, 8))) for _ in range(FEATURES)]

    def look_up(features: dict[str, tf.SparseTensor]) -> tf.Tensor:
        found = (tf.nn.safe_embedding_lookup_sparse(one, features[f"feature{n}"]) for n, one in enumerate(weights))
        return tf.add_n([tf.reduce_mean(each) for each in found])

    @tf.function
    def train(features: dict[str, tf.SparseTensor]) -> tf.Tensor:
        return strategy.reduce("MEAN", strategy.run(look_up, args=(features,)), axis=None)

    for _ in range(2):
        train(next(batches))
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for step in range(2, 2 + STEPS):
                features = next(batches)
                with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                    float(train(features))
        (recorded,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(recorded.read_bytes())
    space.hostnames[:] = ["trainer"]
    TARGET.write_bytes(gzip.compress(space.SerializeToString(), mtime=0))


if __name__ == "__main__":
    main()
