import os
from pathlib import Path

import psutil
import pytest

from pipeline_lab.runs.machine.limits import core_numbers, keep_to_cores, usable_cores, usable_memory_bytes

AFFINITY = len(os.sched_getaffinity(0))


def test_without_limits_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == AFFINITY
    assert usable_memory_bytes(tmp_path) == psutil.virtual_memory().total


def test_a_quota_may_allow_part_of_a_core(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(tmp_path) == 0.5


def test_an_unlimited_group_limits_nothing(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_cores(tmp_path) == AFFINITY
    assert usable_memory_bytes(tmp_path) == psutil.virtual_memory().total


def test_the_first_version_of_cgroups_is_read_too(tmp_path: Path) -> None:
    for name, text in (
        ("cpu/cpu.cfs_quota_us", "25000"),
        ("cpu/cpu.cfs_period_us", "100000"),
        ("memory/memory.limit_in_bytes", "1000000"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == 0.25
    assert usable_memory_bytes(tmp_path) == 1_000_000


def test_no_quota_in_the_first_version_is_minus_one(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert usable_cores(tmp_path) == AFFINITY


def test_where_no_process_is_tied_to_cores_it_may_use_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "sched_setaffinity")
    keep_to_cores([0])
    assert core_numbers() == list(range(os.cpu_count() or 1))
    assert usable_cores(tmp_path) == len(core_numbers())
