"""The search for the record behind an error of TensorFlow's: it names one, and does not go on for ever."""

from pathlib import Path

import pytest

from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest, StopRequestedError
from pipeline_lab.workloads.records import RecordsWorkload
from tests.runs.test_tfrecord import write_records
from tests.support.examples import example, floats, int64s

pytestmark = pytest.mark.tensorflow


def test_the_search_names_a_record_and_ends_when_the_job_shall_or_time_is_up(tmp_path: Path) -> None:
    from pipeline_lab.worker.workloads.data_and_step import find_misfit  # loads TensorFlow

    path = write_records(tmp_path / "a", [example(x=int64s(1)), example(x=floats(1))])
    workload = RecordsWorkload(pattern=str(path), features="x:int64")
    files, stop = [DataFile(str(path), None, path.stat().st_size)], StopRequest()
    assert "Record 1 of" in str(find_misfit(workload, files, stop))
    assert find_misfit(workload, files, stop, limit_s=-1.0) is None
    stop.request()
    with pytest.raises(StopRequestedError):
        find_misfit(workload, files, stop)
