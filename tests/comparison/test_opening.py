from pathlib import Path

import pytest

import pipeline_lab
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.comparison.opening import open_recorded
from pipeline_lab.errors import ComparisonError, TraceReadError
from pipeline_lab.runs.store import RunStore
from tests.support import results
from tests.support.recorded import recorded
from tests.support.run_folders import make_run
from tests.support.worlds import tune_options

TRACE = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"


def test_a_run_comes_with_its_options_environment_and_source(tmp_path: Path) -> None:
    folder = make_run(RunStore(tmp_path))
    for what in (folder.path, str(folder.path), diagnose(folder.path)):
        run = open_recorded(what)
        assert (run.name, run.id, run.state) == ("baseline", folder.id, "done")
        assert run.batch_size == 128
        assert run.environment["tensorflow"] == "2.21.0"
        assert run.source == folder.source.read_text()


def test_an_id_is_looked_up_in_the_store(tmp_path: Path) -> None:
    folder = make_run(RunStore(tmp_path))
    assert open_recorded(folder.id, tmp_path).id == folder.id


@pytest.mark.slow
def test_a_lone_trace_is_a_run_of_which_little_is_known() -> None:
    run = open_recorded(TRACE)
    assert (run.name, run.id, run.options, run.environment, run.source) == (TRACE.name, "", None, {}, None)


def test_what_is_open_already_stays_as_it_is() -> None:
    run = recorded()
    assert open_recorded(run) is run


def test_a_diagnosis_without_its_folder_is_a_log() -> None:
    assert open_recorded(results.diagnosis()).id == ""


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match="no file or folder 'gone', and no run of that id"):
        open_recorded("gone", tmp_path)


def test_compare_takes_whatever_can_be_opened(tmp_path: Path) -> None:
    folder = make_run(RunStore(tmp_path))
    comparison = pipeline_lab.compare(folder.path, diagnose(folder.path), recorded(), TRACE)
    assert [run.name for run in comparison.runs] == ["baseline (1)", "baseline (2)", "baseline (3)", TRACE.name]


def test_a_search_is_no_run_and_says_what_to_do(tmp_path: Path) -> None:
    folder = RunStore(tmp_path).create(tune_options(), "")
    with pytest.raises(ComparisonError, match=rf"{folder.id} is a search, .* `pipeline-lab report {folder.id}`"):
        open_recorded(folder.id, tmp_path)
    assert "A search tries many options" in str(options_of(folder))
