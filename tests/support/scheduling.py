"""Which tests share one process of pytest-xdist: those that share something costly, by what their file asks for.

``xdist_group`` would say it test by test, but pytest-xdist 3.8 writes the group where pytest 9.2 no longer looks
(pytest-dev/pytest-xdist#1386), so that every process would start a server, a browser and a TensorFlow of its own.
"""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

FOLDERS = {"tests/browser/": "app", "tests/report/": "report"}
"""Whose tests share the app in a browser, and what each process draws once of the reports."""
WORKERS = {"ask_tensorflow": "tensorflow", "ask_gpu": "gpu"}
"""Fixtures that start a process with TensorFlow, and the group of the files that ask for them."""
RECIPES = "tests/worker/recipe/"
"""Whose tests take half the time of those with TensorFlow: in one process with the rest they would end long after all others."""
FOR_A_FILE = 'scope="module"'
"""What a file makes once for its tests, every process that runs one of them would make."""


class FileGroups(LoadScopeScheduling):
    """Gives the largest groups out first, and tests of no group one by one wherever a process is free."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return find_group(self.config.rootpath, file) or nodeid


@cache
def find_group(root: Path, file: str) -> str | None:
    """Return what the tests of a file share: the app in a browser, a process that has TensorFlow loaded, what one of them made."""
    for folder, group in FOLDERS.items():
        if file.startswith(folder):
            return group
    text = (root / file).read_text(encoding="utf-8")
    for fixture, group in WORKERS.items():
        if re.search(rf"def \w+\([^)]*\b{fixture}\b", text):
            return f"{group} of recipes" if file.startswith(RECIPES) else group
    return file if FOR_A_FILE in text else None
