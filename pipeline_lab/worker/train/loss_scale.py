"""What the loss scale of half precision did to a training; Keras tells nobody."""

from collections.abc import Sequence
from typing import Any

MOST_SKIPPED = 0.05
"""Share of the steps; the first few overflow while the scale comes down from where it begins."""
SMALLEST = 1.0
"""A scale below it makes gradients smaller, so nothing is left of what it is for."""
WAITS = (
    "With mixed_float16 the host waits for the gradients of every step, because Keras' LossScaleOptimizer reads whether they "
    "overflowed, so Python between steps leaves the device idle; mixed_bfloat16 needs no loss scale."
)


def tell_loss_scale(weights: Sequence[Any], steps: int, *, is_asynchronous: bool) -> list[str]:
    """Return what there is to tell of a training with a loss scale: that it waits, and that gradients overflowed often.

    Args:
        weights: The variables that the training changes; Keras' own, those of its optimizer among them.
        steps: Taken since the variables were made.
        is_asynchronous: The device works beside the host.
    """
    scales = [float(each.numpy()) for each in weights if getattr(each, "name", "") == "dynamic_scale"]
    applied = [int(each.numpy()) for each in weights if getattr(each, "name", "") == "iteration"]
    if not scales or not applied or not steps:
        return []
    told = [WAITS] if is_asynchronous else []
    skipped = steps - max(applied)  # the optimizer with the scale has a counter of its own, which stays 0
    if skipped > MOST_SKIPPED * steps or scales[0] < SMALLEST:
        told.append(
            f"{skipped:,} of {steps:,} steps changed no weights, because their gradients overflowed half precision, and the "
            f"loss scale ended at {scales[0]:,.4g}; lower learning_rate, or train with mixed_bfloat16."
        )
    return told
