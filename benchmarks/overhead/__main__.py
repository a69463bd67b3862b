"""What ``ProfileWindows`` and ``watch`` cost a job of your own: ``python -m benchmarks.overhead``.

``ProfileWindows`` is measured inside one process, where blocks of steps with and without windows take turns in an order
drawn by chance. ``watch`` belongs to a whole process, so processes with and without it take turns, and their steps are
counted after a lead in which its first windows come closer together. Memory is that of whole processes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from pipeline_lab.statistics.paired import log_ratios, paired_ratio
from pipeline_lab.statistics.schedule import draw_order
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration

KINDS = {"keras": "Keras fit", "loop": "custom loop"}
MAX_OVERHEAD_PERCENT = 3.0
MEMORY_BUDGET_BYTES = 300_000_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--pairs", type=int, default=10, help="pairs of blocks inside one process")
    parser.add_argument("--block", type=int, default=2500, help="steps of a block: a quarter of a minute or so")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of processes")
    parser.add_argument("--lead", type=float, default=30.0, help="seconds of a process that do not count")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of a process that count")
    parser.add_argument("--memory", type=int, metavar="STEPS", help="only the memory that so many steps take")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        if chosen.memory:
            for kind in chosen.kinds:
                compare_memory(kind, chosen.memory, store)
            return
        for kind in chosen.kinds:
            blocks = run_job(kind, "--store", store, "--pairs", str(chosen.pairs), "--block", str(chosen.block))
            tell(f"ProfileWindows, {KINDS[kind]}", blocks["plain_s"], blocks["windows_s"], chosen.block)
            tell_cpu(blocks["plain_cpu_s"], blocks["windows_cpu_s"])
            length = ("--lead", str(chosen.lead), "--seconds", str(chosen.seconds))
            rounds = [run_round(kind, number, store, *length) for number in range(chosen.rounds)]
            plain, watched = ([each[arm] for each in rounds] for arm in (0, 1))
            tell(f"watch, {KINDS[kind]}", *([each["step_s"] for each in arm] for arm in (plain, watched)), 1)
            tell_cpu(*([each["step_cpu_s"] for each in arm] for arm in (plain, watched)))
            windows = run_job(kind, *length, "--windows", "--store", store)
            for name, grown in (("watch", watched), ("ProfileWindows", [windows])):
                tell_memory(f"{name}, {KINDS[kind]}", plain, grown)


def run_round(kind: str, number: int, store: str, *arguments: str) -> dict[int, dict[str, Any]]:
    """Run the job plain (0) and watched (1), in an order drawn for this round."""
    runner = ("pipeline_lab.capture.watch", "--store", store, "-m", "benchmarks.overhead.job")
    modules = {0: ("benchmarks.overhead.job",), 1: runner}
    return {arm: run_module(modules[arm], kind, *arguments) for arm in draw_order(2, number, seed=1)}


def compare_memory(kind: str, steps: int, store: str) -> None:
    """Take so many steps with and without windows, and tell the difference of the processes' peaks."""
    length = ("--steps", str(steps), "--store", store)
    plain, recorded = run_job(kind, *length), run_job(kind, *length, "--windows")
    tell_memory(f"ProfileWindows, {KINDS[kind]}", [plain], [recorded])


def run_job(kind: str, *arguments: str) -> dict[str, Any]:
    return run_module(("benchmarks.overhead.job",), kind, *arguments)


def run_module(module: tuple[str, ...], *arguments: str) -> dict[str, Any]:
    """Run a module in a process of its own and return the JSON in its last line."""
    command = [sys.executable, "-m", *module, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with code {ended.returncode}:\n{ended.stderr[-2000:]}")
    document: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return document


def tell(name: str, plain_s: list[float], recorded_s: list[float], steps: int) -> None:
    ratio = paired_ratio(log_ratios(np.array(plain_s), np.array(recorded_s)))
    low, middle, high = (100 * (each - 1) for each in (ratio.low, ratio.ratio, ratio.high))
    step = format_duration(float(np.median(plain_s)) / steps * NS_PER_S)
    verdict = "within" if high <= MAX_OVERHEAD_PERCENT else "BEYOND" if low > MAX_OVERHEAD_PERCENT else "too noisy for"
    print(
        f"{name}: {middle:+.2f} % ({low:+.2f} to {high:+.2f} %, {ratio.pairs} pairs, step {step}): "
        f"{verdict} {MAX_OVERHEAD_PERCENT:g} %",
        flush=True,
    )


def tell_cpu(plain_s: list[float], recorded_s: list[float]) -> None:
    """Print what it costs in processor time, which other programs on the machine hardly change."""
    ratio = paired_ratio(log_ratios(np.array(plain_s), np.array(recorded_s)))
    low, middle, high = (100 * (each - 1) for each in (ratio.low, ratio.ratio, ratio.high))
    print(f"  processor time {middle:+.2f} % ({low:+.2f} to {high:+.2f} %)", flush=True)


def tell_memory(name: str, plain: list[dict[str, Any]], recorded: list[dict[str, Any]]) -> None:
    before, after = (float(np.median([each["peak_bytes"] for each in arm])) for arm in (plain, recorded))
    steps = min(each["steps"] for each in recorded)
    verdict = "within" if after - before <= MEMORY_BUDGET_BYTES else "BEYOND"
    print(
        f"{name}: peak memory {format_bytes(before)}, {format_bytes(after - before)} more after {steps:,} steps: "
        f"{verdict} +{format_bytes(MEMORY_BUDGET_BYTES)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
