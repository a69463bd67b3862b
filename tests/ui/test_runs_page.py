import os
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis, fingerprint_inputs
from pipeline_lab.runs import opened_logs, own_job_runs
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.runs_page import COLUMNS, find_groups, find_runs, groups_table, runs_table
from pipeline_lab.ui.shared import cache
from pipeline_lab.ui.shared.cache import RunSummary, summary
from tests.support import results
from tests.support.run_folders import make_run, make_samples, write_steps


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "profiles", make_samples(tmp_path / "samples"))


def test_the_numbers_are_those_of_the_steps_after_the_warmup(store):
    folder = make_run(store)
    numbers = summary(folder)
    assert numbers.step_ms == 20
    assert numbers.wait_percent == pytest.approx(60, abs=0.1)  # the last step lasts to its own end


def test_a_growing_run_is_read_again(store):
    folder = make_run(store, steps=5)
    assert summary(folder) == RunSummary(None, None)
    write_steps(folder, 30)
    assert summary(folder).step_ms == 20


def test_what_is_known_of_a_finished_run_is_kept_for_the_next_start(store, tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))
    folder = make_run(store)
    cache.summaries([folder])
    assert not (tmp_path / "cache" / cache.SUMMARIES).exists(), "the run may still go on"
    os.utime(folder.steps, (1.0, 1.0))
    (before,) = cache.summaries([folder])
    cache._kept_in.cache_clear()  # the app starts again
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_of_run", lambda *_: pytest.fail("it was read again"))
        assert cache.summaries([folder]) == [before]
    (tmp_path / "cache" / cache.SUMMARIES).write_text('{"half', encoding="utf-8")
    cache._kept_in.cache_clear()
    assert summary(folder) == before, "a damaged file costs nothing but time"


def test_a_run_without_steps_has_no_numbers(tmp_path):
    assert summary(RunFolder(tmp_path / "nothing")) == RunSummary(None, None)


def test_a_log_has_the_numbers_of_its_diagnosis(store):
    arrival = opened_logs.new_arrival(store)
    (arrival / "h.xplane.pb").write_bytes(b"x")
    folder = opened_logs.adopt(store, arrival, "h")
    assert summary(folder) == RunSummary(None, None)
    diagnosis = results.diagnosis(steps=replace(results.steps(), steps_per_marker=2.0))
    SavedDiagnosis(folder.path).save(diagnosis, fingerprint_inputs(folder.path))
    found = summary(folder)
    assert found.step_ms == pytest.approx(np.median(diagnosis.steps.length_ns) / 2e6)
    assert found.wait_percent == pytest.approx(diagnosis.input_stalls.wait_percent)


def test_a_watched_job_has_the_numbers_of_its_windows(store):
    folder = own_job_runs.begin(store, "train.py", tags=())
    assert summary(folder) == RunSummary(None, None)
    diagnosis = results.diagnosis()
    SavedDiagnosis(folder.path).save(diagnosis, "while it is going on")
    assert summary(folder).step_ms == pytest.approx(np.median(diagnosis.steps.length_ns) / 1e6)


def test_every_word_must_be_found(store):
    failed = make_run(store, "synthetic", RunState.FAILED)
    store.tag(failed.id, ("Paper",))
    make_run(store, "baseline")
    assert [run.id for run in find_runs(store.runs(), "paper FAILED")] == [failed.id]
    assert len(find_runs(store.runs(), "baseline")) == 2
    assert find_runs(store.runs(), "paper done") == []


def test_a_state_is_found_by_the_word_that_the_list_shows(store):
    canceled = make_run(store, state=RunState.CANCELLED)
    (shown,) = runs_table(store, [run for run in store.runs() if run.id == canceled.id]).column("State").to_pylist()
    assert [run.id for run in find_runs(store.runs(), shown)] == [canceled.id]


def test_samples_are_listed_as_such(store):
    make_run(store)
    table = runs_table(store, find_runs(store.runs(), ""))
    assert table.schema.equals(COLUMNS)
    assert table.column("State").to_pylist() == ["done", "sample", "sample"]
    assert table.column("Created").to_pylist()[0].year == datetime.now().year


def test_what_is_not_known_is_a_dash(open_page, run_store):
    make_run(run_store, steps=0)
    app = open_page("runs")
    assert app.dataframe[0].proto.placeholder == "–"


def test_a_long_list_begins_with_the_newest_and_shows_all_when_asked(open_page, run_store, monkeypatch):
    monkeypatch.setattr(cache, "FIRST_ROWS", 2)
    for _ in range(3):
        make_run(run_store, steps=0)
    app = open_page("runs")
    assert len(app.dataframe[0].value) == 2
    (toggle,) = app.toggle
    assert toggle.label == "Show all 3 runs, not only the newest 2"
    toggle.set_value(True).run()
    assert len(app.dataframe[0].value) == 3


def test_a_list_does_not_ask_the_disk_again_for_what_no_longer_changes(store, tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path / "cache"))
    folder = make_run(store)
    SavedDiagnosis(folder.path).save(results.diagnosis(), fingerprint_inputs(folder.path))
    for path in (folder.steps, folder.analysis / "diagnosis.json"):
        os.utime(path, (1.0, 1.0))
    (before,) = cache.summaries([folder])
    with monkeypatch.context() as patch:
        patch.setattr(cache, "fingerprint_file", lambda _: pytest.fail("it was asked again"))
        assert cache.summaries([folder]) == [before]


def test_runs_are_grouped_with_the_times_of_each_group(store):
    first, second = make_run(store, "synthetic"), make_run(store, "synthetic")
    make_run(store, "baseline")
    store.tag(first.id, ("slow", "mine"))
    store.tag(second.id, ("slow",))
    table = runs_table(store, [one for one in store.runs() if not store.is_sample(one.id)])
    by_preset = find_groups(table, "preset")
    assert {name: len(rows) for name, rows in by_preset.items()} == {"synthetic": 2, "baseline": 1}
    assert {name: len(rows) for name, rows in find_groups(table, "tag").items()} == {"slow": 2, "mine": 1, "–": 1}
    rows = {row["Preset"]: row for row in groups_table(table, by_preset, "preset").to_pylist()}
    assert rows["synthetic"]["Runs"] == 2
    assert rows["synthetic"]["Fastest (ms)"] == rows["synthetic"]["Median of their steps (ms)"] == 20


def test_a_list_of_groups_stands_above_the_runs(open_page, run_store):
    make_run(run_store, "synthetic")
    make_run(run_store, "baseline")
    app = open_page("runs", group="preset")
    assert not app.exception
    assert [len(one.value) for one in app.dataframe] == [2, 2]
