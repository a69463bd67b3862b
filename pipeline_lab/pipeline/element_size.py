"""What one element is at each place of a pipeline, and how many bytes it takes, known before anything runs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.clip_lengths import frames_of, predict_padding
from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.functions import AugmentStage, LookupStage, ParseStage, ViewsStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import FLOAT_BYTES, Workload

CHANNELS = 3
ID_BYTES = 8
LABEL_AND_ID_BYTES = 16
RECORD_FRAME_BYTES = 64
VARINT_BYTES = 2
"""A word's number in a record."""
PATH_BYTES = 100
"""Of a file's path, with its label and id."""
_JPEG_SHARE = {"digits": 0.33, "cifar10": 0.45, "random": 0.85}
"""Size of a JPEG over that of its pixels: drawn digits compress well, noise does not; of photographs, a rough guess."""


@dataclass(frozen=True)
class Element:
    """One element behind a stage.

    Attributes:
        examples: Examples in it: 1, or the batch size behind ``batch``.
        example_bytes: Bytes of one example; None for a user's records, whose size is not known before they are read.
        is_decoded: Images are pixels, not JPEG.
    """

    examples: int
    example_bytes: int | None
    is_decoded: bool

    @property
    def size_bytes(self) -> int | None:
        return None if self.example_bytes is None else self.examples * self.example_bytes


def elements_behind(options: RunOptions) -> tuple[Element, ...]:
    """Describe the elements behind each stage, in the order of the stages."""
    return tuple(_walk(options))


def _walk(options: RunOptions) -> Iterator[Element]:
    element = Element(1, _record_bytes(options), is_decoded=False)
    stages, sizes = options.pipeline.stages, options.pipeline.batch_sizes
    for stage, size, pixels_bytes in zip(stages, sizes, _pixels_bytes(options), strict=True):
        element = _behind(stage, options.workload, replace(element, examples=size or 1), pixels_bytes)
        yield element


def _behind(stage: Stage, workload: Workload, element: Element, pixels_bytes: int) -> Element:
    """Return what a stage makes of an element's examples."""
    match stage, workload:
        case ParseStage() | ViewsStage() | AugmentStage(), ImagesWorkload():
            return replace(element, example_bytes=pixels_bytes + LABEL_AND_ID_BYTES, is_decoded=True)
        case ParseStage(), AudioWorkload():
            return replace(element, example_bytes=_clip_bytes(workload), is_decoded=True)
        case BatchStage() | BucketStage(), AudioWorkload() if element.example_bytes is not None:
            share = predict_padding(stage, workload) or 0.0
            return replace(element, example_bytes=round(element.example_bytes / (1 - share)))
        case ParseStage(), FeaturesWorkload():
            image_bytes = workload.vector_bytes if workload.layout == "replicated" else ID_BYTES
            numbers_bytes = workload.caption_words * ID_BYTES + LABEL_AND_ID_BYTES
            return replace(element, example_bytes=image_bytes + numbers_bytes)
        case LookupStage(), FeaturesWorkload() if element.example_bytes is not None:
            return replace(element, example_bytes=element.example_bytes + workload.vector_bytes)
    return element


def _clip_bytes(workload: AudioWorkload) -> int | None:
    """Return the size of a clip's spectra, on average."""
    if workload.data != "tones":
        return None
    numbers = frames_of(workload.mean_clip_s, workload) * (workload.frame_samples // 2 + 1)
    return round(FLOAT_BYTES * numbers) + LABEL_AND_ID_BYTES


def _pixels_bytes(options: RunOptions) -> Iterator[int]:
    """Yield the bytes of an image's pixels behind each stage; augment makes floats of them."""
    stages, workload = options.pipeline.stages, options.workload
    if not isinstance(workload, ImagesWorkload):
        yield from (0 for _ in stages)
        return
    number_bytes = 1
    for stage, size in zip(stages, workload.image_sizes(options.pipeline), strict=True):
        number_bytes = FLOAT_BYTES if isinstance(stage, AugmentStage) else number_bytes
        yield number_bytes * CHANNELS * size**2


def _record_bytes(options: RunOptions) -> int | None:
    match options.workload:
        case SparseWorkload() as sparse:
            return sparse.features * (sparse.values_per_feature * ID_BYTES + RECORD_FRAME_BYTES) + LABEL_AND_ID_BYTES
        case FeaturesWorkload() as features:
            vector_bytes = features.vector_bytes if features.layout == "replicated" else 0
            return vector_bytes + VARINT_BYTES * features.caption_words + 2 * RECORD_FRAME_BYTES
        case AudioWorkload() | ImagesWorkload(data="folder"):
            return PATH_BYTES
        case ImagesWorkload(data="files") | RecordsWorkload() | ModuleWorkload():
            return None
        case ImagesWorkload() as images:
            return round(_JPEG_SHARE[images.data] * CHANNELS * images.image_size**2) + RECORD_FRAME_BYTES
        case GeneratorWorkload() | SyntheticWorkload() as made:
            return made.element_bytes
