"""Data and step of the generator workload: generators stand for files, and the step takes a set time."""

from collections.abc import Sequence
from typing import Any

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.train.training_steps import Trainer
from pipeline_lab.worker.workloads.data_and_step import DataAndStep
from pipeline_lab.worker.workloads.synthetic import SyntheticStepTimes, make_timer
from pipeline_lab.workloads.generator import GeneratorWorkload


class GeneratorDataAndStep(DataAndStep[GeneratorWorkload]):
    """Examples that Python makes on the fly; a step that takes a set time."""

    def find_files(self, log: EventLog, stop: StopRequest) -> list[DataFile]:
        del log, stop
        sizes = self.workload.examples_per_generator
        return [DataFile(f"generator {number}", count, 0) for number, count in enumerate(sizes)]

    def make_trainer(self, options: RunOptions, *, is_gpu: bool, tables: Sequence[DataFile], pipeline: Any) -> Trainer:
        del options, tables, pipeline
        return make_timer(SyntheticStepTimes(self.workload.compute_ms), is_gpu=is_gpu)


DATA_AND_STEP = GeneratorDataAndStep
