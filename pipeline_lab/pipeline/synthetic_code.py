"""The functions of the synthetic workload: take a record apart, and take a known time over it.

A record is `element_bytes` long: eight bytes of id, then filler.
"""

from pipeline_lab.options.workload import SyntheticWorkload
from pipeline_lab.pipeline.code import Code, wanted

_IMPORT_SLEEP = "from tensorflow.python.data.experimental.ops.testing import sleep"

_UNPACK = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take a record, or a batch of them, apart: its first eight bytes are its id."""
    payload = tf.ensure_shape(tf.io.decode_raw(record, tf.uint8), [*record.shape, ELEMENT_BYTES])
    return {"payload": payload, "id": tf.bitcast(payload[..., :8], tf.int64)}
'''

_SLEEP = '''
def spend(seconds: tf.Tensor) -> None:
    """Hold a thread of the pool without using a core, as a call to a remote service does."""
    tf.numpy_function(time.sleep, [seconds], [])
'''

_HASH = '''
def hash_until_due(seconds: float) -> None:
    """Keep one core busy; hashing a large block lets other Python threads run meanwhile."""
    due = time.perf_counter() + seconds
    while time.perf_counter() < due:
        hashlib.sha256(BLOCK)
'''

_SPIN = '''
def spend(seconds: tf.Tensor) -> None:
    """Hold a thread of the pool and a core, as decoding does."""
    tf.numpy_function(hash_until_due, [seconds], [])
'''

_READ_SLEEPING = '''
def read_slowly(record: tf.Tensor) -> tf.Tensor:
    """Wait READ_SECONDS for each record on the thread that reads it, as for slow storage."""
    waiting = tf.data.Dataset.from_tensors(record).apply(sleep(round(READ_SECONDS * 1e6)))
    return waiting.take(1).get_single_element()
'''

_READ_SPINNING = '''
def read_slowly(record: tf.Tensor) -> tf.Tensor:
    """Keep a core busy for READ_SECONDS over each record, as decompression does."""
    spend(tf.constant(READ_SECONDS, tf.float64))
    return record
'''

_WORK = '''
def work(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take MAP_SECONDS over a record, then hand it on."""
    spend(tf.constant(MAP_SECONDS, tf.float64))
    return unpack(record)
'''

_WORK_BATCH = '''
def work(records: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take MAP_SECONDS over each record of a batch, then hand the batch on."""
    spend(tf.cast(tf.shape(records)[0], tf.float64) * MAP_SECONDS)
    return unpack(records)
'''


def synthetic_code(workload: SyntheticWorkload, *, has_map: bool, is_vectorised: bool) -> Code:
    """Write the functions that reading and the map stage use."""
    spins = workload.work == "spin"
    reads_slowly, works = workload.read_ms > 0, has_map and workload.map_ms > 0
    spends = works or (spins and reads_slowly)
    imports = {"import hashlib": spends and spins, "import time": spends, _IMPORT_SLEEP: reads_slowly and not spins}
    constants = {
        f"ELEMENT_BYTES = {workload.element_bytes}": True,
        f"READ_SECONDS = {workload.read_ms / 1e3!r}": reads_slowly,
        f"MAP_SECONDS = {workload.map_ms / 1e3!r}": works,
        "BLOCK = bytes(100_000)": spends and spins,
    }
    functions = {
        _HASH: spends and spins,
        _SPIN if spins else _SLEEP: spends,
        _READ_SPINNING if spins else _READ_SLEEPING: reads_slowly,
        _UNPACK: True,
        _WORK_BATCH if is_vectorised else _WORK: works,
    }
    return Code(wanted(imports), wanted(constants), tuple(text.strip() for text in wanted(functions)))


def map_function(workload: SyntheticWorkload) -> str:
    return "work" if workload.map_ms > 0 else "unpack"
