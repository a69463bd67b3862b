"""The functions of the synthetic workload: take a record apart, and take a known time over it.

A record is `element_bytes` long, or up to that where lengths vary: eight bytes of id, then filler.
"""

from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.stages.code import Code, assign_call, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.workloads.synthetic import SyntheticWorkload

_IMPORT_SLEEP = "from tensorflow.python.data.experimental.ops.testing import sleep"

_UNPACK = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take a record, or a batch of them, apart: its first eight bytes are its id."""
    payload = tf.ensure_shape(tf.io.decode_raw(record, tf.uint8), [*record.shape, ELEMENT_BYTES])
    return {"payload": payload, "id": tf.bitcast(payload[..., :8], tf.int64)}
'''

_UNPACK_VARIED = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Take a record apart: its first eight bytes are its id, and its length is its own."""
    payload = tf.io.decode_raw(record, tf.uint8)
    return {"payload": payload, "id": tf.bitcast(tf.ensure_shape(payload[:8], [8]), tf.int64)}
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


def synthetic_source(workload: SyntheticWorkload, pipeline: PipelineOptions) -> WorkloadSource:
    """Write the functions that reading and the map stage use."""
    has_map = pipeline.find("map") is not None
    per_file = PerFile.SLOW if workload.read_ms > 0 else PerFile.PLAIN
    unpacked = [] if has_map else [assign_call("dataset.map", ["unpack"])]
    return WorkloadSource(
        about=('Elements are batches of {"payload": uint8, "id": int64}, with set times to read and map them.',),
        code=_code(workload, has_map=has_map, is_vectorised=pipeline.is_vectorised("map")),
        written={"read": lambda read: [*read_lines(read, per_file), *unpacked]},
        functions={"map": "work" if workload.has_map_time else "unpack"},
    )


def _code(workload: SyntheticWorkload, *, has_map: bool, is_vectorised: bool) -> Code:
    spins = workload.work == "spin"
    reads_slowly, works = workload.read_ms > 0, has_map and workload.has_map_time
    spends = works or (spins and reads_slowly)
    has_tail, has_jitter = works and workload.tail_every > 0, works and workload.jitter_percent > 0
    imports = {"import hashlib": spends and spins, "import time": spends, _IMPORT_SLEEP: reads_slowly and not spins}
    constants = {
        f"ELEMENT_BYTES = {workload.element_bytes}": not workload.varied_lengths,
        f"READ_SECONDS = {workload.read_ms / 1e3!r}": reads_slowly,
        f"MAP_SECONDS = {workload.map_ms / 1e3!r}": works,
        f"TAIL_EVERY = {workload.tail_every}": has_tail,
        f"TAIL_SECONDS = {workload.tail_ms / 1e3!r}": has_tail,
        f"JITTER = {workload.jitter_percent / 100!r}": has_jitter,
        "BLOCK = bytes(100_000)": spends and spins,
    }
    work = _work_varied(workload, is_vectorised) if has_tail or has_jitter else _WORK_BATCH if is_vectorised else _WORK
    functions = {
        _HASH: spends and spins,
        _SPIN if spins else _SLEEP: spends,
        _READ_SPINNING if spins else _READ_SLEEPING: reads_slowly,
        _UNPACK_VARIED if workload.varied_lengths else _UNPACK: True,
        work: works,
    }
    return Code(wanted(imports), wanted(constants), tuple(text.strip() for text in wanted(functions)))


def _work_varied(workload: SyntheticWorkload, is_vectorised: bool) -> str:
    """Write ``work`` for records that do not all take the same time."""
    argument, result = ("records", "batch") if is_vectorised else ("record", "example")
    whole = "each record of a batch, then hand the batch on" if is_vectorised else "a record, then hand it on"
    slow = f'tf.where({result}["id"] % TAIL_EVERY == 0, TAIL_SECONDS, MAP_SECONDS)'
    seconds = slow if workload.tail_every else f'tf.fill(tf.shape({result}["id"]), MAP_SECONDS)'
    lines = {
        f"def work({argument}: tf.Tensor) -> dict[str, tf.Tensor]:": True,
        f'    """Take a time of its own over {whole}."""': True,
        f"    {result} = unpack({argument})": True,
        f"    seconds = tf.cast({seconds}, tf.float64)": True,
        "    seconds *= tf.random.uniform(tf.shape(seconds), 1 - JITTER, 1 + JITTER, tf.float64)": workload.jitter_percent,
        f"    spend({'tf.reduce_sum(seconds)' if is_vectorised else 'seconds'})": True,
        f"    return {result}": True,
    }
    return "\n".join(wanted(lines))
