"""Record some batches of any dataset as a short run."""

import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import FailureEvent
from pipeline_lab.runs.run_folder import RunFolder, end_run
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.job_context import Job, StopRequest
from pipeline_lab.worker.note.environment import describe_environment
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.note.failures import FirstBatch, explain_user_error
from pipeline_lab.worker.prepare.device import present_device
from pipeline_lab.worker.prepare.user_code import UserPipeline
from pipeline_lab.worker.recipe.wrapping import note_datasets
from pipeline_lab.worker.training_session import build_and_train, release_iterators

note_datasets()  # from here on: a dataset that was made before has no lines

TAG = "explained"
WINDOWS = 4
STEPS_PER_WINDOW = 5


def record_dataset(
    dataset: tf.data.Dataset, step: Callable[[Any], Any] | None, *, steps: int, store: RunStore, name: str
) -> RunFolder:
    """Take some batches of a dataset in this process, and record them as a run.

    Args:
        dataset: Yields batches; it is only read.
        step: What is done with each batch; None takes batches as fast as they come.
        steps: Batches to take, in addition to a few before them and some for the calibration.
        store: Where to keep the run.
        name: Of the run.

    Raises:
        OptionsError: It is not a dataset, or the number of steps is out of range.
        DataError: The dataset yields no batch.
        StoreError: The store cannot be written.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise OptionsError(f"explain takes a tf.data.Dataset, not an object of type {type(dataset).__name__}.")
    if step is not None and not callable(step):
        raise OptionsError(f"The step is a function of a batch, not an object of type {type(step).__name__}.")
    options = _options(name, steps)
    device = present_device()
    environment = {"command": Path(sys.argv[0]).name, **describe_environment(), **device.describe()}
    folder = own_job_runs.begin(store, name, tags=(TAG,), environment=environment)
    job = Job(folder, options, EventLog(folder.events), StopRequest(), Clock())
    given = SimpleNamespace(make_dataset=lambda: dataset, step=step)
    pipeline = UserPipeline(Path.cwd(), given, FirstBatch(None, Path.cwd(), lambda _: None), given.make_dataset)
    try:
        build_and_train(job, device, pipeline, [], [])
    except KeyboardInterrupt:
        end_run(folder, RunState.CANCELLED, "Interrupted; what was recorded is kept.")
        raise
    except BaseException as error:
        sentence = explain_user_error(error, Path.cwd(), "The dataset or the step")
        job.log.write(FailureEvent(sentence, "".join(traceback.format_exception(error))))
        end_run(folder, RunState.FAILED, sentence)
        raise
    finally:
        shutil.rmtree(folder.scratch, ignore_errors=True)
        release_iterators()
    end_run(folder, RunState.DONE)
    return folder


def _options(name: str, steps: int) -> RunOptions:
    # the target is not called: the dataset exists already
    workload = {"kind": "module", "target": "__main__:explain"}
    document = {"name": name, "workload": workload, "training": {"steps": steps}}
    steps = read_options(document).training.steps or 1  # refuses an invalid number
    windows = {
        "steps_per_window": min(STEPS_PER_WINDOW, steps),
        "every_steps": max(STEPS_PER_WINDOW, steps // WINDOWS),
    }
    return read_options(document | {"profiling": windows})
