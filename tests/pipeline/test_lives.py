import numpy as np
import pytest

from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.pipeline.predicted_order import predict_run, reachable_examples

REBUILT, KEPT = (find_preset(name).options for name in ("evaluation-rebuilt", "evaluation-kept"))
RECORDS = np.array(REBUILT.file_sizes, np.int64)


def different(options: RunOptions) -> int:
    """Return how many different records 200 batches are predicted to hold."""
    order = predict_run(options, RECORDS, 200, cores=2)
    assert order is not None
    assert len(order.file) == 200 * 32
    return len(np.unique(order.number))


def test_a_pipeline_that_starts_over_shows_a_life_and_its_buffer_at_most():
    assert reachable_examples(REBUILT) == 25 * 32 + 256
    assert 900 < different(REBUILT) <= 25 * 32 + 256
    assert reachable_examples(KEPT) is None
    assert different(KEPT) == RECORDS.sum()


@pytest.mark.parametrize(
    "setting",
    [("pipeline.read.shuffle_files", "true"), ("pipeline.read.mode", "sample"), ("training.evaluate_every", "")],
)
def test_a_pipeline_that_begins_elsewhere_each_time_has_no_such_limit(setting: tuple[str, str]) -> None:
    settings = [("training.held_out_files", "0"), setting]
    if setting[1] == "":
        settings[-1] = ("training.evaluate_every", "null")
    assert reachable_examples(set_options(REBUILT, settings)) is None


def test_without_shuffling_every_life_is_the_same():
    options = set_options(REBUILT, [("pipeline.shuffle.buffer_size", "1"), ("training.evaluate_every", "10")])
    order = predict_run(options, RECORDS, 30, cores=2)
    assert order is not None
    assert order.number.tolist() == list(range(320)) * 3
    assert order.batch.tolist() == [batch for batch in range(30) for _ in range(32)]


def test_it_is_said_before_the_run():
    found = {finding.kind: finding.sentence for finding in lint_pipeline(REBUILT)}
    assert "at most 1,056 of 1,792, however long it trains" in found["starts-over"]
    assert "starts-over" not in {finding.kind for finding in lint_pipeline(KEPT)}
