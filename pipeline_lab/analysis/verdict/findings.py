"""What is worth knowing beside the verdict: one small rule per kind."""

from collections.abc import Callable

import numpy as np

from pipeline_lab.analysis.causes import ENDS_WHY, FIRST_BATCHES, ONE_FOR_ALL, StepPart
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.steps.interruptions import sum_percent
from pipeline_lab.analysis.steps.iterator_ends import serve_one_step
from pipeline_lab.analysis.steps.step_breakdown import count_training_steps
from pipeline_lab.analysis.verdict.recording_effects import (
    PROFILER_SLOWDOWN_PERCENT,
    cut_off_steps,
    device_plane_missing,
    leaves_recording_out,
    profiler_errors,
    profiler_warnings,
)
from pipeline_lab.analysis.verdict.sampling_findings import (
    duplicates,
    low_coverage,
    padding_waste,
    same_source,
    sampling_skew,
    weak_shuffle,
)
from pipeline_lab.analysis.verdict.verdict import Evidence, Finding
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.legacy.stored_analysis import WAIT_CAVEAT
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

OUTLIERS_PERCENT = 2.0
"""Of the steps' time, in what outliers take beyond their neighbors."""
RETRACING_PERCENT = 5.0
CHECKPOINT_PERCENT = 5.0
FEWER_CHECKPOINTS = (
    "write them less often (in Keras' ModelCheckpoint: save_freq), or beside the training (of tf.train.Checkpoint: "
    "CheckpointOptions(experimental_enable_async_checkpoint=True))."
)
PYTHON_PERCENT = 10.0
"""Of the recorded steps, from which on the Python is named that the device waits for: half of what gives a run its name."""
ENDS_PERCENT = 2.0
"""The same as for outliers: each end is one."""
BOUNDARIES_PERCENT = 5.0
"""From here on XProf calls a job moderately input-bound."""
HIDDEN_PERCENT = 10.0
COLLECTIVE_PERCENT = 20.0
BUSY_MACHINE_PERCENT = 50.0
"""Half a core taken by others."""
MAX_NAMES = 5

PART_NAMES = {
    **{part.value: part.activity for part in StepPart},
    "compute": "the training computation",
    "compute_or_python": "the training computation or Python, which cannot be told apart",
    "flush": "the profiler writing its window",
    "other_programs": "other programs on the machine",
}
"""What people call the parts of a step and the causes of outliers."""


def retracing(results: Results) -> Finding | None:
    """Functions that are traced and compiled again while the job trains."""
    breakdown, steps, retraces = results.step_breakdown, results.steps, results.retraces
    if isinstance(breakdown, Unavailable) or isinstance(steps, Unavailable) or steps.count < 2:
        return None
    percent = 100.0 * breakdown.compile_ns / breakdown.total_ns if breakdown.total_ns else 0.0
    is_once = not isinstance(retraces, Unavailable) and retraces.count > 0 and retraces.steps == 1
    if percent < RETRACING_PERCENT or is_once:  # the latter as in the first step of a job
        return None
    evidence = [Evidence("compiling", format_duration(breakdown.compile_ns))]
    if not isinstance(retraces, Unavailable) and retraces.count:
        evidence.append(Evidence("tracings", f"{retraces.count} in {retraces.steps} of {steps.count} recorded steps"))
        evidence.append(Evidence("functions", _listed((*retraces.functions, *retraces.datasets)) or "not called again"))
    of_datasets = not isinstance(retraces, Unavailable) and retraces.is_of_datasets
    return Finding(
        "retracing",
        f"{format_percent(percent)} of the recorded steps' time went into tracing and compiling; after the first step "
        f"that should not happen, so look for {_REMADE_DATASETS if of_datasets else _RETRACED}.",
        tuple(evidence),
    )


_RETRACED = "inputs whose shape or Python value changes from step to step, and for a tf.function that is made anew, such as in each epoch"
_REMADE_DATASETS = "datasets that are made anew between steps, each of which traces its functions; predict and evaluate make some of arrays"


def outlier_steps(results: Results) -> Finding | None:
    """Single steps that take far longer than their neighbors."""
    found = results.outlier_steps
    if isinstance(found, Unavailable) or not found.count or not found.steps_ns:
        return None
    percent = 100.0 * found.excess_ns / found.steps_ns
    if percent < OUTLIERS_PERCENT:
        return None
    causes, number = tables.name_numbers(found.table, ["cause"])
    steps, excess_ns = np.bincount(number).tolist(), tables.ints(found.table, "excess_ns")
    cost_ns = [int(excess_ns[number == cause].sum()) for cause in range(len(causes))]
    by_cost = sorted(
        zip(steps, cost_ns, (PART_NAMES[cause] for (cause,) in causes), strict=True), key=lambda each: -each[1]
    )
    [worst] = found.table.slice(int(np.argmax(tables.ints(found.table, "length_ns"))), 1).to_pylist()
    return Finding(
        "outlier-steps",
        f"{found.count} of {format_count(found.looked_at)} steps took far longer than the steps around them and cost "
        f"{format_percent(percent)} of the time, mainly because of {by_cost[0][2]}.",
        (
            *(Evidence(part, _steps_and_cost(steps, cost_ns)) for steps, cost_ns, part in by_cost),
            Evidence(
                f"longest, step {worst['step']}",
                f"{format_duration(worst['length_ns'])} instead of {format_duration(worst['level_ns'])}",
            ),
            Evidence("basis", found.basis),
        ),
    )


def _steps_and_cost(steps: int, cost_ns: int) -> str:
    return f"{'1 step' if steps == 1 else f'{steps} steps'}, {format_duration(cost_ns)} more"


AGAIN = (
    "buffers are filled and files opened again. Repeat the data inside the pipeline (repeat before batch, and steps_per_epoch), or "
    "use a smaller shuffle buffer."
)
AGAIN_IN_LOOP = (
    "the loop inside tf.function is prepared, buffers are filled and files opened. Let one call of the function loop "
    "over dataset.repeat(n), or use a smaller shuffle buffer."
)


def epoch_boundaries(results: Results) -> Finding | None:
    """Epochs that begin with a long wait."""
    phases = results.step_phases
    found = None if isinstance(phases, Unavailable) else phases.boundaries
    if found is None or 100.0 * found.share < BOUNDARIES_PERCENT:
        return None
    each = format_duration(found.wait_ns / found.count)
    is_loop = not isinstance(results.steps, Unavailable) and results.steps.is_in_function
    return Finding(
        "epoch-boundaries",
        f"Each epoch begins with a wait of {each}, together {format_percent(100.0 * found.share)} of the time: "
        f"{AGAIN_IN_LOOP if is_loop else AGAIN}",
        (
            Evidence("beginnings of epochs", format_count(found.count)),
            Evidence("waits beyond the usual", format_duration(found.wait_ns)),
        ),
    )


def iterator_ends(results: Results) -> Finding | None:
    """Iterators that are made for each epoch, and given up at its end, when they wait for tf.data's threads."""
    made, ended, job = results.iterator_starts, results.iterator_ends, results.job_steps
    percent = sum_percent(made, ended)
    if percent < ENDS_PERCENT:
        return None
    if not isinstance(job, Unavailable) and job.own_call is not None:  # Keras made them, for calls with a batch each
        return None
    evidence: list[Evidence] = []
    for name, found in (("iterators made", made), ("ends that took time", ended)):
        if not isinstance(found, Unavailable):
            evidence += [
                Evidence(name, format_count(found.count)),
                Evidence("each", format_duration(found.total_ns / found.count)),
                Evidence("longest", format_duration(found.longest_ns)),
            ]
    what = f"{FIRST_BATCHES.why} {FIRST_BATCHES.change}" if serve_one_step(made, job) else f"{ENDS_WHY} {ONE_FOR_ALL}"
    return Finding(
        "iterator-ends",
        f"{format_percent(percent)} of the training passed in setting up and tearing down iterators. {what}",
        tuple(evidence),
    )


def small_predicts(results: Results) -> Finding | None:
    """Keras' ``predict``, called again and again with a batch at a time."""
    job = results.job_steps
    found = None if isinstance(job, Unavailable) else job.predicts
    if found is None or not found.matter:
        return None
    return Finding(
        "small-predicts",
        f"{format_percent(found.percent)} of the training passed in {found.calls}, called between steps with no more "
        f"than one batch at a time. {found.change}",
        (
            Evidence("calls", format_count(found.count)),
            Evidence("each", format_duration(found.total_ns / found.count)),
        ),
    )


EVALUATION_PERCENT, MOST_PERCENT = 20.0, 50.0
"""Share of the time, steps and evaluations, from which evaluations are worth a word, and from which nothing comes before them; of
checkpoints the former."""


def evaluation_percent(results: Results) -> float | None:
    """Return the share of the time after the warm-up that passed in evaluations, which are no part of the steps; None where it is small, or not known.

    What a script evaluates once its training is over holds no step up; what the training does itself then is as all before.
    """
    found, job = results.evaluation, results.job_steps
    if isinstance(found, Unavailable) or isinstance(job, Unavailable):
        return None
    begun_ns = tables.ints(job.table, "start_ns")[~tables.bools(job.table, "warmup")].min(
        initial=np.iinfo(np.int64).max
    )
    ended_ns = (tables.ints(job.table, "start_ns") + tables.ints(job.table, "step_ns")).max(initial=0)
    start_ns, is_own = tables.ints(found.passes, "start_ns"), ~tables.valid(found.passes, "call")
    counts = (start_ns >= begun_ns) & (is_own | (start_ns < ended_ns))
    evaluated_ns = int(tables.ints(found.passes, "duration_ns")[counts].sum())
    percent = 100.0 * evaluated_ns / max(1, evaluated_ns + job.total_ns)
    return percent if percent >= EVALUATION_PERCENT else None


def evaluations(results: Results) -> Finding | None:
    """Evaluations that take much of the job's time."""
    percent, found = evaluation_percent(results), results.evaluation
    if percent is None or isinstance(found, Unavailable):
        return None
    first_ns = int(tables.ints(found.passes, "first_batch_ns").sum())
    return Finding(
        "evaluations",
        f"{format_percent(percent)} of the time passed in evaluations, which are no part of the steps. {found.change}",
        (
            Evidence("evaluations", format_count(found.count)),
            Evidence("each", format_duration(found.total_ns / found.count)),
            Evidence("of it until the first batch", format_duration(first_ns / found.count)),
        ),
    )


def checkpoint_percent(results: Results) -> float | None:
    """Return the share of the training that passed in writing checkpoints, as the job noted them; None where it is small, or not known."""
    noted = results.checkpoints
    return None if isinstance(noted, Unavailable) or noted.percent < EVALUATION_PERCENT else noted.percent


def checkpoint_stall(results: Results) -> Finding | None:
    """Checkpoints that hold the training up."""
    breakdown, noted = results.step_breakdown, results.checkpoints
    if not isinstance(noted, Unavailable):
        if noted.percent < CHECKPOINT_PERCENT:
            return None
        return Finding(
            "checkpoint-stall",
            f"{format_percent(noted.percent)} of the training passed in writing checkpoints; {FEWER_CHECKPOINTS}",
            (
                Evidence("checkpoints", format_count(noted.count)),
                Evidence("each", format_duration(noted.total_ns / noted.count)),
                Evidence("longest", format_duration(noted.longest_ns)),
            ),
        )
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns:
        return None
    percent = 100.0 * breakdown.checkpoint_ns / breakdown.total_ns
    if percent < CHECKPOINT_PERCENT:
        return None
    each = tables.ints(breakdown.table, "checkpoint_ns")
    return Finding(
        "checkpoint-stall",
        f"{format_percent(percent)} of the recorded steps' time the device waited for checkpoints; {FEWER_CHECKPOINTS}",
        (
            Evidence("steps with a checkpoint", f"{int((each > 0).sum())} of {len(each)}"),
            Evidence("longest", format_duration(int(each.max(initial=0)))),
        ),
    )


def hidden_contention(results: Results) -> Finding | None:
    """Work that takes longer beside the pipeline than alone, without any visible wait.

    What a step takes once its batch is there, less the copy of that to a device, is work; where it is not known, it is the end-to-end
    step (P) less the visible wait (W). In the compute-only step the same work takes G. What it takes more, but no more than the pipeline itself needs beyond the wait (D - W), the pipeline took from it. The
    compute-only step of a watched script may copy its batch each time as well; less is found then than there is.
    """
    calibration, job = results.calibration, results.job_steps
    if isinstance(calibration, Unavailable) or isinstance(job, Unavailable) or job.wait_total_ns is None:
        return None
    alone = calibration.pipeline_only_ns
    if alone is None or is_machine_busy(results):
        return None
    wait = job.wait_total_ns / job.count
    copied = _copied_ns(results)
    busy = calibration.step_ns - wait if calibration.busy_ns is None else calibration.busy_ns
    hidden = min(busy - copied - calibration.device_only_ns, alone - wait)
    if hidden < HIDDEN_PERCENT / 100.0 * calibration.step_ns:
        return None
    return Finding(
        "hidden-contention",
        f"While the input pipeline runs, each step computes {format_duration(hidden)} longer than the compute-only step, "
        "without a visible wait: both want the same cores. Make the pipeline's work cheaper (cache, vectorize).",
        (
            Evidence("end-to-end step", format_duration(calibration.step_ns)),
            Evidence("of it waiting", format_duration(wait)),
            *(() if calibration.busy_ns is None else (Evidence("once its batch is there", format_duration(busy)),)),
            *((Evidence("of it copying to the device", format_duration(copied)),) if copied else ()),
            Evidence("compute-only step", format_duration(calibration.device_only_ns)),
            Evidence("input-only time per batch", format_duration(alone)),
        ),
    )


def _copied_ns(results: Results) -> float:
    """Return how long a device waits for the copy of a step's batch, on average; 0 where that was not recorded."""
    breakdown = results.step_breakdown
    if isinstance(breakdown, Unavailable) or not breakdown.host_to_device_ns:
        return 0.0
    return breakdown.host_to_device_ns / count_training_steps(breakdown, results.steps)


def idle_python(results: Results) -> Finding | None:
    """Python between the calls to the framework, where it is known in which functions the device waits for it."""
    python = results.idle_python
    if isinstance(python, Unavailable) or not python.functions:
        return None
    percent = 100.0 * python.total_ns / max(1, python.steps_ns)
    if percent < PYTHON_PERCENT:
        return None
    first, *_ = python.functions
    return Finding(
        "idle-python",
        f"For {format_percent(percent)} of the time of recorded steps the device waits for Python between the calls to the framework, "
        f"{format_percent(100.0 * first.idle_ns / python.total_ns)} of that in {first.place}.",
        tuple(Evidence(each.place, format_duration(each.idle_ns)) for each in python.functions[:MAX_NAMES]),
    )


def stragglers(results: Results) -> Finding | None:
    """One host that holds the others back."""
    hosts = results.hosts
    if isinstance(hosts, Unavailable) or hosts.straggler is None:
        return None
    row = next(row for row in hosts.table.to_pylist() if row["host"] == hosts.straggler)
    others = [row for row in hosts.table.to_pylist() if row["host"] != hosts.straggler]
    percent = 100.0 * row["held_up_ns"] / hosts.common_ns
    why = f", most of all for {PART_NAMES[row['cause']]}" if row["cause"] else ""
    waiting = int(np.median([other["collective_ns"] for other in others]))
    if not waiting and not row["collective_ns"] and not _exchange_values(results):  # each goes its own way
        return Finding(
            "stragglers",
            f"{hosts.straggler} is slower than the other hosts{why}. No collectives were recorded, so none waits for another.",
            tuple(
                Evidence(f"step of {one['host']}", format_duration(one["median_ns"]))
                for one in (row, *others[:MAX_NAMES])
            ),
        )
    return Finding(
        "stragglers",
        f"{hosts.straggler} holds the other hosts back: its own part of a step takes longer{why}, and they wait for it "
        f"in collectives. Without it the steps would be up to {format_percent(percent)} shorter.",
        (
            Evidence(f"{hosts.straggler} comes last", f"in {row['last_in']} of {hosts.common_steps} common steps"),
            Evidence(f"input wait of {hosts.straggler}", f"{format_duration(row['input_wait_ns'])} per step"),
            Evidence("collectives of the other hosts", f"{format_duration(waiting)} per step"),
        ),
    )


def _exchange_values(results: Results) -> bool:
    """Say whether any step holds collectives; the middle one need not, as where gradients are added up over several."""
    breakdown = results.step_breakdown
    return not isinstance(breakdown, Unavailable) and breakdown.collective_ns > 0


def collectives(results: Results) -> Finding | None:
    """A host that spends its steps waiting for others that were not recorded."""
    breakdown = results.step_breakdown
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns or not isinstance(results.hosts, Unavailable):
        return None
    percent = 100.0 * breakdown.collective_ns / breakdown.total_ns
    if percent < COLLECTIVE_PERCENT:
        return None
    return Finding(
        "collectives",
        f"{format_percent(percent)} of the steps pass in collectives: communication, or waiting for a slower device or "
        "worker. Record all hosts at the same steps to see which one comes last.",
        (Evidence("collectives", format_duration(breakdown.collective_ns)),),
    )


def is_machine_busy(results: Results) -> bool:
    """Say whether other programs took so much of the processor that times tell little about the job alone."""
    return results.other_cpu_percent is not None and results.other_cpu_percent >= BUSY_MACHINE_PERCENT


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


SLOWED_PERCENT = 5.0
"""Of the time in which a GPU held itself back, from which it is worth a finding."""


def find_all_findings(results: Results) -> tuple[Finding, ...]:
    """Return every finding that applies, in the order of :data:`RULES`."""
    return tuple(found for rule in RULES if (found := rule(results)) is not None)


def _salvaged(results: Results) -> Finding | None:
    salvage = results.source.salvaged
    if salvage is None:
        return None
    return Finding(
        "salvaged",
        f"Part of the capture is damaged: {salvage.reason} What could be read was analyzed.",
        (
            Evidence("bytes lost", format_bytes(salvage.bytes_lost)),
            Evidence("events kept", format_count(salvage.events_kept)),
        ),
    )


NOT_GIVEN = "Numbers that rest on it are not given."
"""Said of damaged tables."""


def _damaged_tables(results: Results) -> Finding | None:
    damaged = results.source.damaged_tables
    if not damaged:
        return None
    return Finding("damaged-tables", f"{' '.join(damaged)} {NOT_GIVEN}")


def _unreadable(results: Results) -> Finding | None:
    if not results.source.unreadable:
        return None
    count = len(results.source.unreadable)
    return Finding(
        "unreadable",
        f"{count} trace {'file was' if count == 1 else 'files were'} left out: {results.source.unreadable[0]}",
        tuple(Evidence("also", sentence) for sentence in results.source.unreadable[1:]),
    )


def _stored_analysis(results: Results) -> Finding | None:
    if results.source.kind != "derived":
        return None
    return Finding(
        "stored-analysis",
        f"The log holds no trace, only the step table that TensorFlow made from it. {WAIT_CAVEAT}",
    )


def _first_step_only(results: Results) -> Finding | None:
    steps = results.steps
    if isinstance(steps, Unavailable) or steps.count > 1:
        return None
    length = Evidence("step", format_duration(float(steps.length_ns[0])))
    if steps.first_step_only:
        return Finding(
            "first-step-only",
            "The capture holds one step and it is the job's first: tracing, compiling and buffer filling are in it, so "
            "its times say little about the others; record a few steps later on.",
            (length,),
        )
    return Finding(
        "one-step", "The capture holds a single step, so nothing can be said about how steps vary.", (length,)
    )


def _kept_apart(results: Results) -> Finding | None:
    if not results.source.kept_apart:
        return None
    return Finding(
        "kept-apart",
        "Not all captures say when they were made, so windows and hosts are shown one after another instead of on one "
        "time axis, and the time between them is unknown.",
    )


def _shortened_windows(results: Results) -> Finding | None:
    cost = results.profiler_cost
    if isinstance(cost, Unavailable):
        return None
    shortened = sum(cost.windows.column("shortened").to_pylist())
    if not shortened:
        return None
    return Finding(
        "shortened-windows",
        f"{shortened} of {cost.windows.num_rows} profile windows were closed early because they came near the memory "
        "ceiling; raise profiling.memory_ceiling_mb or record fewer steps per window.",
    )


def _profiler_overhead(results: Results) -> Finding | None:
    cost = results.profiler_cost
    if isinstance(cost, Unavailable):
        return None
    percent = _slowdown_percent(cost)
    if percent is None or percent < PROFILER_SLOWDOWN_PERCENT:
        return None
    assert cost.profiled_step_ns is not None
    assert cost.plain_step_ns is not None
    return Finding(
        "profiler-overhead",
        f"Steps take {format_percent(percent)} longer while they are recorded, so the charts of the windows show "
        f"somewhat more time than the job normally needs{_LEFT_OUT if leaves_recording_out(results) else ''}.",
        (
            Evidence("recorded step", format_duration(cost.profiled_step_ns)),
            Evidence("plain step", format_duration(cost.plain_step_ns)),
        ),
    )


_LEFT_OUT = "; the verdict leaves that out"


def _busy_machine(results: Results) -> Finding | None:
    if results.other_cpu_percent is None or results.other_cpu_percent < BUSY_MACHINE_PERCENT:
        return None
    return Finding(
        "busy-machine",
        "Other processes used the processor while the job ran, so its times are longer and less sure than on a quiet "
        "machine.",
        (Evidence("processor used by others", f"{results.other_cpu_percent / 100:.2g} cores"),),
    )


def _slowed_gpu(results: Results) -> Finding | None:
    clocks = results.gpu_clocks
    if isinstance(clocks, Unavailable) or clocks.slowed_percent is None or clocks.slowed_percent < SLOWED_PERCENT:
        return None
    return Finding(
        "gpu-slowed",
        f"The GPU held itself back because of heat or power for {format_percent(clocks.slowed_percent)} of the time: its "
        "steps are slower than they could be, and unevenly so; cool it, or leave it more power.",
        (
            Evidence("median clock", f"{clocks.median_mhz:,} MHz"),
            Evidence("lowest and highest", f"{clocks.lowest_mhz:,} and {clocks.highest_mhz:,} MHz"),
        ),
    )


def _slowdown_percent(cost: ProfilerCost) -> float | None:
    if cost.profiled_step_ns is None or not cost.plain_step_ns:
        return None
    return 100.0 * (cost.profiled_step_ns / cost.plain_step_ns - 1.0)


RULES: tuple[Callable[[Results], Finding | None], ...] = (
    _salvaged,
    _damaged_tables,
    _unreadable,
    profiler_errors,
    device_plane_missing,
    profiler_warnings,
    _stored_analysis,
    cut_off_steps,
    _first_step_only,
    _kept_apart,
    sampling_skew,
    weak_shuffle,
    same_source,
    low_coverage,
    duplicates,
    padding_waste,
    retracing,
    outlier_steps,
    epoch_boundaries,
    iterator_ends,
    small_predicts,
    evaluations,
    checkpoint_stall,
    stragglers,
    collectives,
    hidden_contention,
    idle_python,
    _shortened_windows,
    _profiler_overhead,
    _busy_machine,
    _slowed_gpu,
)
"""Every rule, in the order in which findings are shown."""
