"""The optimizer of the networks that the lab trains."""

from typing import Any

import keras

from pipeline_lab.options.training import TrainingOptions

MOMENTUM = 0.9


def make_optimizer(training: TrainingOptions) -> Any:
    """Return stochastic gradient descent with momentum, its loss scaled where half precision needs it."""
    optimizer = keras.optimizers.SGD(training.learning_rate, momentum=MOMENTUM)
    if training.precision == "mixed_float16":
        return keras.mixed_precision.LossScaleOptimizer(optimizer)
    return optimizer
