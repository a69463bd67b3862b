"""How a watched run's page leads to what to change in its script."""

from pathlib import Path

import pytest

from pipeline_lab.runs.store import open_store
from pipeline_lab.tuning.script.script_result import write_fix_command


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train.py", "pipeline-lab fix train.py --run one"),
        ("train.py --epochs 3", "pipeline-lab fix train.py --run one -- --epochs 3"),
        ("-m jobs.train 'a b'", "pipeline-lab fix -m jobs.train --run one -- 'a b'"),
    ],
)
def test_the_command_that_finds_a_change_starts_the_script_as_it_was_watched(command: str, expected: str) -> None:
    assert write_fix_command(command, open_store().root / "one") == expected


def test_a_store_of_its_own_is_named() -> None:
    expected = "pipeline-lab fix --store '/mnt/my runs' train.py --run one"
    assert write_fix_command("train.py", Path("/mnt/my runs/one")) == expected
