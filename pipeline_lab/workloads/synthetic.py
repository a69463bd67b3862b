"""Records of known cost: what reading, mapping and computing take is set, so that the right answer is known.

A record is `element_bytes` long, or up to that where lengths vary: eight bytes of id, then filler.
"""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.code import Code, assign_call, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.units import NS_PER_MS
from pipeline_lab.workloads.workload import Workload, WorkloadSource


class SyntheticWorkload(Workload):
    """Imitate any job: known times for reading, mapping and computing, so that the right answer is known."""

    kind: Literal["synthetic"] = "synthetic"
    examples_per_file: FileSizes = (1000,) * 4
    element_bytes: int = Field(1024, ge=8, le=100_000_000)
    """Payload of one record, bytes."""
    read_ms: float = Field(0.0, ge=0, le=60_000)
    """Added to the reading of each record, ms."""
    map_ms: float = Field(1.0, ge=0, le=60_000)
    """Time of the `map` stage for each record, ms."""
    jitter_percent: float = Field(0.0, ge=0, le=100)
    """How far a record's time in the `map` stage may be off either way, percent."""
    tail_every: int = Field(0, ge=0, le=1_000_000)
    """Every n-th record takes `tail_ms` in the `map` stage; 0 for none."""
    tail_ms: float = Field(20.0, ge=0, le=60_000)
    """Time of the `map` stage for each of those records, ms."""
    varied_lengths: bool = False
    """Records of half to the whole of `element_bytes`: batches are padded, and their shape keeps changing."""
    compute_ms: float = Field(10.0, ge=0, le=600_000)
    """Time of the training step on one batch, ms."""
    tiny_ops: int = Field(0, ge=0, le=100_000)
    """Operations on single numbers that each step calls from Python, one after another, on top of `compute_ms`."""
    weights_mb: float = Field(0.0, ge=0, le=2000)
    """Weights of the imitated model, MB; what a checkpoint writes."""
    python_ms: float = Field(0.0, ge=0, le=600_000)
    """Python work between two steps (a slow callback, say), ms."""
    work: Literal["sleep", "spin"] = "sleep"
    """``sleep`` leaves the cores free, as waiting for storage does; ``spin`` keeps a core busy, as decoding does."""

    matters: ClassVar = ("examples_per_file", "read_ms", "map_ms", "compute_ms")
    own_stages: ClassVar = ("map",)
    computes: ClassVar = False

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        has_map = pipeline.find("map") is not None
        per_file = PerFile.SLOW if self.read_ms > 0 else PerFile.PLAIN
        unpacked = [] if has_map else [assign_call("dataset.map", ["unpack"])]
        return WorkloadSource(
            about=('Elements are batches of {"payload": uint8, "id": int64}, with set times to read and map them.',),
            code=_code(self, has_map=has_map, is_vectorized=pipeline.is_vectorized("map")),
            written={"read": lambda read: [*read_lines(read, per_file), *unpacked]},
            functions={"map": "work" if self.has_map_time else "unpack"},
        )

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_file

    @property
    def known_fields(self) -> frozenset[str]:
        times = {"read_ms", "map_ms", "tail_every", "tail_ms", "jitter_percent", "compute_ms", "python_ms"}
        return frozenset({*times, "examples_per_file"})

    @property
    def sleeps(self) -> bool:
        return self.work == "sleep"

    @property
    def spins(self) -> bool:
        return self.work == "spin"

    @property
    def pause_ns(self) -> float:
        return self.python_ms * NS_PER_MS

    @property
    def step_ns(self) -> float:
        return self.compute_ms * NS_PER_MS

    def set_ns(self, stage: str) -> float:
        if stage == "map":
            slow = 1.0 / self.tail_every if self.tail_every else 0.0
            return ((1.0 - slow) * self.map_ms + slow * self.tail_ms) * NS_PER_MS
        return self.read_ms * NS_PER_MS if stage == "read" else 0.0

    def order_ns(self, stage: str, examples: float, held_examples: float) -> float:
        """One slow record in ``tail_every`` keeps the others waiting until it is done, unless that many may wait for it."""
        if stage != "map" or not self.tail_every:
            return 0.0
        return examples / self.tail_every * self.tail_ms * NS_PER_MS * min(1.0, self.tail_every / held_examples)

    @property
    def has_varied_lengths(self) -> bool:
        return self.varied_lengths

    @property
    def has_map_time(self) -> bool:
        """Say whether the `map` stage takes any time."""
        return self.map_ms > 0 or (self.tail_every > 0 and self.tail_ms > 0)

    @property
    def record_bytes(self) -> int:
        return self.element_bytes

    def is_random(self, stage: str) -> bool:
        return stage == "map" and self.jitter_percent > 0

    def runs_python(self, stage: str) -> bool:
        return self.has_map_time


_IMPORT_SLEEP = "from tensorflow.python.data.experimental.ops.testing import sleep"

_UNPACK = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Unpack a record, or a batch of them: its first eight bytes are its id."""
    payload = tf.ensure_shape(tf.io.decode_raw(record, tf.uint8), [*record.shape, ELEMENT_BYTES])
    return {"payload": payload, "id": tf.bitcast(payload[..., :8], tf.int64)}
'''

_UNPACK_VARIED = '''
def unpack(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Unpack a record: its first eight bytes are its id; lengths differ."""
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


def _code(workload: SyntheticWorkload, *, has_map: bool, is_vectorized: bool) -> Code:
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
    work = _work_varied(workload, is_vectorized) if has_tail or has_jitter else _WORK_BATCH if is_vectorized else _WORK
    functions = {
        _HASH: spends and spins,
        _SPIN if spins else _SLEEP: spends,
        _READ_SPINNING if spins else _READ_SLEEPING: reads_slowly,
        _UNPACK_VARIED if workload.varied_lengths else _UNPACK: True,
        work: works,
    }
    return Code(wanted(imports), wanted(constants), tuple(text.strip() for text in wanted(functions)))


def _work_varied(workload: SyntheticWorkload, is_vectorized: bool) -> str:
    """Write ``work`` for records that do not all take the same time."""
    argument, result = ("records", "batch") if is_vectorized else ("record", "example")
    whole = "each record of a batch, then hand the batch on" if is_vectorized else "a record, then hand it on"
    slow = f'tf.where({result}["id"] % TAIL_EVERY == 0, TAIL_SECONDS, MAP_SECONDS)'
    seconds = slow if workload.tail_every else f'tf.fill(tf.shape({result}["id"]), MAP_SECONDS)'
    lines = {
        f"def work({argument}: tf.Tensor) -> dict[str, tf.Tensor]:": True,
        f'    """Take a time of its own over {whole}."""': True,
        f"    {result} = unpack({argument})": True,
        f"    seconds = tf.cast({seconds}, tf.float64)": True,
        "    seconds *= tf.random.uniform(tf.shape(seconds), 1 - JITTER, 1 + JITTER, tf.float64)": workload.jitter_percent,
        f"    spend({'tf.reduce_sum(seconds)' if is_vectorized else 'seconds'})": True,
        f"    return {result}": True,
    }
    return "\n".join(wanted(lines))
