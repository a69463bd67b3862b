"""Records of known cost: what reading, mapping and computing take is set, so that the right answer is known."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.workloads.workload import Workload


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
    """One record in so many takes `tail_ms` in the `map` stage; 0 for none."""
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

    own_stages: ClassVar = ("map",)
    computes: ClassVar = False

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
    def pause_ms(self) -> float:
        return self.python_ms

    def set_ms(self, stage: str) -> float:
        if stage == "map":
            slow = 1.0 / self.tail_every if self.tail_every else 0.0
            return (1.0 - slow) * self.map_ms + slow * self.tail_ms
        return self.read_ms if stage == "read" else 0.0

    def order_ms(self, stage: str, examples: float, held_examples: float) -> float:
        """One slow record in ``tail_every`` keeps the others waiting until it is done, unless that many may wait beside it."""
        if stage != "map" or not self.tail_every:
            return 0.0
        return examples / self.tail_every * self.tail_ms * min(1.0, self.tail_every / held_examples)

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
