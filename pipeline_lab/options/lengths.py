"""Examples that differ in length, and which ways of batching suit them."""

from pipeline_lab.options.pipeline import BatchStage, PipelineOptions
from pipeline_lab.options.workload import SyntheticWorkload, WorkloadModel


def has_varied_lengths(workload: WorkloadModel) -> bool:
    """Say whether the examples of a workload differ in length."""
    return isinstance(workload, SyntheticWorkload) and workload.varied_lengths


def check_lengths(workload: WorkloadModel, pipeline: PipelineOptions) -> None:
    """Refuse ways of batching that do not suit the lengths of the examples.

    Raises:
        ValueError: One of them is used.
    """
    modes = [stage.mode for stage in pipeline.stages if isinstance(stage, BatchStage)]
    if not has_varied_lengths(workload):
        for mode in modes:
            if mode != "batch":
                raise ValueError(
                    f"{mode} is for examples of different lengths, and those of the {workload.kind} workload are alike; "
                    "set mode = batch"
                )
        return
    for stage, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True):
        if stage.stage in ("parse", "map") and size is not None:
            raise ValueError(f"records of different lengths are taken apart one by one; put {stage.stage} before batch")
        if stage.stage == "rebatch":
            raise ValueError(
                "batches of different lengths cannot be cut and joined; use unbatch and batch, not rebatch"
            )
    if "batch" in modes:
        raise ValueError(
            f"batch stacks examples of one length, and those of the {workload.kind} workload differ; "
            "set mode = padded_batch or ragged_batch"
        )
