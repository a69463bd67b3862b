import re
from pathlib import Path

import pipeline_lab
from pipeline_lab.worker.code_places import below, explain

PACKAGE = Path(pipeline_lab.__file__).parent


def test_code_beside_the_package_is_the_users_whatever_its_folder_is_called() -> None:
    home = PACKAGE.parent
    assert below(str(home / f"{PACKAGE.name}_jobs" / "train.py"), home) == f"{PACKAGE.name}_jobs/train.py"
    assert below(str(home / f"{PACKAGE.name}.py"), home) == f"{PACKAGE.name}.py"
    assert not below(str(PACKAGE / "app.py"), home)


def test_frozen_modules_are_nobodys_file() -> None:
    assert not below("<frozen runpy>", Path.cwd())


def test_data_that_ended_are_said_to_have() -> None:
    try:
        next(iter(()))
    except StopIteration as error:
        told = explain(error, Path(__file__).parent, "The script")
    assert re.fullmatch(
        r"The script stopped at test_code_places\.py, line \d+ with StopIteration: the data had ended\.", told
    )
