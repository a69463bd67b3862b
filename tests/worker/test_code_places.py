from pathlib import Path

import pipeline_lab
from pipeline_lab.worker.code_places import below

PACKAGE = Path(pipeline_lab.__file__).parent


def test_code_beside_the_package_is_the_users_whatever_its_folder_is_called() -> None:
    home = PACKAGE.parent
    assert below(str(home / f"{PACKAGE.name}_jobs" / "train.py"), home) == f"{PACKAGE.name}_jobs/train.py"
    assert below(str(home / f"{PACKAGE.name}.py"), home) == f"{PACKAGE.name}.py"
    assert not below(str(PACKAGE / "app.py"), home)


def test_frozen_modules_are_nobodys_file() -> None:
    assert not below("<frozen runpy>", Path.cwd())
