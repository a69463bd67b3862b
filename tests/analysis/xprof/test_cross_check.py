"""Our numbers beside XProf's for whatever was diagnosed, kept with it."""

import shutil
from pathlib import Path

import pytest

from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
from pipeline_lab.analysis.xprof import cross_check as module
from pipeline_lab.analysis.xprof.cross_check import cross_check_saved
from pipeline_lab.analysis.xprof.xprof_comparison import CROSS_CHECK, CrossCheck
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.store import RunStore
from tests.support.recorded_run import write_run

TRACE = Path(__file__).parents[2] / "data" / "small_pipeline.xplane.pb"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the names of the files that XProf was asked about; it has no answer."""
    asked: list[list[str]] = []

    def ask(paths: list[Path], _: object) -> Unavailable:
        assert all(path.is_file() for path in paths)
        asked.append([path.name for path in paths])
        return Unavailable("XProf is away.")

    monkeypatch.setattr(module, "ask_xprof", ask)
    return asked


@pytest.mark.slow
def test_xprof_answers_and_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis = diagnose(TRACE)
    check = cross_check_saved(TRACE, diagnosis)
    assert check.version
    assert [row.quantity for row in check.differences][:2] == ["steps", "step time (mean)"]
    assert check.to_json()["differences"][0]["quantity"] == "steps"
    monkeypatch.setattr(module, "ask_xprof", None)
    assert cross_check_saved(TRACE, diagnosis) == check == SavedDiagnosis(TRACE).load_beside(CROSS_CHECK, CrossCheck)


def test_a_runs_windows_are_asked_about_together(tmp_path: Path, asked: list[list[str]]) -> None:
    path = write_run(tmp_path / "run").path
    check = cross_check_saved(path, diagnose(path))
    assert len(asked[0]) == 2
    assert check.differences[0].reasons == ("XProf is away.",)
    assert (path / "analysis" / "xprof.json").is_file()


def test_an_archive_is_unpacked_for_xprof(tmp_path: Path, asked: list[list[str]]) -> None:
    (tmp_path / "log").mkdir()
    shutil.copy(TRACE, tmp_path / "log" / "host.xplane.pb")
    archive = Path(shutil.make_archive(str(tmp_path / "log"), "zip", tmp_path / "log"))
    store = RunStore(tmp_path / "profiles")
    arrival = opened_logs.new_arrival(store)
    opened_logs.bring(archive, arrival)
    folder = opened_logs.adopt(store, arrival, "log")
    cross_check_saved(folder.path, diagnose(folder.path))
    assert asked == [["host.xplane.pb"]]
