import pytest
from pydantic import ValidationError

from pipeline_lab.options.training import TrainingOptions


def test_a_job_has_steps_or_seconds() -> None:
    assert TrainingOptions(steps=None, seconds=2.5).seconds == 2.5
    for steps, seconds in ((None, None), (10, 2.5)):
        with pytest.raises(ValidationError, match="give either steps or seconds"):
            TrainingOptions(steps=steps, seconds=seconds)


def test_the_step_whose_outputs_are_kept_is_one_that_is_taken() -> None:
    assert TrainingOptions(steps=10, warmup_steps=2, keep_outputs_of_step=11).keep_outputs_of_step == 11
    with pytest.raises(ValidationError, match="keep_outputs_of_step is 12, but the last step is number 11"):
        TrainingOptions(steps=10, warmup_steps=2, keep_outputs_of_step=12)
