import pytest
from pydantic import ValidationError

from pipeline_lab.options.profiling import ProfilingOptions


def test_the_duty_is_the_share_of_profiled_steps() -> None:
    assert ProfilingOptions().duty_percent == 5.0
    assert ProfilingOptions(steps_per_window=1, every_steps=4).duty_percent == 25.0
    assert ProfilingOptions(enabled=False).duty_percent == 0.0


def test_windows_do_not_overlap() -> None:
    assert ProfilingOptions(steps_per_window=5, every_steps=5).duty_percent == 100.0
    with pytest.raises(ValidationError, match="windows of 6 steps do not fit into every 5 steps"):
        ProfilingOptions(steps_per_window=6, every_steps=5)
