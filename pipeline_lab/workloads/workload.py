"""What every workload declares: its options, its stages, its source, its data, what its training step can do, and
what the form needs.

A workload is one module here (:class:`Workload` with its options) and one in :mod:`pipeline_lab.worker.workloads`,
which makes its data and its training step with TensorFlow. :mod:`pipeline_lab.workloads.registry` lists them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline_lab.data_classes import dataclass
from pipeline_lab.fields import Options
from pipeline_lab.stages.code import Code
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import Element, Position, Remark, Weight
from pipeline_lab.units import format_count

if TYPE_CHECKING:
    from pipeline_lab.stages.pipeline import StageSequence
    from pipeline_lab.statistics.streams import IntArray


ID_BYTES = 8
RECORD_FRAME_BYTES = 64
PATH_BYTES = 100
"""Of a file's path, with its label and id."""


@dataclass(frozen=True)
class WorkloadSource:
    """A workload's part of the module.

    Attributes:
        about: Comments at the top of the module: what its elements are.
        code: Imports, constants and functions.
        written: What writes the lines of a stage in the workload's own way, by the stage's name; ``read`` among them.
        functions: What ``map`` calls for a stage, by the stage's name; a function of the same name where none is given.
        over: What the pipeline is built over.
    """

    about: tuple[str, ...]
    code: Code
    written: Mapping[str, Callable[[Any], Sequence[str]]]
    functions: Mapping[str, str] = field(default_factory=dict)
    over: str = "over TFRecord files"


class Workload(Options):
    """What a job reads and trains on; what a subclass does not declare is as most workloads have it."""

    kind: str = ""

    own_stages: ClassVar[tuple[str, ...]] = ()
    """Stages that call a function of this workload, in the order in which its pipeline needs them."""
    optional_stages: ClassVar[frozenset[str]] = frozenset()
    """Those of them that it does well without."""
    is_code: ClassVar[bool] = False
    """The user's own code makes dataset and step; there are no stages to choose."""
    has_files: ClassVar[bool] = True
    """It reads files that can be held out, dropped from the page cache and simulated."""
    step_options: ClassVar[frozenset[str]] = frozenset()
    """Training options that its step knows and those of other workloads do not: precision, xla, accumulate, replicas."""
    decides: ClassVar[tuple[str, ...]] = ()
    """Training options that its own code stands in for."""
    made_by_python: ClassVar[bool] = False
    """Python makes its examples, which only one thread of a process at a time can do."""
    computes: ClassVar[bool] = True
    """Its step computes something, and does not only take time."""
    sorts_by_length: ClassVar[bool] = False
    """Its examples have a length that `bucket_by_sequence_length` can sort by."""
    parses_batches: ClassVar[bool] = False
    """Its records are best parsed in whole batches, so forms put its own stages after `batch`."""
    finds_features: ClassVar[bool] = False
    """What its records hold can be read from the files; forms offer to."""

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        """Write its part of the module that builds a pipeline.

        Args:
            pipeline: What is built.
            has_probe: Carry file and record number of each example along, where its records carry no id.
        """
        raise NotImplementedError

    def whole_source(self, ending: Sequence[str]) -> str | None:
        """Write the whole module where the user's code builds the dataset; None where stages do.

        Args:
            ending: Lines for what the pipeline sets besides its stages.
        """
        return None

    def check(self, pipeline: PipelineOptions) -> None:
        """Refuse a pipeline that does not suit the workload.

        Raises:
            ValueError: The first thing that does not.
        """

    def varies_in(self, pipeline: PipelineOptions) -> bool:
        """Say whether the examples that a pipeline puts into batches differ in length."""
        return self.has_varied_lengths

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        """Examples in each file or generator; None for the user's own data, which a job counts when it starts."""
        return None

    @property
    def users_pattern(self) -> str | None:
        """The glob that names the user's own files; None where nothing is named so."""
        return None

    @property
    def users_folder(self) -> str | None:
        """The folder of the user's own files; None where none is named."""
        return None

    def no_room(self, memory_bytes: int) -> str | None:
        """Return why a job cannot fit into so much memory, as a sentence; None if it can, as far as that is known."""
        return None

    @property
    def has_names(self) -> bool:
        """Say whether each example carries a name besides its id."""
        return False

    @property
    def has_labels(self) -> bool:
        """Say whether its outputs can be held against labels."""
        return True

    @property
    def known_fields(self) -> frozenset[str]:
        """Fields whose change has an effect that is known: they are times, or the length of an epoch."""
        return frozenset({"examples_per_file"})

    @property
    def sleeps(self) -> bool:
        """Say whether the times that it sets pass without a core."""
        return False

    @property
    def spins(self) -> bool:
        """Say whether the time that it sets for its step keeps a core busy."""
        return False

    @property
    def step_ns(self) -> float:
        """Time that it sets for its step, ns; 0 where the step computes something."""
        return 0.0

    @property
    def pause_ns(self) -> float:
        """Python work between two steps, ns."""
        return 0.0

    def set_ns(self, stage: str) -> float:
        """Return the time per example that its own numbers set for a stage, ns; 0 where none do."""
        return 0.0

    def order_ns(self, stage: str, examples: float, held_examples: float) -> float:
        """Return what it takes to hand on the examples in order where some of them are known to be slow, ns.

        Args:
            stage: Whose calls run at the same time.
            examples: To be handed on.
            held_examples: That may wait while a slow one is processed.
        """
        return 0.0

    def examples_per_call(self, stage: str) -> int:
        """Return the examples that one call of a stage's function makes."""
        return 1

    @property
    def needs_probe(self) -> bool:
        """Say whether its records carry no id, so that only a rewritten reader can tell their origin."""
        return False

    @property
    def has_varied_lengths(self) -> bool:
        """Say whether its examples differ in length."""
        return False

    @property
    def lengths(self) -> str | None:
        """Say how long its examples are, where they differ and that is known."""
        return None

    @property
    def record_bytes(self) -> int | None:
        """Bytes of one record; None for the user's own, whose size is not known before they are read."""
        return None

    def record(self) -> Element:
        """Return what the reader hands on."""
        return Element(1, self.record_bytes, is_decoded=False)

    def apply(self, stage: str, element: Element) -> Element:
        """Return what its function for a stage makes of an element."""
        return element

    def padding_share(self, stage: Stage) -> float | None:
        """Return the share of padding in the batches of a stage, 0 to 1; None where it is not known."""
        return 0.0

    def buckets(self, stages: "StageSequence", file_sizes: tuple[int, ...] | None) -> "IntArray | None":
        """Return the bucket that each record falls into where a stage sorts by length, shape (records,).

        Returns:
            None where no stage does, or where lengths are not known.
        """
        return None

    def remarks(self, places: Sequence[Position]) -> Iterator[Remark]:
        """Say what is worth knowing about it in a pipeline, of which the place of each stage is given."""
        yield from ()

    def is_random(self, stage: str) -> bool:
        """Say whether its function for a stage gives something else each time it sees the same example."""
        return False

    def runs_python(self, stage: str) -> bool:
        """Say whether its function for a stage runs Python, which TensorFlow's rewrites leave alone."""
        return False


def check_folder(data: str, folder: str | None) -> None:
    """Refuse a folder without ``data = folder``, and the other way round."""
    if data == "folder" and not folder:
        raise ValueError("data = folder needs a folder with a subfolder for each class")
    if data != "folder" and folder:
        raise ValueError(f"a folder only applies to data = folder, not to data = {data}; remove one of them")
    if folder and any(letter in folder for letter in "*?["):
        raise ValueError("TensorFlow takes *, ? and [ in a path for a pattern; name a folder without them")


def class_by_class(places: Sequence[Position]) -> Iterator[Remark]:
    """Say what reading in order means where every class lies in a folder of its own, of a size that is not known yet."""
    stages = places[0].stages
    if stages[0].sizes_in_order(()) is None:
        return
    buffers = [stage.buffered for stage in stages if stage.buffered]
    yield places[0].remark(
        "class-by-class",
        Weight.ADVICE if buffers else Weight.PROBLEM,
        "Each class lies in a folder of its own, and folders are read one after the other: "
        + (
            f"unless the shuffle buffer of {format_count(max(buffers))} covers several classes, batches hold one or two "
            "of them; "
            if buffers
            else "without a shuffle every batch holds one class; "
        )
        + "set mode = interleave or sample.",
    )
