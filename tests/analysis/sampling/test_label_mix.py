import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.analysis.sampling import sample_history
from pipeline_lab.runs.run_tables import LABELS


def labels(*rows: tuple[int, int, int]) -> pa.Table:
    """Return labels given as (step, label, examples)."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(dict(zip(LABELS.schema.names, columns, strict=True)), schema=LABELS.schema)


def test_batches_of_one_label_are_half_off_a_run_of_two():
    found = sample_history.measure_labels(labels((0, 3, 4), (1, 5, 4)))
    assert found is not None
    assert (found.labels, found.batch_total_variation) == (2, 0.5)
    assert 0 < found.batch_total_variation_ideal < 0.4
    assert found.table.select(["label", "step", "samples"]).to_pylist() == [
        {"label": "3", "step": 0, "samples": 4},
        {"label": "5", "step": 1, "samples": 4},
    ]


def test_even_batches_are_not_off_at_all():
    found = sample_history.measure_labels(labels((0, 0, 1), (0, 1, 3), (1, 0, 1), (1, 1, 3)))
    assert found is not None
    assert found.batch_total_variation == pytest.approx(0)


def test_examples_without_labels_have_no_mix():
    assert sample_history.measure_labels(labels()) is None


def test_numbers_that_are_no_classes_are_left_out():
    assert (
        sample_history.measure_labels(labels(*((0, label, 1) for label in range(sample_history.MAX_LABELS + 1))))
        is None
    )


def test_many_steps_and_many_labels_take_the_memory_of_the_rows_there_are():
    step = np.arange(20_000)
    table = pa.table({"step": step, "label": step % 1000, "examples": np.ones(len(step))}).cast(LABELS.schema)
    tracemalloc.start()
    try:
        assert sample_history.measure_labels(table) is not None
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
