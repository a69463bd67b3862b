"""Last lines of ``make_dataset``: the ``tf.data.Options``, and the copy to the device, which nothing may follow."""

from collections.abc import Iterator

from pipeline_lab.options.pipeline import PipelineOptions
from pipeline_lab.options.stages import PrefetchToDeviceStage
from pipeline_lab.pipeline.code import INDENT, assign_call
from pipeline_lab.units import BYTES_PER_MB

_REWRITES = (
    "inject_prefetch",
    "map_and_batch_fusion",
    "map_parallelization",
    "noop_elimination",
    "parallel_batch",
    "shuffle_and_repeat_fusion",
)
"""What TensorFlow would change about a pipeline on its own."""


def ending_lines(pipeline: PipelineOptions) -> list[str]:
    """Write what comes after the stages."""
    settings = list(_settings(pipeline))
    last = pipeline.stages[-1] if pipeline.stages else None
    options = [f"{INDENT}options = tf.data.Options()", *settings] if settings else []
    if isinstance(last, PrefetchToDeviceStage):
        applied = [*options, assign_call("dataset.with_options", ["options"])] if options else []
        return [*applied, *_to_device(last)]
    return [*options, f"{INDENT}return dataset{'.with_options(options)' if options else ''}"]


def _settings(pipeline: PipelineOptions) -> Iterator[str]:
    ram_mb = pipeline.autotune_ram_budget_mb
    values = {
        "threading.private_threadpool_size": pipeline.private_threadpool_size,
        "autotune.autotune_algorithm": _algorithm(pipeline),
        "autotune.cpu_budget": pipeline.autotune_cpu_budget,
        "autotune.ram_budget": None if ram_mb is None else f"{ram_mb * BYTES_PER_MB:_}",
        "deterministic": pipeline.deterministic,
        "experimental_slack": pipeline.slack or None,
        "experimental_warm_start": pipeline.warm_start or None,
    }
    yield from (f"{INDENT}options.{name} = {value}" for name, value in values.items() if value is not None)
    if not pipeline.tensorflow_rewrites:
        yield f"{INDENT}# Run the stages just as written: nothing parallelised, fused or prefetched behind our back."
        yield f"{INDENT}rewrites = options.experimental_optimization"
        yield f"{INDENT}rewrites.apply_default_optimizations = False"
        yield from (f"{INDENT}rewrites.{name} = False" for name in _REWRITES)


def _algorithm(pipeline: PipelineOptions) -> str | None:
    algorithm = pipeline.autotune_algorithm
    return None if algorithm is None else f"tf.data.experimental.AutotuneAlgorithm.{algorithm.upper()}"


def _to_device(stage: PrefetchToDeviceStage) -> Iterator[str]:
    yield f'{INDENT}if not tf.config.get_visible_devices("GPU"):'
    yield f"{INDENT * 2}return dataset.prefetch({stage.buffer_size})  # no GPU to copy to"
    to_device = f'tf.data.experimental.prefetch_to_device("/GPU:0", {stage.buffer_size})'
    yield f"{INDENT}return dataset.apply({to_device})"
