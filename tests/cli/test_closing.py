"""The last words of a recording."""

from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint
from pipeline_lab.cli.closing import close, main
from pipeline_lab.runs import own_job_runs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import end_run
from pipeline_lab.runs.store import RunStore
from tests.support import results


def test_a_recording_ends_with_its_place_the_next_commands_and_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own_job_runs.begin(RunStore(tmp_path), "train.py", tags=())
    end_run(folder, RunState.FAILED, "The script called os._exit(3) at train.py, line 7.", 3)
    SavedDiagnosis(folder.path).save(results.diagnosis(), fingerprint(folder.path))
    close(folder)
    out, err = capsys.readouterr()
    assert out == ""
    reason, place, _, _, verdict, *_ = err.splitlines()
    assert reason == "The script called os._exit(3) at train.py, line 7."
    assert verdict.startswith("The device waits for input 60 % of the time")
    assert place == f"Run {folder.id} is in {tmp_path}. Next:"
    assert f"pipeline-lab analyze {folder.path}" in err
    assert f"pipeline-lab app --store {tmp_path}" in err
    assert f"/run?run={folder.id}" in err


def test_a_run_that_was_deleted_meanwhile_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["closing", str(tmp_path / "gone")])
    main()
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "gone" in sentence
