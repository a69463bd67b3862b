"""What is called when a package has been imported."""

import importlib
import sys
import types
from pathlib import Path

import pytest

from pipeline_lab.capture.script.at_import import after_import, is_imported
from pipeline_lab.capture.script_race import __main__ as race


@pytest.fixture(name="package")
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "watched_package.py").write_text("STATE = 'loaded'")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "watched_package", raising=False)
    return "watched_package"


def test_it_is_called_before_the_importer_goes_on_and_leaves_no_trace(package: str):
    before, seen = list(sys.meta_path), []
    after_import(package, lambda: seen.append((sys.modules[package].STATE, is_imported(package))))
    assert not seen
    assert not is_imported(package)
    module = importlib.import_module(package)
    assert seen == [("loaded", False)], "its importer still holds it"
    assert is_imported(package)
    assert sys.meta_path == before
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
    after_import(package, lambda: seen.append("again"))
    assert seen[1:] == ["again"]


def test_its_errors_and_those_of_the_package_stay_what_they_are(package: str, tmp_path: Path):
    after_import(package, lambda: 1 / 0)
    importlib.import_module(package)
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('own')")
    finders = list(sys.meta_path)
    after_import("broken_package", lambda: None)
    with pytest.raises(RuntimeError, match="own"):
        importlib.import_module("broken_package")
    sys.meta_path[:] = finders
    sys.modules.pop("watched_package")


def test_several_are_called_for_one_package_and_each_can_be_called_off(package: str):
    before, seen = list(sys.meta_path), []
    for number in range(3):
        forget = after_import(package, lambda number=number: seen.append(number))
    forget()
    importlib.import_module(package)
    assert sorted(seen) == [0, 1]
    assert sys.meta_path == before


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_race_hooks_a_keras_that_tensorflow_imports_only_once_tensorflow_is_there(
    monkeypatch: pytest.MonkeyPatch, is_loaded: bool
):
    hooked: list[bool] = []
    switching = types.SimpleNamespace(hook_keras=lambda: hooked.append(True))
    monkeypatch.setitem(sys.modules, "pipeline_lab.capture.script_race.switching", switching)
    monkeypatch.setattr(race, "is_imported", {"tensorflow": is_loaded}.__getitem__)
    race._hook_keras()
    assert hooked == [True] * is_loaded
