from pathlib import Path

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import own_options, set_options
from pipeline_lab.runs.launch import launchable
from pipeline_lab.runs.launch.launchable import check_launchable, no_such_script
from pipeline_lab.runs.launch.launcher import launch
from tests.support.lab import Lab
from tests.support.presets import BASELINE, FEATURES_LOOKUP, SYNTHETIC


def test_a_module_that_is_nowhere_is_refused_before_there_is_a_run(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(
        OptionsError, match=rf"^There is no module nosuch\.thing in {tmp_path}, nor among the installed"
    ):
        launch(lab.store, own_options("nosuch.thing:make", str(tmp_path)))
    assert lab.store.runs() == []


def test_a_module_is_found_in_its_folder_or_among_the_packages_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('this is not to be run')")
    for target in ("mine:make", "mine.part:make", "json:loads"):
        check_launchable(own_options(target, str(tmp_path)))


def test_what_stands_in_place_of_a_script_is_told_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    assert no_such_script("project", tmp_path / "project").startswith("project is a folder; specify a Python file in")
    assert no_such_script("python3", tmp_path / "python3").startswith("There is no script python3; leave Python out")
    for name in ("t.py", "python_basics.py"):
        assert no_such_script(name, tmp_path / name) == (
            f"There is no script {name}; specify a Python file, or a module with -m."
        )


def test_a_pattern_that_searches_without_end_is_refused() -> None:
    endless = set_options(BASELINE.options, [("workload.data", "files"), ("workload.pattern", "/data/**/a-*")])
    with pytest.raises(
        OptionsError, match=r"^The pattern '/data/\*\*/a-\*' contains '\*\*', .* such as /data/\*/train-"
    ):
        check_launchable(endless)
    check_launchable(set_options(endless, [("workload.pattern", "/data/*/a-*")]))


TABLE_OF_400_MB = [("workload.vector_size", "1000"), ("workload.examples_per_file", "2000000")]


def test_a_table_larger_than_memory_is_refused_before_there_is_a_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchable, "usable_memory_bytes", lambda: 300_000_000)
    options = set_options(FEATURES_LOOKUP.options, [*TABLE_OF_400_MB, ("workload.layout", "variable")])
    with pytest.raises(
        OptionsError, match=r"^The table of vectors takes 400 MB, but this job may use 300 MB of memory"
    ):
        launch(lab.store, options)
    assert lab.store.runs() == []


def test_a_table_that_stays_on_disk_may_be_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchable, "usable_memory_bytes", lambda: 300_000_000)
    launchable.check_room(set_options(FEATURES_LOOKUP.options, TABLE_OF_400_MB))
    launchable.check_room(SYNTHETIC.options)
