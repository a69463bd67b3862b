"""What the job reads and trains on."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import FileSizes, Options
from pipeline_lab.options.audio_workload import AudioWorkload as AudioWorkload
from pipeline_lab.options.class_folders import check_folder
from pipeline_lab.options.module_workload import ModuleWorkload as ModuleWorkload
from pipeline_lab.options.records_workload import RecordsWorkload as RecordsWorkload

FLOAT_BYTES = 4


class ImagesWorkload(Options):
    """Train a small residual network on images in TFRecord files, or in a folder."""

    kind: Literal["images"] = "images"
    data: Literal["digits", "cifar10", "random", "files", "folder"] = "digits"
    """``digits``: scikit-learn's 1,797 real digits, scaled up; ``cifar10``: 50,000 photographs, downloaded by Keras;
    ``random``: noise images; ``files``: your TFRecords; ``folder``: your JPEG and PNG files, a subfolder for each class."""
    image_size: int = Field(32, ge=8, le=1024)
    """Height and width of the images as they leave `parse`, pixels; your own are scaled to it."""
    examples_per_file: FileSizes = (512,) * 8
    pattern: str | None = Field(None, max_length=4096)
    """For ``data = files``: a glob of TFRecord files that hold `image` (encoded) and `label` (int64)."""
    folder: str | None = Field(None, max_length=4096)
    """For ``data = folder``: where the subfolders lie."""
    image_feature: str = Field("image", min_length=1, max_length=200)
    label_feature: str = Field("label", min_length=1, max_length=200)
    classes: int = Field(10, ge=2, le=100_000)
    """Outputs of the network: more than the largest label, at least as many as there are subfolders."""

    @model_validator(mode="after")
    def _places_fit_the_data(self) -> "ImagesWorkload":
        check_folder(self.data, self.folder)
        if self.data == "files" and not self.pattern:
            raise ValueError("data = files needs a pattern, such as /data/train-*.tfrecord")
        if self.data != "files" and self.pattern:
            raise ValueError(f"a pattern only applies to data = files, not to data = {self.data}; remove one of them")
        return self

    @property
    def is_made(self) -> bool:
        """Say whether the lab writes the records, with an id in each."""
        return self.data in ("digits", "cifar10", "random")


class SparseWorkload(Options):
    """Train on sparse features, as recommenders and click models do; with `training.replicas` on several devices."""

    kind: Literal["sparse"] = "sparse"
    examples_per_file: FileSizes = (2000,) * 4
    features: int = Field(17, ge=1, le=1000)
    """Sparse features of an example; each crosses from tf.data to the step on its own."""
    values_per_feature: int = Field(8, ge=1, le=10_000)
    """Values of a feature in an example, on average; from one to twice as many less one."""
    vocabulary_size: int = Field(10_000, ge=2, le=10_000_000)
    """Different values of a feature."""
    embedding_size: int = Field(16, ge=1, le=4096)
    """Length of the vector that stands for a value; the tables stay on the host and are not trained."""


class FeaturesWorkload(Options):
    """Train on captions of images, each with the vector of its image: stored with every caption, or once in a table."""

    kind: Literal["features"] = "features"
    examples_per_file: FileSizes = (1000,) * 4
    captions_per_image: int = Field(20, ge=1, le=10_000)
    """Captions that share one image, and so one vector; they lie far apart in the data."""
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


class GeneratorWorkload(Options):
    """Train on examples that Python makes on the fly (`from_generator`); nothing is read from files."""

    kind: Literal["generator"] = "generator"
    examples_per_generator: FileSizes = (8000,)
    """Examples of each generator; the read stage visits generators as it would visit files."""
    examples_at_once: int = Field(1, ge=1, le=100_000)
    """Examples that a generator yields at a time; more than one is a batch made in Python, rebatched by `batch`."""
    example_ms: float = Field(0.1, ge=0, le=60_000)
    """Python's work on each example, ms; only one thread of a process at a time can do it."""
    producer: Literal["in_line", "threads", "processes"] = "in_line"
    """Who makes the examples: the generator itself, threads, or processes, which hand them over through a queue."""
    workers: int = Field(2, ge=1, le=256)
    """Threads or processes of each generator."""
    ids: Literal["numbers", "strings"] = "numbers"
    """strings: every example also carries a name that says nothing, as records of a database do; it comes back with the
    example in the run's `names.arrows`."""
    element_bytes: int = Field(1024, ge=8, le=100_000_000)
    """Payload of one example, bytes."""
    compute_ms: float = Field(10.0, ge=0, le=600_000)
    """Time of the training step on one batch, ms."""


class SyntheticWorkload(Options):
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

    @property
    def has_map_time(self) -> bool:
        """Say whether the `map` stage takes any time."""
        return self.map_ms > 0 or (self.tail_every > 0 and self.tail_ms > 0)


AssembledWorkload = (
    ImagesWorkload
    | AudioWorkload
    | SparseWorkload
    | FeaturesWorkload
    | RecordsWorkload
    | GeneratorWorkload
    | SyntheticWorkload
)
"""Workloads whose pipeline the lab puts together from stages."""

WorkloadModel = AssembledWorkload | ModuleWorkload

Workload = Annotated[WorkloadModel, Field(discriminator="kind")]

WORKLOAD_TYPES: dict[str, type[WorkloadModel]] = {
    "images": ImagesWorkload,
    "audio": AudioWorkload,
    "sparse": SparseWorkload,
    "features": FeaturesWorkload,
    "records": RecordsWorkload,
    "generator": GeneratorWorkload,
    "synthetic": SyntheticWorkload,
    "module": ModuleWorkload,
}
"""Every workload by its name, in the order in which forms offer them."""

OWN_STAGES: dict[str, tuple[str, ...]] = {
    "images": ("parse", "views", "augment"),
    "audio": ("parse",),
    "sparse": ("parse",),
    "features": ("parse", "lookup"),
    "records": ("parse",),
    "generator": (),
    "synthetic": ("map",),
    "module": (),
}
"""Stages that only some workloads have a function for."""

ON_REQUEST = frozenset({"views"})
"""Own stages that a workload does well without."""
