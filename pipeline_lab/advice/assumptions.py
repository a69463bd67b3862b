"""What a prediction takes for granted, in sentences."""

from collections.abc import Iterator

from pipeline_lab.advice.measured import Measured
from pipeline_lab.advice.running import full_cache
from pipeline_lab.advice.workloads import CONSTANT_STEPS, function_ms
from pipeline_lab.options.pipeline import PipelineOptions
from pipeline_lab.options.read_stage import ReadStage
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.stages import PrefetchStage
from pipeline_lab.pipeline.clip_lengths import examples_sent
from pipeline_lab.units import format_percent
from pipeline_lab.workloads.registry import FUNCTION_STAGES

BUSY_SHARE = 0.2
"""Part of the cores that others may use before it is worth a word."""


NOISY_PERCENT = 10.0
"""How uncertain a run's own step time may be before it is worth a word, percent."""


def find_notes(measured: Measured, options: RunOptions) -> tuple[str, ...]:
    """Name what the prediction for changed options rests on beside what the run measured, and what makes it unsure."""
    return (*_epochs(measured), *_doubts(measured), *_notes(measured.options, options))


def _epochs(measured: Measured) -> Iterator[str]:
    if measured.from_step is not None:
        yield (
            f"The run is taken from step {measured.from_step} on, behind its first epoch, in which a step takes another "
            "time; the prediction is for such later epochs."
        )


def _doubts(measured: Measured) -> Iterator[str]:
    if measured.other_cores > BUSY_SHARE * measured.cores:
        yield (
            f"Other programs used {measured.other_cores:.1f} of {measured.cores:.0f} cores while the run was measured, so "
            "all of it is less sure."
        )
    if measured.noise_percent > NOISY_PERCENT:
        yield (
            f"The run's own step time is only known to ± {format_percent(measured.noise_percent)}; a longer run on a quiet "
            "machine predicts better."
        )


def _notes(before: RunOptions, after: RunOptions) -> Iterator[str]:
    old, new = before.pipeline, after.pipeline
    if old.batch_size != new.batch_size and not isinstance(before.workload, CONSTANT_STEPS):
        yield "The training step is taken to grow with the batch."
    elif examples_sent(before) != examples_sent(after):
        yield "The training step is taken to grow with what it is sent, padding included."
    for stage in sorted(FUNCTION_STAGES):
        if _sees_batches(old, stage) != _sees_batches(new, stage) and not function_ms(stage, after.workload):
            yield f"What {stage} gains by seeing whole batches is a guess from small images; race it to be sure."
    if full_cache(after) is not None and full_cache(before) is None:
        yield "The first epoch fills the cache and takes as long as before; the prediction is for those after it."
    if _tuned(new) - _tuned(old):
        yield "AUTOTUNE is taken to use all threads of the pool where they are needed."
    if _read_mode(old) != _read_mode(new):
        yield "Reading is taken to cost as much for each record as it did."


def _sees_batches(pipeline: PipelineOptions, stage: str) -> bool | None:
    sizes = {each.stage: size for each, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True)}
    return sizes[stage] is not None if stage in sizes else None


def _tuned(pipeline: PipelineOptions) -> set[str]:
    return {
        stage.stage
        for stage in pipeline.stages
        if not isinstance(stage, PrefetchStage) and getattr(stage, "num_parallel_calls", None) == "autotune"
    }


def _read_mode(pipeline: PipelineOptions) -> str | None:
    read = pipeline.find("read")
    return read.mode if isinstance(read, ReadStage) else None
