"""Cores and memory that this process may use: affinity and control groups can allow less than the machine has."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60


def core_numbers() -> list[int]:
    """Return the cores that affinity allows; all of them where the system has no affinity, as on macOS."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def keep_to_cores(cores: Sequence[int]) -> None:
    """Restrict this process to some cores, where the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def usable_cores(cgroup: Path = CGROUP) -> float:
    """Return the cores that affinity and cgroup allow; a quota may allow a fraction."""
    affinity = float(len(core_numbers()))
    quotas = [quota for text in _limits(cgroup, "cpu.max") if (quota := _cpu_quota(text)) is not None]
    period_us, quota_us = _v1_number(cgroup / "cpu/cpu.cfs_period_us"), _v1_number(cgroup / "cpu/cpu.cfs_quota_us")
    if period_us and quota_us and quota_us > 0:
        quotas.append(quota_us / period_us)
    return min([affinity, *quotas])


def usable_memory_bytes(cgroup: Path = CGROUP) -> int:
    """Return the memory that the machine has and the cgroup allows, bytes."""
    limits = [int(text) for text in _limits(cgroup, "memory.max") if text.isdecimal()]
    v1 = _v1_number(cgroup / "memory/memory.limit_in_bytes")
    limits += [v1] if v1 and v1 < UNLIMITED_BYTES else []
    return min([psutil.virtual_memory().total, *limits])


def _limits(cgroup: Path, name: str) -> list[str]:
    """Return a limit of the process's own group and of every group above it."""
    texts = []
    for folder in [cgroup / part for part in _own_groups()]:
        try:
            texts.append((folder / name).read_text().strip())
        except OSError:
            continue
    return texts


def _own_groups() -> list[str]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return [""]
    own = next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
    parts = own.split("/") if own else []
    return ["/".join(parts[:length]) for length in range(len(parts) + 1)]


def _cpu_quota(text: str) -> float | None:
    quota, _, period = text.partition(" ")
    return int(quota) / int(period or 100_000) if quota.isdecimal() else None


def _v1_number(path: Path) -> int | None:
    try:
        number = float(path.read_text())
    except (OSError, ValueError):
        return None
    return int(number) if math.isfinite(number) else None
