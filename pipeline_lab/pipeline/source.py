"""From options to the Python source of the input pipeline.

The text is written once per run; the worker imports it, the run keeps it, people paste it. It needs TensorFlow only.
The module defines ``make_dataset(files, cache_dir=…)``; elements are dicts: ``image``, ``label``, ``id`` for images,
``payload``, ``id`` for the synthetic and generator workloads, a sparse tensor per feature, ``label``, ``id`` for the
sparse one, ``caption``, ``vector`` (or ``image``, its number), ``label``, ``id`` for the features workload. Our own records carry their ``id`` (file index × 2⁴⁰ + record number);
a user's do not, and only the probed source adds it.
"""

import sys
from collections.abc import Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.code import INDENT, Code, assign_call
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.stage_values import Writing
from pipeline_lab.units import BYTES_PER_MB
from pipeline_lab.workloads.workload import WorkloadSource

_REWRITES = (
    "inject_prefetch",
    "map_and_batch_fusion",
    "map_parallelization",
    "noop_elimination",
    "parallel_batch",
    "shuffle_and_repeat_fusion",
)
"""What TensorFlow would change about a pipeline on its own."""


def render_source(options: RunOptions, *, probe: bool = False) -> str:
    """Write the input pipeline as a Python module.

    Args:
        options: The run's options; equal ones give equal text.
        probe: Carry file and record number of each example through the pipeline. Changes only the text for a user's
            own files, since our records carry both in any case.
    """
    whole = options.workload.whole_source(list(ending_lines(options.pipeline)))
    if whole is not None:
        return whole
    workload = options.workload.source(options.pipeline, has_probe=probe and needs_probe(options))
    code = sum((stage.code() for stage in options.pipeline.stages), workload.code)
    blocks = [
        "\n".join([*_header(workload), *_imports(code), "", *code.constants]).rstrip(),
        *code.functions,
        _make_dataset(options, workload),
    ]
    return "\n\n\n".join(blocks) + "\n"


def needs_probe(options: RunOptions) -> bool:
    """Say whether the records carry no id of their own, so that only a rewritten reader can tell their origin."""
    return options.workload.needs_probe


def _header(workload: WorkloadSource) -> list[str]:
    first = "Input pipeline assembled with Pipeline Lab; it needs nothing but TensorFlow."
    return [f"# {line}" for line in (first, *workload.about)]


def _imports(code: Code) -> list[str]:
    lines = {*code.imports, "import tensorflow as tf"}
    standard = {line for line in lines if line.split()[1].split(".")[0] in sys.stdlib_module_names}

    def by_form(line: str) -> tuple[bool, str]:
        return line.startswith("from"), line

    return ["", *sorted(standard, key=by_form), *([""] if standard else []), *sorted(lines - standard, key=by_form)]


def has_files_of_its_own(pipeline: PipelineOptions) -> bool:
    """Say whether a stage writes files, such as a cache on disk."""
    return any(stage.keeps == "disk" for stage in pipeline.stages)


def _make_dataset(options: RunOptions, workload: WorkloadSource) -> str:
    lines = [
        'def make_dataset(files: list[str], cache_dir: str = "cache") -> tf.data.Dataset:',
        f'{INDENT}"""Build the input pipeline {workload.over}; caches on disk, if any, go to cache_dir."""',
    ]
    if has_files_of_its_own(options.pipeline):
        lines.append(f"{INDENT}os.makedirs(cache_dir, exist_ok=True)")
    for index, stage in enumerate(options.pipeline.stages):
        function = workload.functions.get(stage.stage, stage.stage)
        is_vectorized = options.pipeline.is_vectorized(stage.stage)
        write = workload.written.get(stage.stage)
        written = None if write is None else tuple(write(stage))
        lines += stage.lines(Writing(index, function, is_vectorized, written))
    return "\n".join([*lines, *ending_lines(options.pipeline)])


def ending_lines(pipeline: PipelineOptions) -> Iterator[str]:
    """Write what comes after the stages: the ``tf.data.Options``, and the lines of a stage that these may not follow."""
    settings = list(_settings(pipeline))
    closing = pipeline.stages[-1].closing_lines() if pipeline.stages else None
    if settings:
        yield f"{INDENT}options = tf.data.Options()"
        yield from settings
    if closing is None:
        yield f"{INDENT}return dataset{'.with_options(options)' if settings else ''}"
        return
    if settings:
        yield assign_call("dataset.with_options", ["options"])
    yield from closing


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
        yield f"{INDENT}# Run the stages just as written: TensorFlow adds no parallelism, fusion or prefetching."
        yield f"{INDENT}rewrites = options.experimental_optimization"
        yield f"{INDENT}rewrites.apply_default_optimizations = False"
        yield from (f"{INDENT}rewrites.{name} = False" for name in _REWRITES)


def _algorithm(pipeline: PipelineOptions) -> str | None:
    algorithm = pipeline.autotune_algorithm
    return None if algorithm is None else f"tf.data.experimental.AutotuneAlgorithm.{algorithm.upper()}"
