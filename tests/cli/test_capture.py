"""What ``capture`` says at its end; the job and the process that records from it are planted."""

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.own_job_runs import RemoteCapture
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, end_run
from pipeline_lab.runs.store import RunStore
from tests.cli.support import call
from tests.support import results
from tests.support.lab import Lab


def _plant(monkeypatch: pytest.MonkeyPatch, state: RunState, reason: str) -> None:
    def launch(store: RunStore, chosen: RemoteCapture) -> RunFolder:
        folder = own_job_runs.begin(store, f"capture {chosen.address}", tags=())
        end_run(folder, state, reason)
        SavedDiagnosis(folder.path).save(results.diagnosis(), fingerprint_inputs(folder.path))
        return folder

    monkeypatch.setattr(own_job_runs, "launch_capture", launch)


def test_a_cancelled_capture_tells_what_it_found_before_it_leaves_with_1(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plant(monkeypatch, RunState.CANCELLED, "Canceled after 1 window.")
    ended = call("capture", "localhost:6009", "--store", lab.store.root)
    assert ended.exit_code == 1
    assert "The device waits for input 60 % of the time" in ended.stderr
    assert "was canceled: Canceled after 1 window." in ended.stderr.splitlines()[-1]


def test_a_capture_that_failed_has_nothing_to_judge(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, RunState.FAILED, "Nothing answers at localhost:6009.")
    ended = call("capture", "localhost:6009", "--store", lab.store.root)
    assert ended.exit_code == 1
    assert "The device waits" not in ended.stderr
    assert "failed: Nothing answers at localhost:6009." in ended.stderr.splitlines()[-1]
