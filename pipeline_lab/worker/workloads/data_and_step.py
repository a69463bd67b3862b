"""What the worker does for a workload: find or make its files, name the record behind an error, build its training step."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline_lab.errors import DataError
from pipeline_lab.options.image_size import image_sizes
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.audio_code import ENDINGS
from pipeline_lab.pipeline.image_parse_code import IMAGE_ENDINGS
from pipeline_lab.runs.found_features import find_misfitting_record
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.train.placement import place
from pipeline_lab.worker.train.training_steps import Trainer
from pipeline_lab.worker.workloads import features
from pipeline_lab.worker.workloads.audio import AudioTrainer
from pipeline_lab.worker.workloads.clips import check_clips, find_damaged_clip, tones_recipe
from pipeline_lab.worker.workloads.data_files import Recipe, cached_files, find_class_folders, find_user_files
from pipeline_lab.worker.workloads.features import FeaturesTrainer
from pipeline_lab.worker.workloads.images import (
    KNOWN_CLASSES,
    ImageTrainer,
    find_damaged_image,
    find_undecodable_record,
    images_recipe,
)
from pipeline_lab.worker.workloads.module import OwnTrainer
from pipeline_lab.worker.workloads.records import RecordsTrainer
from pipeline_lab.worker.workloads.sparse import SparseTrainer, sparse_recipe
from pipeline_lab.worker.workloads.synthetic import GpuTimer, HostTimer, step_times, synthetic_recipe
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordFeature, RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

SEARCH_S = 60.0
"""The search for the record behind an error ends after this time; then TensorFlow's own words have to do."""


def prepare_files(workload: Workload, log: EventLog, stop: StopRequest) -> list[DataFile]:
    """Return the files that a workload reads; the lab's own are made on first use. Generators stand for files.

    Raises:
        DataError: They are missing, damaged, or there is no room for them.
        StopRequestedError: The job was stopped meanwhile.
    """
    if isinstance(workload, GeneratorWorkload):
        return [
            DataFile(f"generator {number}", count, 0) for number, count in enumerate(workload.examples_per_generator)
        ]
    if isinstance(workload, AudioWorkload) and workload.folder is not None:
        folders = find_class_folders(workload.folder, ENDINGS, workload.classes, stop)
        check_clips(folders, workload.sample_rate_hz, stop)
        return folders
    if isinstance(workload, ImagesWorkload) and workload.folder is not None:
        return find_class_folders(workload.folder, IMAGE_ENDINGS, workload.classes, stop)
    if isinstance(workload, ImagesWorkload) and workload.pattern is not None:
        return find_user_files(workload.pattern, stop)
    if isinstance(workload, RecordsWorkload):
        return find_user_files(workload.pattern, stop)
    return cached_files(_recipe(workload), log, stop)


def count_views(files: Sequence[DataFile], views: int) -> list[DataFile]:
    """Count the files' records in the views that become of each: every one is an example with an id of its own."""
    return [replace(file, records=None if file.records is None else file.records * views) for file in files]


def find_tables(workload: Workload, files: Sequence[DataFile]) -> list[DataFile]:
    """Return the tables that lie beside the files."""
    return features.find_tables(workload, Path(files[0].path).parent) if isinstance(workload, FeaturesWorkload) else []


def _recipe(workload: Workload) -> Recipe:
    match workload:
        case FeaturesWorkload():
            return features.features_recipe(workload)
        case ImagesWorkload():
            return images_recipe(workload)
        case AudioWorkload():
            return tones_recipe(workload)
        case SparseWorkload():
            return sparse_recipe(workload)
        case SyntheticWorkload():
            return synthetic_recipe(workload)
        case _:
            raise AssertionError(workload.kind)


class _SearchEndedError(Exception):
    """The search took longer than it may."""


def find_misfit(
    workload: Workload, files: Sequence[DataFile], stop: StopRequest, limit_s: float = SEARCH_S
) -> DataError | None:
    """Name the first record or file of a user's that does not hold what the options expect of it.

    Args:
        workload: Says what is expected.
        files: To search.
        stop: Ends the search.
        limit_s: Give up after this time, s.

    Raises:
        StopRequestedError: The job was stopped meanwhile.
    """
    end_s = time.monotonic() + limit_s

    def check() -> None:
        stop.check()
        if time.monotonic() > end_s:
            raise _SearchEndedError

    try:
        return _search(workload, files, check)
    except _SearchEndedError:
        return None


def _search(workload: Workload, files: Sequence[DataFile], check: Callable[[], None]) -> DataError | None:
    match workload:
        case RecordsWorkload():
            remedy = "write it again, or change workload.features"
            return _first(lambda path: find_misfitting_record(path, workload.parsed_features, remedy, check), files)
        case ImagesWorkload(data="files"):
            image, label = (
                RecordFeature(workload.image_feature, "bytes", 1),
                RecordFeature(workload.label_feature, "int64", 1),
            )
            remedy = "set workload.image_feature and workload.label_feature to the names in your records"
            misfit = _first(lambda path: find_misfitting_record(path, (image, label), remedy, check), files)
            return misfit or _first(lambda path: find_undecodable_record(path, workload.image_feature, check), files)
        case AudioWorkload():
            return _first(lambda path: find_damaged_clip(path, check), files)
        case ImagesWorkload(data="folder"):
            return _first(lambda path: find_damaged_image(path, check), files)
        case _:
            return None


def _first(find: Callable[[Path], DataError | None], files: Sequence[DataFile]) -> DataError | None:
    return next(filter(None, (find(Path(file.path)) for file in files)), None)


def find_damage(files: Sequence[DataFile], stop: StopRequest) -> DataError | None:
    """Name the first record whose checksum is wrong, by reading every file to its end.

    Raises:
        StopRequestedError: The job was stopped meanwhile.
    """
    for file in files:
        record = 0
        try:
            for _ in tf.data.TFRecordDataset(file.path):
                stop.check()
                record += 1
        except tf.errors.OpError as error:
            if isinstance(error, tf.errors.DataLossError):
                return DataError(f"{file.path} is damaged at record {record}; write it again, or leave it out.")
            return DataError(f"{Path(file.path)} cannot be read any more: {error.message}.")
    return None


def make_trainer(
    options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile] = (), pipeline: Any = None
) -> Trainer:
    """Build the step of a run's workload.

    Args:
        options: Of the run.
        is_gpu: It trains on a GPU.
        tables: What lies beside its files.
        pipeline: Of a module of the user's, which brings its own step.
    """
    workload, training = options.workload, options.training
    placement = place(training.replicas, is_gpu=is_gpu)
    match workload:
        case ModuleWorkload():
            return OwnTrainer(pipeline)
        case ImagesWorkload():
            classes = KNOWN_CLASSES.get(workload.data, workload.classes)
            return ImageTrainer(training, placement, image_sizes(workload, options.pipeline)[-1], classes)
        case AudioWorkload():
            return AudioTrainer(workload, training)
        case SparseWorkload():
            return SparseTrainer(workload, training, placement)
        case FeaturesWorkload():
            return FeaturesTrainer(workload, options, tables)
        case RecordsWorkload():
            return RecordsTrainer(workload, training)
        case GeneratorWorkload() | SyntheticWorkload():
            times = step_times(workload)
            return GpuTimer(times) if is_gpu else HostTimer(times)
