"""From options to the Python source of the input pipeline.

The text is written once per run; the worker imports it, the run keeps it, people paste it. It needs TensorFlow only.
The module defines ``make_dataset(files, cache_dir=…)``; elements are dicts: ``image``, ``label``, ``id`` for images,
``payload``, ``id`` for the synthetic and generator workloads, a sparse tensor per feature, ``label``, ``id`` for the
sparse one, ``caption``, ``vector`` (or ``image``, its number), ``label``, ``id`` for the features workload. Our own records carry their ``id`` (file index × 2⁴⁰ + record number);
a user's do not, and only the probed source adds it.
"""

import sys
from collections.abc import Iterator

from pipeline_lab.options.pipeline import MappingStage, PipelineOptions, Stage
from pipeline_lab.options.read_stage import ReadStage
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.service_stage import ServiceStage
from pipeline_lab.options.stages import PrefetchStage, RepeatStage, ShuffleStage, ViewsStage
from pipeline_lab.pipeline.audio_code import audio_source
from pipeline_lab.pipeline.batch_code import BatchingStage, batching_line
from pipeline_lab.pipeline.code import INDENT, Code, assign_call, number_or_autotune, parallel_arguments
from pipeline_lab.pipeline.ending_code import ending_lines
from pipeline_lab.pipeline.features_code import features_source
from pipeline_lab.pipeline.generator_code import generator_source
from pipeline_lab.pipeline.image_code import image_source
from pipeline_lab.pipeline.module_code import module_source
from pipeline_lab.pipeline.part_code import PartStage, part_lines
from pipeline_lab.pipeline.records_code import records_source
from pipeline_lab.pipeline.service_code import service_code, service_lines
from pipeline_lab.pipeline.sparse_code import sparse_source
from pipeline_lab.pipeline.store_code import StoreStage, is_on_disk, store_lines
from pipeline_lab.pipeline.synthetic_code import synthetic_source
from pipeline_lab.pipeline.workload_source import WorkloadSource
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload


def render_source(options: RunOptions, *, probe: bool = False) -> str:
    """Write the input pipeline as a Python module.

    Args:
        options: The run's options; equal ones give equal text.
        probe: Carry file and record number of each example through the pipeline. Changes only the text for a user's
            own files, since our records carry both in any case.
    """
    if isinstance(options.workload, ModuleWorkload):
        return module_source(options.workload, options.pipeline)
    workload = _workload_source(options.workload, options.pipeline, has_probe=probe and needs_probe(options))
    own = Code(imports=("import os",) if has_files_of_its_own(options.pipeline) else ())
    code = workload.code + own + service_code(options.pipeline)
    blocks = [
        "\n".join([*_header(workload), *_imports(code), "", *code.constants]).rstrip(),
        *code.functions,
        _make_dataset(options, workload),
    ]
    return "\n\n\n".join(blocks) + "\n"


def needs_probe(options: RunOptions) -> bool:
    """Say whether the records carry no id of their own, so that only a rewritten reader can tell their origin."""
    return options.workload.needs_probe


def _workload_source(workload: Workload, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
    read = pipeline.stages[0]
    assert isinstance(read, ReadStage)
    match workload:
        case ImagesWorkload() as images:
            return image_source(images, pipeline, read, has_probe=has_probe)
        case AudioWorkload() as audio:
            return audio_source(audio, read)
        case SparseWorkload() as sparse:
            return sparse_source(sparse, pipeline, read)
        case FeaturesWorkload() as features:
            return features_source(features, pipeline, read)
        case RecordsWorkload() as records:
            return records_source(records, pipeline, read, has_probe=has_probe)
        case GeneratorWorkload() as generator:
            return generator_source(generator, read)
        case SyntheticWorkload() as synthetic:
            return synthetic_source(synthetic, pipeline, read)
        case _:
            raise AssertionError(workload.kind)


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
    return any(isinstance(stage, StoreStage) and is_on_disk(stage) for stage in pipeline.stages)


def _make_dataset(options: RunOptions, workload: WorkloadSource) -> str:
    lines = [
        'def make_dataset(files: list[str], cache_dir: str = "cache") -> tf.data.Dataset:',
        f'{INDENT}"""Build the input pipeline {workload.over}; caches on disk, if any, go to cache_dir."""',
    ]
    if has_files_of_its_own(options.pipeline):
        lines.append(f"{INDENT}os.makedirs(cache_dir, exist_ok=True)")
    for index, stage in enumerate(options.pipeline.stages):
        lines += _stage_lines(stage, index, options, workload)
    lines += ending_lines(options.pipeline)
    return "\n".join(lines)


def _stage_lines(stage: Stage, index: int, options: RunOptions, workload: WorkloadSource) -> Iterator[str]:
    if isinstance(stage, ReadStage):
        yield from workload.read
    elif isinstance(stage, MappingStage):
        yield _map_line(stage, options.pipeline, workload)
        if isinstance(stage, ViewsStage):
            yield assign_call("dataset.unbatch", [])
    elif isinstance(stage, StoreStage):
        yield from store_lines(stage, index)
    elif isinstance(stage, PartStage):
        yield from part_lines(stage)
    elif isinstance(stage, BatchingStage):
        yield batching_line(stage, options.workload)
    elif isinstance(stage, ServiceStage):
        yield from service_lines(stage)
    else:
        yield from _call_lines(stage)


def _call_lines(stage: Stage) -> Iterator[str]:
    """Write a stage that is one call, whatever the workload; ``prefetch_to_device`` is written with the ending."""
    if isinstance(stage, ShuffleStage):
        again = [] if stage.reshuffle_each_iteration else ["reshuffle_each_iteration=False"]
        yield assign_call("dataset.shuffle", [str(stage.buffer_size), *again])
    elif isinstance(stage, RepeatStage):
        yield assign_call("dataset.repeat", [] if stage.count is None else [str(stage.count)])
    elif isinstance(stage, PrefetchStage):
        yield assign_call("dataset.prefetch", [number_or_autotune(stage.buffer_size)])


def _map_line(stage: MappingStage, pipeline: PipelineOptions, workload: WorkloadSource) -> str:
    function = workload.functions.get(stage.stage, stage.stage)
    arguments = [function, *parallel_arguments(stage.num_parallel_calls, stage.deterministic)]
    return assign_call("dataset.map", arguments, "whole batches at once" if pipeline.is_vectorised(stage.stage) else "")
