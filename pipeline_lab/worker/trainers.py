"""The training step of each workload."""

from collections.abc import Sequence
from typing import Any

from pipeline_lab.options.image_size import image_sizes
from pipeline_lab.options.run import RunOptions
from pipeline_lab.runs.files import DataFile
from pipeline_lab.worker.audio_trainer import AudioTrainer
from pipeline_lab.worker.data.images import KNOWN_CLASSES
from pipeline_lab.worker.features_trainer import FeaturesTrainer
from pipeline_lab.worker.image_trainer import ImageTrainer
from pipeline_lab.worker.own_trainer import OwnTrainer
from pipeline_lab.worker.placement import place
from pipeline_lab.worker.records_trainer import RecordsTrainer
from pipeline_lab.worker.sparse_trainer import SparseTrainer
from pipeline_lab.worker.timers import GpuTimer, HostTimer, step_times
from pipeline_lab.worker.trainer import Trainer
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.module import ModuleWorkload
from pipeline_lab.workloads.records import RecordsWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload


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
