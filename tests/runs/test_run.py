import pytest

from pipeline_lab import run
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.record import RunState
from tests.support.lab import Lab, options_for


def test_a_script_gets_the_run_that_is_over(lab: Lab) -> None:
    done = run(options_for("done"), lab.store)
    assert done.record.status.state is RunState.DONE
    assert done.path == lab.store.root / done.id
    assert lab.store.read(done.id) == done.record


def test_a_failed_job_is_an_error_with_its_reason(lab: Lab) -> None:
    with pytest.raises(RunFailedError, match=r"Run .* failed: The file /data/a\.tfrecord is damaged at record 7\."):
        run(options_for("fail"), lab.store)
    assert lab.store.runs()[0].status.state is RunState.FAILED
