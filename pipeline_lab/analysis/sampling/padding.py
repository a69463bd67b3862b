"""How much of the batches was padding, for examples that differ in length."""

import numpy as np
import pyarrow as pa

from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.declaring.declaration import Analysis, Document, PerJob
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceIncompleteError

NO_PADDING = (
    "How much of a batch is padding was not noted; jobs of the audio workload note it, such as "
    "`pipeline-lab run --preset audio-padded`, and `pipeline-lab watch` does of scripts with padded_batch where it times the step alone."
)


@dataclass(frozen=True, eq=False)
class Padding:
    """The padding of a run's batches, warm-up included: how long an example is has nothing to do with it.

    Attributes:
        table: One row per batch, ``runs.run_tables.PADDING``.
        examples: In all batches.
        elements: That the steps were sent, padding included.
        padding_elements: Of them.
        batch_percent: 5th, 50th and 95th percentile of the batches' padding, percent of their elements.
    """

    table: pa.Table
    examples: int
    elements: int
    padding_elements: int
    batch_percent: tuple[float, float, float]

    @property
    def percent(self) -> float:
        """Padding over all elements sent, percent."""
        return 100.0 * self.padding_elements / self.elements if self.elements else 0.0

    @property
    def examples_per_step(self) -> float:
        return float(self.examples / self.table.num_rows)


def measure_padding(table: pa.Table) -> Padding:
    """Add up the padding of the batches.

    Args:
        table: What the job noted, of schema ``runs.run_tables.PADDING``.

    Raises:
        TraceIncompleteError: It noted nothing.
    """
    if not table.num_rows:
        raise TraceIncompleteError(NO_PADDING)
    examples, elements, padding = (tables.ints(table, name) for name in ("examples", "elements", "padding"))
    low, middle, high = np.percentile(100.0 * padding / np.maximum(elements, 1), (5, 50, 95)).tolist()
    return Padding(table, int(examples.sum()), int(elements.sum()), int(padding.sum()), (low, middle, high))


def _to_json(found: Padding) -> Document:
    low, middle, high = found.batch_percent
    return {
        "padding_percent": found.percent,
        "elements": found.elements,
        "padding_elements": found.padding_elements,
        "examples": found.examples,
        "batches": found.table.num_rows,
        "batch_percent": {"p5": low, "median": middle, "p95": high},
    }


PADDING = Analysis(
    Padding, per_job=PerJob(lambda job: measure_padding(job.tables.padding), NO_PADDING), to_json=_to_json
)
