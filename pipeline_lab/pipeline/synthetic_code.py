"""The functions of the synthetic workload: take a record apart, and take a known time over it.

A record is `element_bytes` long: eight bytes of id, then filler.
"""

from pipeline_lab.options.workload import SyntheticWorkload
from pipeline_lab.pipeline.code import Code

_UNPACK = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take a record, or a batch of them, apart: its first eight bytes are its id."""
    payload = tf.ensure_shape(tf.io.decode_raw(record, tf.uint8), [*record.shape, ELEMENT_BYTES])
    return {"payload": payload, "id": tf.bitcast(payload[..., :8], tf.int64)}
'''

_SLEEP = '''
def spend(seconds: tf.Tensor) -> None:
    """Wait without using a core, as for storage or a remote service."""
    tf.numpy_function(time.sleep, [seconds], [])
'''

_SPIN = '''
def spend(seconds: tf.Tensor) -> None:
    """Keep one core busy, as decoding does."""
    start = tf.timestamp()
    tf.while_loop(lambda now: now < start + seconds, lambda now: [tf.timestamp()], [start])
'''

_READ_SLOWLY = '''
def read_slowly(record: tf.Tensor) -> tf.Tensor:
    """Take READ_SECONDS over each record, one after the other within a file."""
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
    reads_slowly, works = workload.read_ms > 0, has_map and workload.map_ms > 0
    constants = {
        f"ELEMENT_BYTES = {workload.element_bytes}": True,
        f"READ_SECONDS = {workload.read_ms / 1e3!r}": reads_slowly,
        f"MAP_SECONDS = {workload.map_ms / 1e3!r}": works,
    }
    functions = {
        _SLEEP if workload.work == "sleep" else _SPIN: reads_slowly or works,
        _READ_SLOWLY: reads_slowly,
        _UNPACK: True,
        _WORK_BATCH if is_vectorised else _WORK: works,
    }
    return Code(
        imports=("time",) if workload.work == "sleep" and (reads_slowly or works) else (),
        constants=tuple(line for line, wanted in constants.items() if wanted),
        functions=tuple(text.strip() for text, wanted in functions.items() if wanted),
    )


def map_function(workload: SyntheticWorkload) -> str:
    return "work" if workload.map_ms > 0 else "unpack"
