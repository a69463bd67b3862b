"""How large images are behind each stage, in pixels: what parse yields, what views and augment make of it."""

from collections.abc import Iterator

from pipeline_lab.stages.functions import AugmentStage, ViewsStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.images import ImagesWorkload


def image_sizes(workload: ImagesWorkload, pipeline: PipelineOptions) -> tuple[int, ...]:
    """Return height and width of the images behind each stage, pixels."""
    return tuple(_walk(workload.image_size, pipeline))


def _walk(size: int, pipeline: PipelineOptions) -> Iterator[int]:
    for stage in pipeline.stages:
        if isinstance(stage, ViewsStage):
            size = stage.size
        elif isinstance(stage, AugmentStage):
            size = stage.crop or size + 2 * stage.pad
        yield size
