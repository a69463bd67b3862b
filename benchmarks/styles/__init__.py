"""Training styles that people use, one function each in :mod:`benchmarks.styles.record`."""

STYLES = (
    "custom_loop",
    "range_inside",
    "dataset_inside",
    "map_fn_inside",
    "keras_tensorboard",
    "keras_tensorboard_4_per_execution",
    "keras_fit",
    "keras_fit_4_per_execution",
    "mirrored",
    "mirrored_without_markers",
    "no_markers",
)
