"""What ``ProfileWindows`` and ``watch`` cost a job of your own: ``python -m benchmarks.overhead``.

Inside one process blocks of steps with and without a window take turns, in an order drawn by chance: that is what a window
costs, its flushing and the start of the recording included. It is spread over the time from one window to the next: the period
of ``watch``, and for ``ProfileWindows``, which spaces its windows by what they cost, the one seen in a longer run. What is
done between the windows is measured beside a process that trains nothing. Memory is that of whole processes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from pipeline_lab.statistics.paired import log_ratios, paired_ratio
from pipeline_lab.units import format_bytes

JOB = "benchmarks.overhead.job"
WATCH = ("pipeline_lab.capture.watch_script",)
NAMES = {"windows": "ProfileWindows", "watch": "watch"}
KINDS = {"keras": "Keras fit", "loop": "custom loop"}
MAX_OVERHEAD_PERCENT = 3.0
MEMORY_BUDGET_BYTES = 300_000_000
WATCH_EVERY_S = 20.0
"""From one window of ``watch`` to the next, unless told otherwise."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--recorders", nargs="+", choices=NAMES, default=["watch"], help="both take about 20 minutes")
    parser.add_argument("--pairs", type=int, default=90, help="pairs of blocks for ProfileWindows")
    parser.add_argument(
        "--watch-pairs", type=int, default=5, help="pairs of blocks for watch, which are longer; 30 for a figure"
    )
    parser.add_argument("--block", type=float, default=1.5, help="seconds of a block for ProfileWindows, more or less")
    parser.add_argument("--watch-block", type=float, default=5.5, help="seconds of such a block, more or less")
    parser.add_argument(
        "--steps", type=int, default=2000, help="steps of the longer runs; 10000 for a figure of memory"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        for kind in chosen.kinds:
            length = (kind, "--steps", str(chosen.steps))
            plain = run_job(*length)
            step_s = plain["seconds"] / chosen.steps
            for recorder in chosen.recorders:
                if recorder == "watch":
                    found = run_module((*WATCH, "--store", store, "-m", JOB), *length)
                    pairs, block_s, period_s = chosen.watch_pairs, chosen.watch_block, WATCH_EVERY_S
                else:
                    found = run_job(*length, "--windows", "--store", store)
                    pairs, block_s = chosen.pairs, chosen.block
                    period_s = found["seconds"] / max(1, found["windows"])
                race(kind, recorder, store, pairs, round(block_s / step_s), period_s)
                tell_memory(kind, recorder, plain["peak_bytes"], found["peak_bytes"], chosen.steps)


def race(kind: str, recorder: str, store: str, pairs: int, steps: int, period_s: float) -> None:
    """Race blocks of n steps that hold a window against plain ones; tell what that is of the period."""
    own = (kind, "--store", store, "--recorder", recorder)
    found = run_job(*own, "--pairs", str(pairs), "--block", str(steps))
    between = run_job(*own, "--idle")
    windows = found["windows"] / pairs
    if not windows:
        sys.exit("The blocks were too short for a window; take longer ones.")
    plain_s = float(np.median(found["plain_s"]))
    ratio = paired_ratio(log_ratios(np.array(found["plain_s"]), np.array(found["recorded_s"])))
    costs_s = [(each - 1) * plain_s / windows for each in (ratio.low, ratio.ratio, ratio.high)]
    between_percent = 100 * (between["idle_share"] + between["step_s"] / (plain_s / steps))
    low, middle, high = (100 * cost_s / period_s + between_percent for cost_s in costs_s)
    verdict = "within" if high <= MAX_OVERHEAD_PERCENT else "BEYOND" if low > MAX_OVERHEAD_PERCENT else "too noisy for"
    print(
        f"{NAMES[recorder]}, {KINDS[kind]}: {middle:+.2f} % ({low:+.2f} to {high:+.2f} %): {verdict} {MAX_OVERHEAD_PERCENT:g} %\n"
        f"  a window costs {costs_s[1] * 1e3:.0f} ms ({costs_s[0] * 1e3:.0f} to {costs_s[2] * 1e3:.0f}) every {period_s:.1f} s, "
        f"what is done between them {between_percent:.2f} %\n"
        f"  {pairs} pairs of {steps:,} steps of {1e3 * plain_s / steps:.2f} ms, {windows:.2f} windows in a block, "
        f"{found['late_windows']} of {found['windows']} not written before its end",
        flush=True,
    )


def tell_memory(kind: str, recorder: str, plain_bytes: int, recorded_bytes: int, steps: int) -> None:
    added = recorded_bytes - plain_bytes
    verdict = "within" if added <= MEMORY_BUDGET_BYTES else "BEYOND"
    print(
        f"{NAMES[recorder]}, {KINDS[kind]}: peak memory {format_bytes(plain_bytes)}, {format_bytes(added)} more after "
        f"{steps:,} steps: {verdict} +{format_bytes(MEMORY_BUDGET_BYTES)}",
        flush=True,
    )


def run_job(*arguments: str) -> dict[str, Any]:
    return run_module((JOB,), *arguments)


def run_module(module: tuple[str, ...], *arguments: str) -> dict[str, Any]:
    """Run a module in a process of its own and return the JSON in its last line."""
    command = [sys.executable, "-m", *module, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with code {ended.returncode}:\n{ended.stderr[-2000:]}")
    document: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return document


if __name__ == "__main__":
    main()
