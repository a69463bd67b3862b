"""Captions of images, and the vector of each image: stored with every caption, or once in a table.

The tables are next to the files: ``vectors.npy``, or ``vectors-00000-of-00004.npy`` and so on, rows by image.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.code import Code, wanted
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, read_lines
from pipeline_lab.stages.stage_values import FLOAT_BYTES, LABEL_AND_ID_BYTES, Element, Position, Remark, Weight
from pipeline_lab.units import format_bytes, format_count
from pipeline_lab.workloads.workload import ID_BYTES, RECORD_FRAME_BYTES, Workload, WorkloadSource

VARINT_BYTES = 2
"""A word's number in a record."""


LARGE_CONSTANT_BYTES = 50_000_000
"""A constant of 328 MB took 75 s and 5 GB before the first batch (measured with TensorFlow 2.21)."""

LARGEST_PROTOBUF_BYTES = 2**31 - 1


class FeaturesWorkload(Workload):
    """Train on captions of images, each with the vector of its image: stored with every caption, or once in a table."""

    kind: Literal["features"] = "features"
    examples_per_file: FileSizes = (1000,) * 4
    captions_per_image: int = Field(20, ge=1, le=10_000)
    """Captions that share one image, and so one vector; they are far apart in the data."""
    vector_size: int = Field(4096, ge=1, le=1_000_000)
    """Numbers in an image's vector, four bytes each."""
    layout: Literal["replicated", "lookup", "constant", "variable", "sharded"] = "lookup"
    """``replicated``: the vector in every caption's record. In the others a record holds the image's number:
    ``lookup``: the table stays on disk, memory-mapped; ``constant``: it is part of the pipeline's graph; ``variable``:
    it is one variable; ``sharded``: several variables. Without a `lookup` stage the training step reads the variables."""
    table_shards: int = Field(4, ge=2, le=1000)
    """sharded: files and variables that the table is split into."""
    caption_words: int = Field(12, ge=1, le=1000)
    vocabulary_size: int = Field(10_000, ge=2, le=10_000_000)
    """Different words."""
    embedding_size: int = Field(64, ge=1, le=4096)
    """Length of the vectors that captions and images are compared by."""

    matters: ClassVar = ("examples_per_file", "vector_size", "layout")
    own_stages: ClassVar = ("parse", "lookup")
    shown_with: ClassVar = {"table_shards": ("layout", ("sharded",))}

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        is_replicated, looks_up = self.layout == "replicated", pipeline.find("lookup") is not None
        what = "vector" if is_replicated or looks_up else "image"
        constants = {
            f"CAPTION_WORDS = {self.caption_words}": True,
            f"VECTOR_SIZE = {self.vector_size}": is_replicated or (looks_up and self.layout == "lookup"),
            "FEATURES = {": True,
            '    "caption": tf.io.FixedLenFeature([CAPTION_WORDS], tf.int64),': True,
            '    "vector": tf.io.FixedLenFeature([VECTOR_SIZE], tf.float32),': is_replicated,
            '    "image": tf.io.FixedLenFeature([], tf.int64),': not is_replicated,
            '    "label": tf.io.FixedLenFeature([], tf.int64),': True,
            '    "id": tf.io.FixedLenFeature([], tf.int64),': True,
            "}": True,
        }
        parse = _PARSE_BATCH if pipeline.is_vectorized("parse") else _PARSE
        loads = looks_up and self.layout in ("variable", "sharded")
        functions = [parse, *([_LOAD] if loads else []), *([_LOOK_UP[self.layout]] if looks_up else [])]
        imports = {
            "import functools": loads,
            "import os": looks_up,
            "from collections.abc import Callable": looks_up,
            "import numpy as np": looks_up,
        }
        return WorkloadSource(
            about=(
                f'Elements are batches of {{"caption", "{what}", "label", "id"}}; label 1: the caption fits its image.',
            ),
            code=Code(wanted(imports), wanted(constants), tuple(text.strip() for text in functions)),
            written={"read": lambda read: read_lines(read, PerFile.PLAIN)},
            functions={"lookup": "look_up_in(files)"},
        )

    def check(self, pipeline: PipelineOptions) -> None:
        kinds = [stage.stage for stage in pipeline.stages]
        if self.layout == "replicated" and "lookup" in kinds:
            raise ValueError("records of the replicated layout hold their vectors; remove the lookup stage")
        if self.layout in ("lookup", "constant") and "lookup" not in kinds:
            raise ValueError(
                f"the {self.layout} layout needs a lookup stage, which reads the table; only variables can be read by the "
                "training step"
            )
        if "lookup" in kinds and kinds.index("lookup") < kinds.index("parse"):
            raise ValueError("lookup needs the number of the image, which parse reads; put parse before it")
        if self.layout == "constant" and self.table_bytes > LARGEST_PROTOBUF_BYTES:
            raise ValueError(
                f"a table of {format_bytes(self.table_bytes)} cannot be a constant: TensorFlow writes constants into its "
                "graph, a protobuf message, and those end at 2 GB; choose the layout lookup, variable or sharded"
            )

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return self.examples_per_file

    def no_room(self, memory_bytes: int) -> str | None:
        if self.held_bytes <= memory_bytes:
            return None
        return (
            f"The table of vectors takes {format_bytes(self.held_bytes)}, but this job may use {format_bytes(memory_bytes)} of "
            "memory here; choose the layout lookup, which leaves the table on disk, or fewer or shorter vectors."
        )

    @property
    def images(self) -> int:
        """Different images, and rows of the table."""
        return -(-sum(self.examples_per_file) // self.captions_per_image)

    @property
    def vector_bytes(self) -> int:
        return self.vector_size * FLOAT_BYTES

    @property
    def table_bytes(self) -> int:
        """Size of the table that holds each image's vector once."""
        return self.images * self.vector_bytes

    @property
    def held_bytes(self) -> int:
        """What of the table has to fit into memory."""
        return self.table_bytes if self.layout in ("constant", "variable", "sharded") else 0

    @property
    def record_bytes(self) -> int:
        vector_bytes = self.vector_bytes if self.layout == "replicated" else 0
        return vector_bytes + VARINT_BYTES * self.caption_words + 2 * RECORD_FRAME_BYTES

    def apply(self, stage: str, element: Element) -> Element:
        if stage == "parse":
            image_bytes = self.vector_bytes if self.layout == "replicated" else ID_BYTES
            return replace(element, example_bytes=image_bytes + self.caption_words * ID_BYTES + LABEL_AND_ID_BYTES)
        if stage == "lookup" and element.example_bytes is not None:
            return replace(element, example_bytes=element.example_bytes + self.vector_bytes)
        return element

    def remarks(self, places: Sequence[Position]) -> Iterator[Remark]:
        """Say what its vectors cost where they are looked up, kept and shuffled."""
        found = next((place for place in places if place.stages[place.index].stage == "lookup"), None)
        if found is not None:
            yield from self._remarks_on_lookup(found, places)
        where, table = None if found is None else found.index, format_bytes(self.table_bytes)
        if self.layout == "replicated" and self.captions_per_image > 1:
            stored = format_bytes(sum(self.examples_per_file) * self.vector_bytes)
            yield places[0].remark(
                "replicated-vectors",
                Weight.ADVICE,
                f"Every vector is stored {format_count(self.captions_per_image)} times, {stored} in all, and read as "
                f"often; once each in a table they take {table}: choose another layout.",
            )
        elif self.layout == "lookup":
            sentence = f"The table of vectors takes {table} on disk; of it, memory holds what was read lately."
            yield Remark("table", Weight.FACT, where, sentence)
        elif self.layout == "constant" and self.table_bytes > LARGE_CONSTANT_BYTES:
            yield Remark(
                "large-constant",
                Weight.ADVICE,
                where,
                f"The table is a constant of {table}, which TensorFlow copies over and over while it builds the pipeline: that "
                "takes many times its size in memory, and minutes; a variable is not copied.",
            )
        elif self.held_bytes:
            sentence = f"The table of vectors takes {table} on disk, and as much memory while the job runs."
            yield Remark("table", Weight.FACT, where, sentence)

    def _remarks_on_lookup(self, lookup: Position, places: Sequence[Position]) -> Iterator[Remark]:
        for place, stage in zip(places[lookup.index + 1 :], lookup.after, strict=True):
            if stage.buffered or stage.keeps:
                yield place.remark(
                    "early-lookup",
                    Weight.ADVICE,
                    f"{stage.stage} comes after lookup and so holds vectors of {format_bytes(self.vector_bytes)}; before "
                    "lookup it would hold the numbers of the images instead.",
                )
        if self.layout == "lookup" and lookup.sizes[lookup.index] is None:
            yield lookup.remark(
                "lookup-by-example",
                Weight.ADVICE,
                "lookup comes before batch, so Python is called for every example, one call at a time; after batch it reads "
                "all rows of a batch in one call.",
            )


_PARSE = '''
def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Read one caption."""
    return tf.io.parse_single_example(record, FEATURES)
'''

_PARSE_BATCH = '''
def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
    """Read a batch of captions."""
    return tf.io.parse_example(records, FEATURES)
'''

_MAPPED = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Map the table next to the files into memory; Python reads the requested rows from disk."""
    table = np.load(os.path.join(os.path.dirname(files[0]), "vectors.npy"), mmap_mode="r")

    def read_rows(image: np.ndarray) -> np.ndarray:
        return np.asarray(table[image])

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        vector = tf.numpy_function(read_rows, [example["image"]], tf.float32)
        return {**example, "vector": tf.ensure_shape(vector, [*example["image"].shape, VECTOR_SIZE])}

    return look_up
'''

_CONSTANT = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Open the table next to the files; it becomes a constant in the graph of the pipeline."""
    table = np.load(os.path.join(os.path.dirname(files[0]), "vectors.npy"), mmap_mode="r")

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.gather(table, example["image"])}

    return look_up
'''

_LOAD = '''
@functools.cache
def load_table(path: str) -> tf.Variable:
    """Load a table into a variable, once, however often the pipeline is built."""
    with tf.device("/CPU:0"):
        return tf.Variable(np.load(path, mmap_mode="r"), trainable=False)
'''

_VARIABLE = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Look up in the table next to the files."""
    table = load_table(os.path.join(os.path.dirname(files[0]), "vectors.npy"))

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.gather(table, example["image"])}

    return look_up
'''

_SHARDED = '''
def look_up_in(files: list[str]) -> Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]]:
    """Look up in the parts of the table next to the files; rows continue from part to part."""
    names = sorted(tf.io.gfile.glob(os.path.join(os.path.dirname(files[0]), "vectors-*.npy")))
    parts = [load_table(name) for name in names]

    def look_up(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {**example, "vector": tf.nn.embedding_lookup(parts, example["image"])}

    return look_up
'''

_LOOK_UP = {"lookup": _MAPPED, "constant": _CONSTANT, "variable": _VARIABLE, "sharded": _SHARDED}
