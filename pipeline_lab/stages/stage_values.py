"""What stages are asked with and what they answer: plain values, which :mod:`pipeline_lab.stages.stage` puts together."""

import math
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from pipeline_lab.data_classes import dataclass

if TYPE_CHECKING:
    from pipeline_lab.stages.stage import Stage
    from pipeline_lab.statistics.streams import IntArray  # loads numpy, which validating options does without

CHANNELS = 3
LABEL_AND_ID_BYTES = 16
FLOAT_BYTES = 4

TAKEN_NS = 1000.0
"""Time of a stage that does next to nothing with an example and was not measured: repeat, shuffle, a cache in memory."""


@dataclass(frozen=True)
class Amount:
    """What comes out of a stage.

    Attributes:
        elements: Examples, or batches after ``batch``; infinite after an endless repeat.
        examples: Examples in all of them.
    """

    elements: float
    examples: float

    @property
    def is_endless(self) -> bool:
        return math.isinf(self.elements)


@dataclass(frozen=True)
class Element:
    """One element after a stage.

    Attributes:
        examples: Examples in it: 1, or the batch size after ``batch``.
        example_bytes: Bytes of one example; None for a user's records, whose size is not known before they are read.
        is_decoded: Images are pixels, not JPEG.
        image_size: Height and width of an image, pixels; 0 where there is none.
        number_bytes: Bytes of one number of an image.
    """

    examples: int
    example_bytes: int | None
    is_decoded: bool
    image_size: int = field(default=0, compare=False)
    number_bytes: int = field(default=1, compare=False)

    @property
    def size_bytes(self) -> int | None:
        return None if self.example_bytes is None else self.examples * self.example_bytes

    def as_pixels(self, image_size: int, number_bytes: int) -> "Element":
        """Return the element as a decoded image of another size."""
        size_bytes = number_bytes * CHANNELS * image_size**2 + LABEL_AND_ID_BYTES
        return Element(self.examples, size_bytes, True, image_size, number_bytes)


@dataclass(frozen=True)
class Running:
    """How a stage runs.

    Attributes:
        calls: Calls that really run at once, 1 where it is serial.
        slots: Calls that are begun at once. Each holds its slot while the stage's own thread fetches its input.
        works_ahead: It has threads of its own, so that it works while the next stage does something else.
        held_examples: What its buffer holds, examples; 0 where it has none.
        uses_pool: Its calls run on the threads of the pool.
        keeps_order: Several of its calls run at once, and finished ones wait for slower ones before them.
    """

    calls: float = 1.0
    slots: float = math.inf
    works_ahead: bool = False
    held_examples: float = 0.0
    uses_pool: bool = False
    keeps_order: bool = False


class WorkloadTraits(Protocol):
    """What stages ask of the workload that they run for."""

    @property
    def lengths(self) -> str | None:
        """Say how long its examples are, where they differ and that is known."""

    def record(self) -> Element:
        """Return what the reader hands on."""

    def apply(self, stage: str, element: Element) -> Element:
        """Return what the workload's function for a stage makes of an element."""

    def padding_share(self, stage: "Stage") -> float | None:
        """Return the share of padding in the batches of a stage, 0 to 1; None where it is not known, 0.0 where there is none."""

    def is_random(self, stage: str) -> bool:
        """Say whether the workload's function for a stage gives something else each time it sees the same example."""

    def runs_python(self, stage: str) -> bool:
        """Say whether the workload's function for a stage runs Python, which TensorFlow's rewrites leave alone."""


@dataclass(frozen=True)
class Neighbors:
    """Where a stage is to stand.

    Attributes:
        before: The stages before it.
        after: Those after it.
        size: Examples in an element that comes to it; None where these are single ones.
    """

    before: tuple["Stage", ...]
    after: tuple["Stage", ...]
    size: int | None


@dataclass(frozen=True)
class Writing:
    """What a stage's source depends on beside its own fields.

    Attributes:
        index: Its place, which tells its folder on disk from those of others.
        function: What ``map`` calls for it.
        is_vectorized: That function sees whole batches.
        written: Lines that the workload writes for the stage in its own way; None where it does not.
    """

    index: int
    function: str
    is_vectorized: bool
    written: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Host:
    """Where a stage runs, and what is switched on around it.

    Attributes:
        threads: Q, of the pool.
        cores: N, that the job may use.
        size: Examples in an element after the stage.
        rewrites: TensorFlow may change the pipeline.
        deterministic: What the pipeline says of keeping the order.
        fused_batch: Size of the batches that TensorFlow fuses the stage with; None where it does not.
        workload: Whose functions are called.
        ran_parallel: It is known to be made parallel by TensorFlow's rewrites.
    """

    threads: int
    cores: float
    size: int
    rewrites: bool
    deterministic: bool | None
    fused_batch: int | None
    workload: WorkloadTraits
    ran_parallel: bool = False

    def calls(self, written: int | str) -> float:
        """Return the calls that run at once; AUTOTUNE goes up to the threads of the pool (2.21)."""
        return float(self.threads if isinstance(written, str) else min(written, self.threads))

    def keeps_order(self, own: bool | None) -> bool:
        return own if own is not None else self.deterministic is not False


@dataclass(frozen=True, eq=False)
class Reading:
    """What a stage's part in the order of the records depends on.

    Attributes:
        files: How many there are.
        cores: Of the machine that runs it: tf.data chooses by them how many files to open where nobody says.
        size: Examples in an element that comes to the stage.
        buckets: Bucket of each record, shape (records,); None where lengths are not known.
    """

    files: int
    cores: int
    size: int
    buckets: "IntArray | None" = None


class Weight(StrEnum):
    """How much a remark matters."""

    PROBLEM = "problem"
    """Something is lost: randomness, data, memory without bound, the whole job."""
    ADVICE = "advice"
    """A known way to be faster, or to mix better."""
    FACT = "fact"
    """What a stage will hold or do, worth knowing."""


@dataclass(frozen=True)
class Remark:
    """One remark on a pipeline, before anything runs.

    Attributes:
        kind: Short name of the rule, the same for every remark of it.
        weight: How much it matters.
        stage: Index of the stage it is about; None for the pipeline as a whole.
        sentence: What it is, and what to do where something can be done.
    """

    kind: str
    weight: Weight
    stage: int | None
    sentence: str


@dataclass(frozen=True, eq=False)
class Position:
    """Where a stage stands in a whole pipeline, for what is to be said about it.

    Attributes:
        index: Its place.
        stages: All stages.
        sizes: Examples in an element after each of them; None for single ones.
        elements: What each hands on.
        amounts: How much each hands on in one pass over the data; None where nobody knows.
        file_sizes: Examples in each file; None where nobody knows.
        workload: Whose functions are called.
        pool: Threads of the pool, where they are set.
        rewrites: TensorFlow may change the pipeline.
    """

    index: int
    stages: tuple["Stage", ...]
    sizes: tuple[int | None, ...]
    elements: tuple[Element, ...]
    amounts: tuple[Amount, ...] | None
    file_sizes: tuple[int, ...] | None
    workload: WorkloadTraits
    pool: int | None
    rewrites: bool

    @property
    def before(self) -> tuple["Stage", ...]:
        return self.stages[: self.index]

    @property
    def after(self) -> tuple["Stage", ...]:
        return self.stages[self.index + 1 :]

    @property
    def element(self) -> Element:
        return self.elements[self.index]

    @property
    def mixed_by(self) -> str | None:
        """Name what hands on another order each time before the stage; None where nothing does."""
        return next((name for stage in self.before if (name := stage.mixes) is not None), None)

    def remark(self, kind: str, weight: Weight, sentence: str) -> Remark:
        return Remark(kind, weight, self.index, sentence)
