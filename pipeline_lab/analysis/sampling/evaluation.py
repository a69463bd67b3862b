"""The evaluation passes of a run: what they found, what they took, which files they read."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.causes import FEWER_CALLS, FEWER_EVALUATIONS
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.columns import finite
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, JobView, PerJob, times_to_ms, to_ms
from pipeline_lab.analysis.declaring.job_events import JobEvents
from pipeline_lab.analysis.sampling import file_sampling
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.sampling.file_sampling import FileSampling, sampling_to_json
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError, Unavailable
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import EvaluationEvent
from pipeline_lab.runs.run_tables import SAMPLES

PASS_TABLE = pa.schema(
    [
        ("pass", pa.int64()),  # 1, 2, 3, …
        ("step", pa.int64()),  # steps taken by then, the warm-up included
        ("start_ns", pa.int64()),  # on the diagnosis' axis
        ("duration_ns", pa.int64()),
        ("first_batch_ns", pa.int64()),  # of it, until the first batch was there
        ("batches", pa.int64()),
        ("loss", pa.float64()),  # mean over the batches, null where the workload has none, or none that is finite
        ("accuracy", pa.float64()),  # 0 to 1, null likewise
        (
            "call",
            pa.string(),
        ),  # of the script, as ``model.evaluate at train.py:40``; null where the training does it itself
    ]
)
"""One row per pass."""

NO_EVALUATION = (
    "No evaluation of the model was recorded; jobs launched here evaluate it where training.evaluate_every is set."
)
NO_SAMPLES = Unavailable(
    "The job did not note which examples it evaluated on; switch `sample_probe` on and launch it again."
)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All passes of a run.

    Attributes:
        passes: One row per pass, :data:`PASS_TABLE`.
        is_rebuilt: The training pipeline is rebuilt after each pass; None where nobody says.
        held_out_files: Files that only passes read; 0 where they read those that train.
        sampling: The files that the examples of the passes came from, passes in the place of steps.
    """

    passes: pa.Table
    is_rebuilt: bool | None
    held_out_files: int
    sampling: FileSampling | Unavailable

    @property
    def count(self) -> int:
        return int(self.passes.num_rows)

    @property
    def total_ns(self) -> int:
        return int(tables.ints(self.passes, "duration_ns").sum())

    @property
    def longest_call(self) -> str:
        """The script's call whose passes took most of the time of all; empty where none did, or those that the training does itself."""
        taken_ns = Counter[str]()
        for call, duration_ns in zip(
            self.passes.column("call").to_pylist(), tables.ints(self.passes, "duration_ns"), strict=True
        ):
            taken_ns[call or ""] += int(duration_ns)
        call, longest_ns = taken_ns.most_common(1)[0]
        return call if 2 * longest_ns > self.total_ns else ""

    @property
    def change(self) -> str:
        """What to do about passes that take much of the time."""
        call = self.longest_call
        return FEWER_CALLS.format(call=call) if call else FEWER_EVALUATIONS.change

    @property
    def last_loss(self) -> float | None:
        return _last(self.passes, "loss")

    @property
    def last_accuracy(self) -> float | None:
        """Of the last pass, 0 to 1."""
        return _last(self.passes, "accuracy")


def read_evaluation(
    events: JobEvents,
    evaluated: pa.Table,
    files: Sequence[DataFile],
    origin_ns: int,
    *,
    held_out: int,
    is_rebuilt: bool | None,
) -> Evaluation:
    """Read the passes of a run.

    Args:
        events: The worker's events.
        evaluated: Of schema ``runs.run_tables.EVALUATED``; no rows without the sample probe.
        files: All data files of the job.
        origin_ns: Zero of the diagnosis' axis, ns since the epoch.
        held_out: How many of the files, the last ones, only passes read.
        is_rebuilt: The training pipeline was rebuilt after each pass.

    Raises:
        TraceIncompleteError: No pass has ended.
    """
    passes = events.of(EvaluationEvent)
    if not passes:
        raise TraceIncompleteError(NO_EVALUATION)
    table = tables.build(
        PASS_TABLE,
        len(passes),
        **{
            "pass": [one.number + 1 for one in passes],
            "step": [one.steps for one in passes],
            "start_ns": [one.started_ns - origin_ns for one in passes],
            "duration_ns": [one.ended_ns - one.started_ns for one in passes],
            "first_batch_ns": [one.first_batch_ns for one in passes],
            "batches": [one.batches for one in passes],
            "loss": finite(np.array([one.loss for one in passes], np.float64)),
            "accuracy": finite(np.array([one.accuracy for one in passes], np.float64)),
            "call": [one.call or None for one in passes],
        },
    )
    return Evaluation(table, is_rebuilt, held_out, _sampling(evaluated, files, held_out))


def _sampling(evaluated: pa.Table, files: Sequence[DataFile], held_out: int) -> FileSampling | Unavailable:
    first = len(files) - held_out if held_out else 0
    if not evaluated.num_rows or not files:
        return NO_SAMPLES
    samples = tables.build(
        SAMPLES.schema,
        evaluated.num_rows,
        step=tables.ints(evaluated, "pass") + 1,
        file=tables.ints(evaluated, "file") - first,
        record=tables.ints(evaluated, "record"),
    )
    try:
        return file_sampling.measure_sampling(files[first:], samples, FileReads({}, {}))
    except TraceIncompleteError as error:
        return Unavailable(str(error))


def _last(passes: pa.Table, column: str) -> float | None:
    value = tables.floats(passes, column)[-1]
    return None if np.isnan(value) else float(value)


def _measure(job: JobView) -> Evaluation:
    training = job.tables.training
    return read_evaluation(
        job.tables.events,
        job.tables.evaluated,
        job.tables.files,
        job.origin_ns,
        held_out=training.held_out_files,
        is_rebuilt=training.evaluation == "rebuild" if job.tables.is_launched else None,
    )


def _to_json(found: Evaluation) -> Document:
    return {
        "rebuilt": found.is_rebuilt,
        "held_out_files": found.held_out_files,
        "total_ms": to_ms(found.total_ns),
        "passes": [times_to_ms(row) for row in found.passes.to_pylist()],
        "file_sampling": None if isinstance(found.sampling, Unavailable) else sampling_to_json(found.sampling),
    }


EVALUATION = Analysis(Evaluation, per_job=PerJob(_measure, NO_EVALUATION), to_json=_to_json)
