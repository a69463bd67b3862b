"""Saved diagnoses: loaded while fresh, missing when stale or damaged, kept elsewhere when the run cannot be written."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_lab import folders
from pipeline_lab.analysis.diagnosis import saved as saved_module
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import AnalysisProgress, SavedDiagnosis, bundle, fingerprint_inputs
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.runs.run_folder import RunFolder
from tests.support import results

SAMPLES = Path(__file__).parents[3] / "profiles" / "samples"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "20260101-120000-baseline-ab12")
    (folder.profile / "window-0001").mkdir(parents=True)
    folder.record.write_text("{}")
    folder.steps.write_bytes(b"steps")
    (folder.profile / "window-0001" / "host.xplane.pb").write_bytes(b"trace")
    return folder


def keep(run: RunFolder) -> SavedDiagnosis:
    saved = SavedDiagnosis(run.path)
    saved.save(results.diagnosis(), fingerprint_inputs(run.path))
    return saved


def same(left: Any, right: Any) -> bool:
    if isinstance(left, pa.Table):
        return bool(left.equals(right))
    if hasattr(left, "__dataclass_fields__"):
        return type(left) is type(right) and all(
            same(getattr(left, field.name), getattr(right, field.name)) for field in fields(left)
        )
    return bool(left == right)


@pytest.mark.parametrize("diagnosis", [results.diagnosis(), results.bare_diagnosis()], ids=["whole", "bare"])
def test_what_was_saved_comes_back_whole(run: RunFolder, diagnosis: Diagnosis):
    saved = SavedDiagnosis(run.path)
    saved.save(diagnosis, fingerprint_inputs(run.path))
    found = saved.load()
    assert found is not None
    assert same(found, diagnosis)
    assert found.to_json() == diagnosis.to_json()


def test_of_a_run_that_goes_on_only_what_its_tables_gain_is_written_and_all_of_it_comes_back(run: RunFolder):
    saved, seen = SavedDiagnosis(run.path), list[dict[str, int]]()
    for steps in (5000, 5020, 5040):
        diagnosis = results.diagnosis(job_steps=results.job_steps(steps))
        saved.save(diagnosis, fingerprint_inputs(run.path))
        found = SavedDiagnosis(run.path).load()
        assert found is not None
        assert same(found, diagnosis)
        files = run.analysis.glob("tables-*/result.job_steps.table.*")
        seen.append({file.name: file.stat().st_ino for file in files})
    first, *later = seen
    assert all(first.items() <= each.items() for each in later), "the first rows stay where they are"


def test_it_lies_in_the_runs_analysis_folder_and_one_older_generation_is_kept(run: RunFolder):
    keep(run)
    oldest = set(run.analysis.glob("tables-*"))
    keep(run)
    assert len(list(run.analysis.glob("tables-*"))) == 2
    keep(run)
    assert len(list(run.analysis.glob("tables-*"))) == 2
    assert not oldest & set(run.analysis.glob("tables-*"))
    assert (run.analysis / "diagnosis.json").is_file()


def test_two_that_save_in_turn_do_not_delete_each_others_tables(run: RunFolder):
    both = SavedDiagnosis(run.path), SavedDiagnosis(run.path)
    for number, steps in enumerate((5000, 5010, 5020, 5030, 5040)):
        both[number % 3 % 2].save(diagnosis := results.diagnosis(job_steps=results.job_steps(steps)), "")
        found = SavedDiagnosis(run.path).load_latest()
        assert found is not None
        assert same(found, diagnosis)
        assert len(list(run.analysis.glob("tables-*"))) <= 2


@pytest.mark.parametrize("cleared", [".", "tables-*"])
def test_who_goes_on_saving_where_somebody_cleared_the_folder_begins_anew(run: RunFolder, cleared: str):
    saved = SavedDiagnosis(run.path)
    saved.save(results.diagnosis(), fingerprint_inputs(run.path))
    for folder in [run.analysis] if cleared == "." else list(run.analysis.glob(cleared)):
        shutil.rmtree(folder)
    saved.save(results.diagnosis(), fingerprint_inputs(run.path))
    assert saved.load() is not None


def test_a_reader_that_holds_the_document_before_still_finds_its_tables(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
):
    saved, read = keep(run), saved_module.read_result

    def read_late(value: Any, folder: Path, kind: type[Any]) -> Any:
        monkeypatch.setattr(saved_module, "read_result", read)
        keep(run)  # between the document and its tables, as while a run is followed
        return read(value, folder, kind)

    monkeypatch.setattr(saved_module, "read_result", read_late)
    found = saved.load()
    assert found is not None
    assert same(found, results.diagnosis())


def test_a_grown_table_or_a_new_window_makes_it_stale(run: RunFolder):
    saved = keep(run)
    assert saved.is_fresh
    run.steps.write_bytes(b"steps and more")
    assert not saved.is_fresh
    assert saved.load() is None
    assert saved.load_latest() is not None
    saved.save(results.diagnosis(), fingerprint_inputs(run.path))
    (run.profile / "window-0002").mkdir()
    (run.profile / "window-0002" / "host.xplane.pb").write_bytes(b"trace")
    assert saved.load() is None


def test_of_a_folder_that_is_no_log_no_more_is_looked_at_than_a_search_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def endless(_: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for number in range(1000):
            yield str(tmp_path / str(number)), [], ["file"]
        raise AssertionError("walked on")

    monkeypatch.setattr(folders, "MAX_ENTRIES", 100)
    monkeypatch.setattr(os, "walk", endless)
    assert fingerprint_inputs(tmp_path)


def test_renaming_or_tagging_a_run_does_not_make_it_stale(run: RunFolder):
    saved = keep(run)
    run.record.write_text('{"name": "other"}')
    assert saved.is_fresh


def test_another_version_of_the_analysis_makes_it_stale(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    saved = keep(run)
    monkeypatch.setattr(saved_module, "ANALYSIS_VERSION", 10**6)
    assert saved.load() is None
    assert saved.load_latest() is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 1, "diagnosis": {"class": "Nope"}}'])
def test_a_damaged_document_reads_as_missing(run: RunFolder, damage: str):
    saved = keep(run)
    (run.analysis / "diagnosis.json").write_text(damage)
    assert saved.load() is None
    assert not saved.is_fresh
    assert saved.load_latest() is None


@pytest.mark.parametrize("content", [None, b"", b"ARROW1\0\0 nonsense"])
def test_a_missing_or_damaged_table_reads_as_missing(run: RunFolder, content: bytes | None):
    saved = keep(run)
    for table in run.analysis.rglob("*.arrow"):
        table.unlink()
        if content is not None:
            table.write_bytes(content)
    assert saved.load_latest() is None
    assert not saved.is_fresh, "so that it is made again"


def test_a_run_that_cannot_be_written_uses_the_users_cache(run: RunFolder):
    run.analysis.write_bytes(b"a file where the folder should be")  # root may write everywhere; this stops even root
    saved = keep(run)
    assert same(saved.load(), results.diagnosis())
    kept = Path(os.environ["PIPELINE_LAB_CACHE"]) / "analysis"
    assert list(kept.rglob("diagnosis.json"))


def test_bundled_samples_are_never_written_to(run: RunFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saved_module, "samples_folder", lambda: run.path.parent)
    assert same(keep(run).load(), results.diagnosis())
    assert not run.analysis.exists()


def test_a_diagnosis_that_came_with_its_run_holds_wherever_the_run_lies(run: RunFolder, tmp_path: Path):
    bundle(results.diagnosis(), run.path, {})
    shipped = sorted(run.analysis.rglob("*"))
    elsewhere = RunFolder(Path(shutil.copytree(run.path, tmp_path / "elsewhere" / "copied")))
    found = SavedDiagnosis(elsewhere.path).load()
    assert found is not None
    assert found.source.path == str(elsewhere.path)
    keep(run)
    assert sorted(run.analysis.rglob("*")) == shipped, "another diagnosis goes to the user's cache"
    elsewhere.steps.write_bytes(elsewhere.steps.read_bytes() + b"more")
    assert SavedDiagnosis(elsewhere.path).load() is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sample-baseline", "sample-optimised"])
def test_samples_ship_with_the_diagnosis_that_they_would_get_now(name: str):
    path = SAMPLES / name
    shipped = SavedDiagnosis(path).load()
    assert shipped is not None, "make it again: make samples-analysis"
    found = diagnose(path)
    assert _rounded(shipped) == _rounded(found), "raise ANALYSIS_VERSION, then make it again, as above"


def _rounded(diagnosis: Diagnosis) -> Any:
    """Return the document without the last digits of its numbers, which processors round differently."""
    return json.loads(json.dumps(diagnosis.to_json()), parse_float=lambda digits: float(f"{float(digits):.10g}"))


def test_other_logs_are_never_written_to(tmp_path: Path):
    log = tmp_path / "logs"
    log.mkdir()
    (log / "host.xplane.pb").write_bytes(b"trace")
    saved = SavedDiagnosis(log)
    saved.save(results.diagnosis(), fingerprint_inputs(log))
    assert same(saved.load(), results.diagnosis())
    assert [entry.name for entry in log.iterdir()] == ["host.xplane.pb"]


def test_errors_and_progress_can_be_read_until_the_next_success(run: RunFolder):
    saved = SavedDiagnosis(run.path)
    assert (saved.error, saved.progress) == (None, None)
    saved.save_error("The trace is empty; record it again.")
    saved.save_progress(2, 5, "window-0003")
    assert saved.error == "The trace is empty; record it again."
    assert saved.progress == AnalysisProgress(2, 5, "window-0003")
    saved.end_progress()
    saved.save(results.diagnosis(), "")
    assert (saved.error, saved.progress) == (None, None)


def test_one_analysis_at_a_time(run: RunFolder):
    saved = SavedDiagnosis(run.path)
    with saved.lock() as first, SavedDiagnosis(run.path).lock() as second:
        assert (first, second) == (True, False)
    with saved.lock() as again:
        assert again
