import pytest
from pydantic import ValidationError

from pipeline_lab.options.profiling import ProfilingOptions


def test_windows_do_not_overlap() -> None:
    assert ProfilingOptions(steps_per_window=5, every_steps=5).steps_per_window == 5
    with pytest.raises(ValidationError, match="windows of 6 steps do not fit into every 5 steps"):
        ProfilingOptions(steps_per_window=6, every_steps=5)
