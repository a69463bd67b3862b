"""From options to the Python source of the input pipeline.

The text is written once per run; the worker imports it, the run keeps it, people paste it. It needs TensorFlow only.
The module defines ``make_dataset(files, cache_dir=…)``; elements are dicts: ``image``, ``label``, ``id`` for images,
``payload``, ``id`` for the synthetic and generator workloads, a sparse tensor per feature, ``label``, ``id`` for the
sparse one. Our own records carry their ``id`` (file index × 2⁴⁰ + record number);
a user's do not, and only the probed source adds it.
"""

from collections.abc import Iterator

from pipeline_lab.options.pipeline import (
    AugmentStage,
    MapStage,
    ParseStage,
    PipelineOptions,
    PrefetchStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
    Stage,
)
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.workload import (
    GeneratorWorkload,
    ImagesWorkload,
    SparseWorkload,
    SyntheticWorkload,
)
from pipeline_lab.pipeline.batch_code import BatchingStage, batching_line
from pipeline_lab.pipeline.code import INDENT, Code, assign_call, number_or_autotune, parallel_arguments, quote
from pipeline_lab.pipeline.ending_code import ending_lines
from pipeline_lab.pipeline.generator_code import generator_code, generator_lines
from pipeline_lab.pipeline.image_code import augment_code, parse_code
from pipeline_lab.pipeline.part_code import PartStage, part_lines
from pipeline_lab.pipeline.read_code import PerFile, read_code, read_lines
from pipeline_lab.pipeline.sparse_code import sparse_code
from pipeline_lab.pipeline.store_code import StoreStage, is_on_disk, store_lines
from pipeline_lab.pipeline.synthetic_code import map_function, synthetic_code

_STANDARD_LIBRARY = frozenset({"collections", "hashlib", "math", "os", "time"})


def render_source(options: RunOptions, *, probe: bool = False) -> str:
    """Write the input pipeline as a Python module.

    Args:
        options: The run's options; equal ones give equal text.
        probe: Carry file and record number of each example through the pipeline. Changes only the text for a user's
            own files, since our records carry both in any case.
    """
    has_probe = probe and needs_probe(options)
    code = _code(options, has_probe)
    blocks = [
        "\n".join([*_header(options, has_probe), *_imports(code), "", *code.constants]).rstrip(),
        *code.functions,
        _make_dataset(options, has_probe),
    ]
    return "\n\n\n".join(blocks) + "\n"


def needs_probe(options: RunOptions) -> bool:
    """Say whether the records carry no id of their own, so that only a rewritten reader can tell their origin."""
    return isinstance(options.workload, ImagesWorkload) and options.workload.data == "files"


def _header(options: RunOptions, has_probe: bool) -> list[str]:
    workload = options.workload
    lines = ["# Input pipeline assembled with Pipeline Lab; it needs nothing but TensorFlow."]
    if isinstance(workload, SyntheticWorkload):
        lines.append('# Elements are batches of {"payload": uint8, "id": int64}, with set times to read and map them.')
        return lines
    if isinstance(workload, GeneratorWorkload):
        lines.append('# Elements are batches of {"payload": uint8, "id": int64}, made by Python; no file is read.')
        return lines
    if isinstance(workload, SparseWorkload):
        lines.append(f"# Elements are batches of {workload.features} sparse features, a label and an id.")
        return lines
    if workload.data == "files":
        lines.append(f"# files = sorted(tf.io.gfile.glob({quote(workload.pattern or '')}))")
    names = '"image", "label", "id"' if has_probe or workload.data != "files" else '"image", "label"'
    lines.append(f"# Elements are batches of {{{names}}}.")
    if has_probe:
        lines.append("# With the sample probe: each example carries file index × 2**40 + record number as its id.")
    return lines


def _imports(code: Code) -> list[str]:
    lines = {*code.imports, "import tensorflow as tf"}
    standard = {line for line in lines if line.split()[1].split(".")[0] in _STANDARD_LIBRARY}

    def by_form(line: str) -> tuple[bool, str]:
        return line.startswith("from"), line

    return ["", *sorted(standard, key=by_form), *([""] if standard else []), *sorted(lines - standard, key=by_form)]


def _code(options: RunOptions, has_probe: bool) -> Code:
    pipeline, workload = options.pipeline, options.workload
    code = Code(imports=("import os",) if _has_files_of_its_own(pipeline) else ())
    if isinstance(workload, SyntheticWorkload):
        has_map = pipeline.find("map") is not None
        return code + synthetic_code(workload, has_map=has_map, is_vectorised=is_vectorised(pipeline, "map"))
    if isinstance(workload, GeneratorWorkload):
        return code + generator_code(workload)
    if isinstance(workload, SparseWorkload):
        return code + sparse_code(workload, is_vectorised=is_vectorised(pipeline, "parse"))
    code += read_code(PerFile.PROBED if has_probe else PerFile.PLAIN)
    code += parse_code(workload, is_vectorised=is_vectorised(pipeline, "parse"), has_probe=has_probe)
    augment = pipeline.find("augment")
    if isinstance(augment, AugmentStage):
        code += augment_code(augment, is_vectorised=is_vectorised(pipeline, "augment"))
    return code


def is_vectorised(pipeline: PipelineOptions, stage: str) -> bool:
    """Say whether a stage sees whole batches because it comes after ``batch``."""
    return any(
        found.stage == stage and size is not None
        for found, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True)
    )


def _has_files_of_its_own(pipeline: PipelineOptions) -> bool:
    return any(isinstance(stage, StoreStage) and is_on_disk(stage) for stage in pipeline.stages)


def _make_dataset(options: RunOptions, has_probe: bool) -> str:
    lines = [
        'def make_dataset(files: list[str], cache_dir: str = "cache") -> tf.data.Dataset:',
        f'{INDENT}"""Build the input pipeline {_over(options)}; caches on disk, if any, go to cache_dir."""',
    ]
    if _has_files_of_its_own(options.pipeline):
        lines.append(f"{INDENT}os.makedirs(cache_dir, exist_ok=True)")
    for index, stage in enumerate(options.pipeline.stages):
        lines += _stage_lines(stage, index, options, has_probe)
    lines += ending_lines(options.pipeline)
    return "\n".join(lines)


def _over(options: RunOptions) -> str:
    return "over generators, not files" if isinstance(options.workload, GeneratorWorkload) else "over TFRecord files"


def _stage_lines(stage: Stage, index: int, options: RunOptions, has_probe: bool) -> Iterator[str]:
    if isinstance(stage, ReadStage):
        yield from _read_lines(stage, options, has_probe)
    elif isinstance(stage, ParseStage | AugmentStage | MapStage):
        yield _map_line(stage, options)
    elif isinstance(stage, StoreStage):
        yield from store_lines(stage, index)
    elif isinstance(stage, PartStage):
        yield from part_lines(stage)
    elif isinstance(stage, ShuffleStage):
        again = [] if stage.reshuffle_each_iteration else ["reshuffle_each_iteration=False"]
        yield assign_call("dataset.shuffle", [str(stage.buffer_size), *again])
    elif isinstance(stage, RepeatStage):
        yield assign_call("dataset.repeat", [] if stage.count is None else [str(stage.count)])
    elif isinstance(stage, BatchingStage):
        yield batching_line(stage, options.workload)
    elif isinstance(stage, PrefetchStage):
        yield assign_call("dataset.prefetch", [number_or_autotune(stage.buffer_size)])


def _read_lines(stage: ReadStage, options: RunOptions, has_probe: bool) -> Iterator[str]:
    workload = options.workload
    if isinstance(workload, GeneratorWorkload):
        yield from generator_lines(stage, workload)
        return
    if not isinstance(workload, SyntheticWorkload):
        yield from read_lines(stage, PerFile.PROBED if has_probe else PerFile.PLAIN)
        return
    yield from read_lines(stage, PerFile.SLOW if workload.read_ms > 0 else PerFile.PLAIN)
    if options.pipeline.find("map") is None:
        yield assign_call("dataset.map", ["unpack"])


def _map_line(stage: ParseStage | AugmentStage | MapStage, options: RunOptions) -> str:
    workload = options.workload
    name = map_function(workload) if isinstance(workload, SyntheticWorkload) else stage.stage
    arguments = [name, *parallel_arguments(stage.num_parallel_calls, stage.deterministic)]
    whole_batches = "whole batches at once" if is_vectorised(options.pipeline, stage.stage) else ""
    return assign_call("dataset.map", arguments, whole_batches)
