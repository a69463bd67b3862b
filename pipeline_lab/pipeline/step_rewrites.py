"""The rewrite that takes a map's function out of the pipeline: the training step calls it, where its batches have come to the device."""

from collections.abc import Iterator

from pipeline_lab.pipeline.chain import Chain, RewritePlace, said_at
from pipeline_lab.pipeline.changes import IntoStep
from pipeline_lab.pipeline.recipe import LOOP, TRAINING, DatasetCall

HANDING_ON = frozenset({"batch", "cache", "prefetch", "repeat", "shuffle", "skip", "take", "with_options"})
"""Calls that do the same to whatever elements they get, so that a function may as well be called after them, on batches."""


def find_into_step(chain: Chain) -> Iterator[RewritePlace]:
    """Find the last map, whose function makes what the model sees; whether it makes it larger is for a run to tell."""
    last = next((call for call in reversed(chain.calls) if call.method not in HANDING_ON), None)
    if chain.use.role in (TRAINING, LOOP) and last is not None and _is_alike(chain, last):
        yield RewritePlace(
            last,
            (IntoStep(last.number),),
            f"Call the function of {said_at(last)} in the training step, on whole batches, instead of in the pipeline.",
            (
                "Less is batched, buffered and copied to the device: of images as uint8, a quarter.",
                "The step computes the function, without a device on the cores that it needs itself.",
                "Rounding may differ in the last bit.",
            ),
        )


def _is_alike(chain: Chain, mapped: DatasetCall) -> bool:
    """Say whether a call is a map whose function gives the same whenever it is called."""
    is_plain = mapped.method == "map" and mapped.is_direct and mapped.is_understood and mapped.place is not None
    return is_plain and not (mapped.python or mapped.stateful or chain.use.reads_state)
