import re

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


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"device": "cpu", "step_ms": 5}, "step_ms is a step of the emulated accelerator; set device = emulated"),
        ({"loop": "keras_fit"}, "called from Python, step by step; set loop = custom"),
        ({"loop": "in_graph"}, "called from Python, step by step; set loop = custom"),
        ({"xla": True}, "has no model, so xla means nothing; leave it out"),
        ({"precision": "mixed_float16"}, "has no model, so precision means nothing"),
        ({"replicas": 2}, "has no model, so replicas means nothing"),
        ({"checkpoint_every": 10}, "has no model, so checkpoint_every means nothing"),
        ({"keep_outputs_of_step": 3}, "has no model, so keep_outputs_of_step means nothing"),
        ({"step_times_ms": [20.0], "step_ms": 5}, "leave out step_ms and step_variation_percent"),
        ({"step_times_ms": "20,quick"}, "'quick' is not a time; write times in ms like 20,35.5 or 3x20,35.5"),
        ({"device": "auto", "loop": "in_graph", "read_every_step": True}, "leave out read_every_step"),
    ],
)
def test_the_emulated_accelerator_refuses_what_needs_a_model(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(sentence)):
        TrainingOptions.model_validate({"device": "emulated", **settings})


def test_step_times_are_numbers_or_a_short_text() -> None:
    for times in ("2x20, 35.5", [20, 20, 35.5]):
        assert TrainingOptions.model_validate({"device": "emulated", "step_times_ms": times}).mean_step_ms == 75.5 / 3
    assert TrainingOptions.model_validate({"device": "emulated", "step_times_ms": 7}).step_times_ms == (7.0,)
    assert TrainingOptions.model_validate({"step_times_ms": ""}).step_times_ms == ()


@pytest.mark.parametrize(
    ("settings", "varies"),
    [
        ({"step_ms": 20}, False),
        ({"step_ms": 20, "step_variation_percent": 50}, True),
        ({"step_times_ms": [5, 5]}, False),
        ({"step_times_ms": [5, 60]}, True),
    ],
)
def test_set_times_vary_where_steps_differ(settings: dict[str, object], varies: bool) -> None:
    assert TrainingOptions.model_validate({"device": "emulated", **settings}).times_vary is varies
