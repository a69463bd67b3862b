import pytest
from pydantic import ValidationError

from pipeline_lab.options.training import TrainingOptions


def test_a_job_has_steps_or_seconds() -> None:
    assert TrainingOptions(steps=None, seconds=2.5).seconds == 2.5
    for steps, seconds in ((None, None), (10, 2.5)):
        with pytest.raises(ValidationError, match="give either steps or seconds"):
            TrainingOptions(steps=steps, seconds=seconds)
