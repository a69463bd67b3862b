from pathlib import Path

import pytest

from pipeline_lab import tune
from pipeline_lab.errors import OptionsError
from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning import launching
from pipeline_lab.tuning.own_functions import WRAPPER, find_target, options_of_function
from pipeline_lab.tuning.space import make_space
from pipeline_lab.worker.own_dataset import OwnDataset
from pipeline_lab.workloads.module import ModuleWorkload

ROOT = str(Path(__file__).parents[2])


def make_batches(calls: int = 1, prefetch: int = 0) -> tuple[int, int]:
    return calls, prefetch


class Workload:
    """What ``--workload`` takes."""


def test_a_function_is_named_by_its_module_and_found_from_the_folder_above_its_package() -> None:
    assert find_target(make_batches) == ("tests.tuning.test_own_functions:make_batches", ROOT)
    assert find_target(pytest.raises)[0].endswith(":raises")


def test_a_function_is_called_with_what_is_tried() -> None:
    options = options_of_function(make_batches)
    space = make_space(options, only={"calls": ("1", "4"), "prefetch": ("2",)})
    found = {each.name: each.options.workload for each in space.configurations()}["calls 4, prefetch 2"]
    assert isinstance(found, ModuleWorkload)
    assert found.target == WRAPPER
    assert OwnDataset(**found.arguments).make_dataset() == (4, 2)  # type: ignore[arg-type]  # the first is a text


def test_texts_that_are_tried_stay_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launched: list[TuneOptions] = []

    class LaunchedError(Exception):
        pass

    def launch(_store: RunStore, options: TuneOptions) -> None:
        launched.append(options)
        raise LaunchedError

    monkeypatch.setattr(launching, "launch_tune", launch)
    with pytest.raises(LaunchedError):
        tune(make_batches, store=RunStore(tmp_path), only={"calls": [4, "4", "/a,b", "fast"]})
    assert launched[0].only == {"calls": ("4", '"4"', '"/a,b"', "fast")}
    for values, said in (([Path("/a")], "can be tried with numbers, texts"), (4, "only")):
        with pytest.raises(OptionsError, match=said):
            tune(make_batches, store=RunStore(tmp_path), only={"calls": values})


def test_a_class_is_a_workload_itself() -> None:
    workload = options_of_function(Workload).workload
    assert isinstance(workload, ModuleWorkload)
    assert workload.target == "tests.tuning.test_own_functions:Workload"


def test_what_another_process_cannot_import_is_refused() -> None:
    def inner() -> None: ...

    for function in (inner, lambda: None):
        with pytest.raises(OptionsError, match="put it at the top of a Python file"):
            find_target(function)
