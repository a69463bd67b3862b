from pathlib import Path

import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.module_workload import ModuleWorkload
from pipeline_lab.tuning.own_functions import WRAPPER, find_target, options_of_function
from pipeline_lab.tuning.space import make_space
from pipeline_lab.worker.own_dataset import OwnDataset

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


def test_a_class_is_a_workload_itself() -> None:
    workload = options_of_function(Workload).workload
    assert isinstance(workload, ModuleWorkload)
    assert workload.target == "tests.tuning.test_own_functions:Workload"


def test_what_another_process_cannot_import_is_refused() -> None:
    def inner() -> None: ...

    for function in (inner, lambda: None):
        with pytest.raises(OptionsError, match="put it at the top of a Python file"):
            find_target(function)
