"""What recording costs a job: ``python -m benchmarks.flush``.

The same job three times, unprofiled, profiled in one piece and profiled in windows, for memory and the longest stop of
the training thread. Throughput comes from a fourth run, in which stretches with a window and stretches without one
take turns, so that a machine that gets slower meanwhile slows both.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.flush.job import STRETCH_STEPS, Recorded, alternating_options, job_options, run_job
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.statistics.paired import log_ratios, paired_ratio
from pipeline_lab.units import format_bytes, format_duration

MEMORY_BUDGET_BYTES = 300_000_000
THROUGHPUT_BUDGET = 0.97
ONE_PIECE = "profiled in one piece"
ARMS: dict[str, Callable[[int], ProfilingOptions]] = {
    "unprofiled": lambda _: ProfilingOptions(enabled=False),
    ONE_PIECE: lambda steps: ProfilingOptions(steps_per_window=steps, every_steps=steps, memory_ceiling_mb=1_000_000),
    "windows": lambda _: ProfilingOptions(),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flush", description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32, help="examples per step of the `optimised` preset")
    parser.add_argument("--skip-one-piece", action="store_true", help="it takes gigabytes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        arms = [name for name in ARMS if name != ONE_PIECE or not arguments.skip_one_piece]
        recorded = {
            name: run_job(store, job_options(arguments.steps, arguments.batch, ARMS[name](arguments.steps)))
            for name in arms
        }
        _print_arms(recorded, arguments.steps)
        _print_throughput(run_job(store, alternating_options(arguments.steps, arguments.batch)))


def _print_arms(recorded: dict[str, Recorded], steps: int) -> None:
    plain = recorded["unprofiled"]
    print(f"{steps} steps of {format_duration(plain.median_step_ns)}")
    print(
        f"{'':24}{'peak memory':>14}{'more':>10}{'steps/s':>9}{'longest stop':>14}{'longest flush':>15}{'traces':>10}"
    )
    for name, run in recorded.items():
        more_bytes = run.peak_bytes - plain.peak_bytes
        flush = format_duration(run.longest_flush_ns) if run.windows else "-"
        stop_ns = run.longest_flush_ns if name == ONE_PIECE else run.longest_stop_ns
        print(
            f"{name:24}{format_bytes(run.peak_bytes):>14}{format_bytes(more_bytes):>10}{run.steps_per_second:>9.2f}"
            f"{format_duration(stop_ns):>14}{flush:>15}{format_bytes(run.trace_bytes):>10}"
        )
    more_bytes = recorded["windows"].peak_bytes - plain.peak_bytes
    print(f"memory: {_verdict(more_bytes <= MEMORY_BUDGET_BYTES)} of +{format_bytes(MEMORY_BUDGET_BYTES)}")


def _print_throughput(run: Recorded) -> None:
    with_window_ns, without_ns = run.stretches_ns()
    ratio = paired_ratio(log_ratios(without_ns, with_window_ns))
    low, middle, high = (_throughput(each) for each in (ratio.high, ratio.ratio, ratio.low))
    is_decided = not low < THROUGHPUT_BUDGET < high
    print(
        f"throughput with the default windows: {100 * middle:.1f} % of without ({100 * low:.1f} to {100 * high:.1f} %, "
        f"{ratio.pairs} pairs of stretches of {STRETCH_STEPS} steps): "
        + (f"{_verdict(middle >= THROUGHPUT_BUDGET)} of" if is_decided else "too noisy to tell whether it is within")
        + f" {100 * THROUGHPUT_BUDGET:.0f} %"
    )
    print(
        f"median step: {format_duration(run.median_step_ns)} outside windows, "
        f"{format_duration(run.median_profiled_step_ns)} inside, {format_duration(run.median_flushing_step_ns)} "
        "while one is flushed"
    )


def _throughput(stretch_ratio: float) -> float:
    """Spread what a window costs in its stretch over the steps from one default window to the next."""
    return 1 / (1 + (stretch_ratio - 1) * STRETCH_STEPS / ProfilingOptions().every_steps)


def _verdict(is_within: bool) -> str:
    return "within the budget" if is_within else "BEYOND the budget"


if __name__ == "__main__":
    main()
