import pytest

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.proposals import Case
from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.advice.suggestions import suggest
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.run_options import RunOptions, set_options
from tests.support import results
from tests.support.measured import MS, measured

PADDED, RAGGED = find_preset("audio-padded").options, find_preset("audio-ragged").options
KEPT = 1 - 0.699
"""What is not padding, as ``clip_lengths`` predicts it."""


def run(options: RunOptions = PADDED) -> Measured:
    """Return a run whose step of 100 ms is the training computation, half of it on a processor that is not needed."""
    stages = tuple(StageCost(stage.stage, 0.0, 0.0) for stage in options.pipeline.stages)
    return measured(options=options, stages=stages, step_ms=100.0, device_only_ms=100.0, step_cpu_ms=50.0)


def test_a_step_that_is_sent_no_padding_takes_the_less() -> None:
    found = predict(run(), RAGGED)
    assert isinstance(found, Prediction)
    assert round(found.step_ns / MS / 100, 2) == round(KEPT, 2)
    assert "padding included" in found.notes[0]
    same = predict(run(), PADDED)
    assert isinstance(same, Prediction)
    assert same.step_ns / MS == 100.0


def test_what_clips_of_ones_own_would_be_padded_to_is_not_known() -> None:
    own = set_options(PADDED, [("workload.data", "folder"), ("workload.folder", "/clips")])
    ragged = set_options(own, [("pipeline.batch.mode", "ragged_batch")])
    found = predict(run(own), ragged)
    assert isinstance(found, Unavailable)
    assert "How long your clips are is not known" in found.reason


@pytest.mark.slow
def test_much_padding_is_a_reason_for_ragged_batches() -> None:
    much = results.diagnosis(padding=results.padding(percent=70))
    (found,) = (each for each in suggest(much, run(), "some-run") if "ragged" in each.change)
    assert found.why.startswith("70 % of each batch is padding")
    assert not [each for each in suggest(results.diagnosis(), run(), "some-run") if "ragged" in each.change]


def test_choices_are_compared_by_the_time_of_an_example() -> None:
    case = Case(run(), results.diagnosis())
    larger = set_options(PADDED, [("pipeline.batch.size", "64")])
    found = predict(run(), larger)
    assert isinstance(found, Prediction)
    assert case.ns_per_example(larger) == found.step_ns / 64
