"""What users get is what the golden files hold; ``python -m tests.golden --write`` writes them again."""

import pytest

from tests.golden import parts
from tests.golden.__main__ import FILES

QUICK = [name for name in parts.PARTS if name != "positions"]
"""Every stage at every place takes minutes; its cases are a law of their own in the tests of the renderer."""


@pytest.mark.slow
@pytest.mark.reference_traces
@pytest.mark.parametrize("name", QUICK)
def test_a_part_is_what_its_golden_files_hold(name: str) -> None:
    made = {file: parts.shorten(text) for file, text in parts.make(name).items()}
    stored = parts.read(FILES / name)
    assert sorted(made) == sorted(stored)
    assert [file for file in made if made[file] != stored[file]] == []
