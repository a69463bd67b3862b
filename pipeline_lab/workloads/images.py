"""Images in TFRecord files, or in a folder with a subfolder for each class."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.stage import CHANNELS, Element, Place, Remark
from pipeline_lab.workloads.workload import PATH_BYTES, RECORD_FRAME_BYTES, Workload, check_folder, class_by_class

_JPEG_SHARE = {"digits": 0.33, "cifar10": 0.45, "random": 0.85}
"""Size of a JPEG over that of its pixels: drawn digits compress well, noise does not; of photographs, a rough guess."""


class ImagesWorkload(Workload):
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

    own_stages: ClassVar = ("parse", "views", "augment")
    optional_stages: ClassVar = frozenset({"views"})
    shown_with: ClassVar = {
        "folder": ("data", ("folder",)),
        "pattern": ("data", ("files",)),
        "image_feature": ("data", ("files",)),
        "label_feature": ("data", ("files",)),
        "examples_per_file": ("data", ("digits", "cifar10", "random")),
    }
    step_options: ClassVar = frozenset({"precision", "xla", "accumulate", "replicas"})

    def check(self, pipeline: PipelineOptions) -> None:
        size = self.image_size
        for stage, behind in zip(pipeline.stages, self.image_sizes(pipeline), strict=True):
            if isinstance(stage, ViewsStage) and stage.size > size:
                raise ValueError(f"views of {stage.size} pixels do not fit into images of {size} pixels")
            if isinstance(stage, AugmentStage):
                padded = size + 2 * stage.pad
                if stage.crop is not None and stage.crop > padded:
                    raise ValueError(f"a crop of {stage.crop} does not fit into padded images of {padded} pixels")
                if stage.cutout > (stage.crop or size):
                    raise ValueError(f"a cutout of {stage.cutout} is larger than the image; make it smaller")
            size = behind

    def image_sizes(self, pipeline: PipelineOptions) -> tuple[int, ...]:
        """Return height and width of the images behind each stage, pixels."""
        sizes, size = [], self.image_size
        for stage in pipeline.stages:
            if isinstance(stage, ViewsStage):
                size = stage.size
            elif isinstance(stage, AugmentStage):
                size = stage.crop or size + 2 * stage.pad
            sizes.append(size)
        return tuple(sizes)

    @model_validator(mode="after")
    def _places_fit_the_data(self) -> "ImagesWorkload":
        check_folder(self.data, self.folder)
        if self.data == "files" and not self.pattern:
            raise ValueError("data = files needs a pattern, such as /data/train-*.tfrecord")
        if self.data != "files" and self.pattern:
            raise ValueError(f"a pattern only applies to data = files, not to data = {self.data}; remove one of them")
        return self

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        return self.examples_per_file if self.is_made else None

    @property
    def users_pattern(self) -> str | None:
        return self.pattern

    @property
    def users_folder(self) -> str | None:
        return self.folder

    @property
    def needs_probe(self) -> bool:
        return self.data == "files"

    @property
    def is_made(self) -> bool:
        """Say whether the lab writes the records, with an id in each."""
        return self.data in ("digits", "cifar10", "random")

    @property
    def record_bytes(self) -> int | None:
        if self.data == "folder":
            return PATH_BYTES
        if self.data == "files":
            return None
        return round(_JPEG_SHARE[self.data] * CHANNELS * self.image_size**2) + RECORD_FRAME_BYTES

    def record(self) -> Element:
        return Element(1, self.record_bytes, is_decoded=False, image_size=self.image_size)

    def apply(self, stage: str, element: Element) -> Element:
        return element.as_pixels(self.image_size, 1) if stage == "parse" else element

    def remarks(self, places: Sequence[Place]) -> Iterator[Remark]:
        return class_by_class(places) if self.data == "folder" else iter(())
