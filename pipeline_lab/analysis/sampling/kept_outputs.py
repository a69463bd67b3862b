"""What the model made of each example of a chosen batch, from the forward pass that trained on it."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import LONGEST, Analysis, Document, PerJob
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_documents import DataFile

NOT_KEPT = "The outputs of no batch were kept; set `training.keep_outputs_of_step` to the number of a step and launch the job again."

EXAMPLE_TABLE = pa.schema(
    [
        ("file", pa.string()),  # that the example came from, null without the sample probe
        ("record", pa.int64()),  # its number in the file, null without the sample probe
        ("label", pa.int64()),
        ("prediction", pa.int64()),  # the class of the largest logit; 1 for a single score above 0, else 0
        ("right", pa.bool_()),
        ("outputs", pa.string()),  # logits of the classes, or the single score, with spaces between them
    ]
)
"""One row per example."""


@dataclass(frozen=True, eq=False)
class KeptOutputs:
    """The outputs of one step.

    Attributes:
        step: Its number, the warm-up counted from 0.
        table: One row per example, :data:`EXAMPLE_TABLE`.
        right: Examples whose prediction is their label.
    """

    step: int
    table: pa.Table
    right: int


def read_kept_outputs(outputs: pa.Table, files: list[DataFile]) -> KeptOutputs:
    """Read what a job has kept.

    Args:
        outputs: Of schema ``runs.run_tables.OUTPUTS``.
        files: What the job read.

    Raises:
        TraceIncompleteError: It was not asked to keep any, or has not come so far.
    """
    if not outputs.num_rows:
        raise TraceIncompleteError(NOT_KEPT)
    values = [np.array(row, np.float32) for row in outputs.column("outputs").to_pylist()]
    prediction = [int(row.argmax()) if len(row) > 1 else int(row[0] > 0) for row in values]
    labels = outputs.column("label").to_pylist()
    is_right = [guess == label for guess, label in zip(prediction, labels, strict=True)]
    has_ids = outputs.column("file").null_count == 0
    return KeptOutputs(
        step=int(outputs.column("step")[0].as_py()),
        table=tables.build(
            EXAMPLE_TABLE,
            outputs.num_rows,
            file=[files[number].path for number in outputs.column("file").to_pylist()] if has_ids else None,
            record=outputs.column("record").to_pylist() if has_ids else None,
            label=labels,
            prediction=prediction,
            right=is_right,
            outputs=[" ".join(f"{value:.6g}" for value in row) for row in values],
        ),
        right=sum(is_right),
    )


def _to_json(kept: KeptOutputs) -> Document:
    return {
        "step": kept.step,
        "examples": kept.table.num_rows,
        "right": kept.right,
        "first": kept.table.slice(0, LONGEST).to_pylist(),
    }


KEPT_OUTPUTS = Analysis(
    KeptOutputs,
    per_job=PerJob(lambda job: read_kept_outputs(job.tables.outputs, job.tables.files), NOT_KEPT),
    to_json=_to_json,
)
