"""What of the pipeline and the training a workload has no use for, or cannot do without, as it declares."""

from collections.abc import Iterator, Sequence
from itertools import chain

from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.workloads.registry import FUNCTION_STAGES, WORKLOADS
from pipeline_lab.workloads.workload import Workload


def check_fit(workload: Workload, pipeline: PipelineOptions, training: TrainingOptions) -> None:
    """Refuse what does not fit the workload.

    Raises:
        ValueError: The first thing that does not.
    """
    _check_stages(workload, {stage.stage for stage in pipeline.stages})
    workload.check(pipeline)
    for trouble in chain(_of_lengths(workload, pipeline), _of_training(training, workload, pipeline)):
        raise ValueError(trouble)


def _check_stages(workload: Workload, kinds: set[str]) -> None:
    """Refuse stages that the workload has no function for, and require the one that decodes its records."""
    if not kinds and not workload.is_code:
        raise ValueError(f"the {workload.kind} workload needs a pipeline with stages, from read to batch")
    own = workload.own_stages
    wrong = sorted(kinds & FUNCTION_STAGES.difference(own))
    if wrong:
        has = f"its own are {' and '.join(own)}" if own else "it has none of its own"
        raise ValueError(f"{' and '.join(wrong)} does not fit the {workload.kind} workload: {has}; remove it")
    if "parse" in own and "parse" not in kinds:
        raise ValueError(f"the {workload.kind} workload needs a parse stage that decodes the records")


def _of_lengths(workload: Workload, pipeline: PipelineOptions) -> Iterator[str]:
    """Find ways of batching that do not suit the lengths of the examples."""
    modes = [stage.mode for stage in pipeline.stages if isinstance(stage, BatchStage)]
    if workload.varies_in(pipeline):
        yield from _of_varied_lengths(workload, pipeline, modes)
    else:
        for mode in modes:
            if mode != "batch":
                yield (
                    f"{mode} is for examples of different lengths, and those of the {workload.kind} workload are alike; "
                    "set mode = batch"
                )
    if pipeline.find("bucket_by_sequence_length") is not None and not workload.sorts_by_length:
        yield (
            f"bucket_by_sequence_length sorts clips by their seconds, and the {workload.kind} workload has none; use batch"
        )


def _of_varied_lengths(workload: Workload, pipeline: PipelineOptions, modes: Sequence[str]) -> Iterator[str]:
    for stage, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True):
        if stage.stage in ("parse", "map") and size is not None:
            yield f"records of different lengths are parsed one by one; put {stage.stage} before batch"
        if stage.stage == "rebatch":
            yield "batches of different lengths cannot be cut and joined; use unbatch and batch, not rebatch"
    if "ragged_batch" in modes and pipeline.find("unbatch") is not None:
        yield "tf.data cannot batch again what it takes out of ragged batches; remove unbatch"
    if "batch" in modes:
        yield (
            f"batch stacks examples of one length, and those of the {workload.kind} workload differ; "
            "set mode = padded_batch or ragged_batch"
        )


def _of_training(training: TrainingOptions, workload: Workload, pipeline: PipelineOptions) -> Iterator[str]:
    """Find training that the workload's step and data cannot do."""
    for name in workload.decides:
        if training.is_set(name):
            yield f"training.{name} is up to the {workload.kind}'s own code; leave it"
    for name, rest in (("precision", "leave it at float32"), ("xla", "leave it out"), ("accumulate", "leave it out")):
        if training.is_set(name) and name not in workload.step_options:
            kinds = _with_step_option(name)
            steps = "steps" if len(kinds) > 1 else "step"
            yield f"training.{name} is for the {steps} of the {_join(kinds)} workload{steps[4:]}; {rest}"
    yield from _of_outputs(training, workload)
    if training.accumulate > 1 and pipeline.batch_size // training.replicas < training.accumulate:
        yield (
            f"training.accumulate cuts a replica's {pipeline.batch_size // training.replicas} examples into "
            f"{training.accumulate} micro-batches, some of them empty; make it smaller, or the batch larger"
        )
    if training.replicas > 1:
        yield from _of_replicas(training, workload, pipeline)
    if training.page_cache == "cold" and not workload.has_files and not workload.is_code:
        yield f"{workload.kind}s read no file that could be cold; set training.page_cache to warm"
    if training.held_out_files and not workload.has_files:
        yield f"the {workload.kind} workload has no files that training.held_out_files could hold out"


def _of_outputs(training: TrainingOptions, workload: Workload) -> Iterator[str]:
    if training.keep_outputs_of_step is None:
        return
    if not workload.computes:
        yield (
            f"the step of the {workload.kind} workload takes time and computes nothing, so training.keep_outputs_of_step has "
            "nothing to keep; leave it out"
        )
    if not workload.has_labels:
        yield "training.keep_outputs_of_step holds outputs against labels; set workload.label, or leave it out"


def _of_replicas(training: TrainingOptions, workload: Workload, pipeline: PipelineOptions) -> Iterator[str]:
    if "replicas" not in workload.step_options:
        kinds = [f"the {kind}" for kind in _with_step_option("replicas")]
        yield f"replicas share the batches of {_join(kinds)} workload; set training.replicas to 1"
    if any(isinstance(stage, BatchStage) and not stage.drop_remainder for stage in pipeline.stages):
        yield "a last batch that is smaller may leave a replica without examples; set drop_remainder of batch"
    if training.xla:
        yield "training.xla compiles the step of one device; set training.replicas to 1"
    if pipeline.find("prefetch_to_device"):
        yield "each batch is divided among the replicas, which prefetch_to_device does not know; use prefetch"


def _with_step_option(name: str) -> list[str]:
    return [kind for kind, workload in WORKLOADS.items() if name in workload.step_options]


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
