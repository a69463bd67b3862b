"""The search for the record behind an error of TensorFlow's: it names one, and does not go on for ever."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.data_files.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s


@pytest.mark.tensorflow
def test_the_search_names_a_record_and_ends_when_the_job_shall_or_time_is_up(
    ask_tensorflow: Callable[..., Any], tmp_path: Path
) -> None:
    path = write_records(tmp_path / "a", [example(x=int64s(1)), example(x=floats(1))])
    named, late, stopped = ask_tensorflow("search_misfit", path=str(path))
    assert "Record 1 of" in named
    assert late is None
    assert stopped == "StopRequestedError"
