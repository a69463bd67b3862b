"""Rules about batches of clips that differ in length: how much of them will be padding."""

from collections.abc import Callable, Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.clip_lengths import predict_padding
from pipeline_lab.pipeline.finding import Finding, Weight, stages_of
from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.stores import StoreStage
from pipeline_lab.units import format_percent
from pipeline_lab.workloads.audio import AudioWorkload

MUCH_PADDING_PERCENT = 25.0


def _padding(options: RunOptions) -> Iterator[Finding]:
    workload = options.workload
    if not isinstance(workload, AudioWorkload):
        return
    for index, stage in enumerate(options.pipeline.stages):
        if not isinstance(stage, BatchStage | BucketStage):
            continue
        share = predict_padding(stage, workload)
        if share is None:
            continue
        is_much = 100 * share > MUCH_PADDING_PERCENT and isinstance(stage, BatchStage)
        if not share:
            yield Finding(
                "padding", Weight.FACT, index, "Each clip keeps its own length: no padding is sent to the steps."
            )
            continue
        advice = "; bucket_by_sequence_length, or mode = ragged_batch, sends less." if is_much else "."
        yield Finding(
            "padding",
            Weight.ADVICE if is_much else Weight.FACT,
            index,
            f"About {format_percent(100 * share)} of what the steps are sent will be padding, with clips of "
            f"{workload.shortest_s:g} to {workload.longest_s:g} s in shuffled order{advice}",
        )


def _kept_padding(options: RunOptions) -> Iterator[Finding]:
    workload = options.workload
    if not isinstance(workload, AudioWorkload):
        return
    padded = [
        (index, share)
        for index, stage in enumerate(options.pipeline.stages)
        if isinstance(stage, BatchStage | BucketStage) and (share := predict_padding(stage, workload))
    ]
    for index, stage in enumerate(options.pipeline.stages):
        if padded and index > padded[0][0] and isinstance(stage, StoreStage):
            yield Finding(
                "kept-padding",
                Weight.ADVICE,
                index,
                f"The {stage.stage} comes after the batch, so about {format_percent(100 * padded[0][1])} of what it keeps "
                "is padding, and every epoch has the batches of the first; put it behind parse.",
            )


def _dropped_lengths(options: RunOptions) -> Iterator[Finding]:
    for index, stage in stages_of(options, BucketStage):
        before = options.amounts[index - 1] if options.amounts and index else None
        if stage.drop_remainder and before is not None and not before.is_endless:
            yield Finding(
                "dropped-lengths",
                Weight.ADVICE,
                index,
                f"drop_remainder throws away up to {max(stage.batch_sizes) - 1} clips of each bucket at the end of the "
                "data, most of those whose length is rare; switch it off, or put repeat before.",
            )


PADDING_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (_padding, _kept_padding, _dropped_lengths)
