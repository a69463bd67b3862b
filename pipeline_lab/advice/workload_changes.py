"""What a change of the workload's numbers does to the work of stages and step, and which changes cannot be predicted."""

from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.data_classes import dataclass
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.functions import HOW_IT_RUNS
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.stages.stage import Stage
from pipeline_lab.units import NS_PER_MS

SAME_STEP = frozenset({"steps", "seconds", "warmup_steps", "calibrate", "learning_rate", "seed", "timeout_s"})
"""Fields of the training that leave a step as long as it is."""
SET_STEP = frozenset({"step_ms", "step_variation_percent", "step_times_ms"})
"""Fields that say how long it is, on the emulated accelerator."""

CALL_NS = 0.2 * NS_PER_MS
"""Time of a call that only waits, beside the wait: Python, or a dataset of one element (2.5 GHz core)."""
VECTORIZED_LEAST = 0.3
"""A vectorized function still takes at least this share of what it took one by one."""


@dataclass(frozen=True)
class WorkloadChange:
    """What becomes of the parts that are no stage: additions for one step, ns.

    Attributes:
        device_ns: To the compute-only step.
        between_ns: To the time between two steps.
        cpu_ns: To the processor time of both.
    """

    device_ns: float
    between_ns: float
    cpu_ns: float


def find_unknown(before: RunOptions, after: RunOptions) -> str | None:
    """Return why the step time of changed options cannot be predicted from a run, as a sentence; None if it can."""
    old, new = before.workload, after.workload
    if old.kind != new.kind:
        return f"The run trained on the {old.kind} workload; record one with {new.kind} to predict for it."
    if any(stage.is_elsewhere for options in (before, after) for stage in options.pipeline.stages):
        return "With tf.data service other processes prepare the data, and their throughput was not measured; race it."
    if new.has_varied_lengths and new.file_sizes is None and _batches(before) != _batches(after):
        return "How long your clips are is not known, so neither is what other batches of them hold; record a run with those."
    changed = _changed(old.model_dump(), new.model_dump())
    unknown = sorted(set(changed) - old.known_fields)
    if unknown:
        return _not_from("workload", unknown)
    training = _changed(before.training.model_dump(), after.training.model_dump())
    unknown = sorted(set(training) - SAME_STEP - SET_STEP)
    return _not_from("training", unknown) if unknown else _unknown_function(before, after)


def change_of_step(before: RunOptions, after: RunOptions, device_only_ns: float, cpu_ns: float) -> WorkloadChange:
    """Return what is added to the step by another batch size, more or less padding, ``compute_ms`` or ``python_ms``.

    Args:
        before, after: The options that were measured, and those to predict for.
        device_only_ns: Compute-only step time.
        cpu_ns: Processor time of what is not the pipeline.
    """
    old, new = before.workload, after.workload
    between = new.pause_ns - old.pause_ns
    if after.training.is_emulated:
        return WorkloadChange((after.training.mean_step_ms - before.training.mean_step_ms) * NS_PER_MS, between, 0.0)
    if not old.computes:
        device = new.step_ns - old.step_ns
        return WorkloadChange(device, between, device if old.spins else 0.0)
    larger = examples_sent(after) / examples_sent(before) - 1.0
    return WorkloadChange(device_only_ns * larger, between, cpu_ns * larger)


def examples_sent(options: RunOptions) -> float:
    """Return how many examples of mean length take as much room as what a step is sent, padding included."""
    shares = [options.workload.padding_share(stage) for stage in options.pipeline.stages if stage.makes_batches]
    return options.pipeline.batch_size / (1.0 - (shares[-1] or 0.0))


def changed_ns(cost: StageCost, before: RunOptions, after: RunOptions, *, examples_per_call: int) -> float:
    """Return the thread time per example that a stage will take, ns.

    Args:
        cost: What it took.
        before, after: The options that it was measured with, and those to predict for.
        examples_per_call: How many examples it is to see at once.
    """
    old_ns, new_ns = before.workload.set_ns(cost.stage), after.workload.set_ns(cost.stage)
    beside_ns = max(0.0, cost.ns_per_example - old_ns)  # what a call takes beside the time that is set
    if new_ns and not old_ns:
        beside_ns += CALL_NS
    if old_ns or new_ns:
        calls = before.workload.examples_per_call(cost.stage) * cost.examples_per_call
        return new_ns + beside_ns * calls / (after.workload.examples_per_call(cost.stage) * examples_per_call)
    kind = STAGE_TYPES[cost.stage]
    saved = kind.vectorized_saves_ns
    single_ns = cost.ns_per_example + (saved if cost.examples_per_call > 1 else 0.0)
    if examples_per_call == 1 or not kind.is_function:
        return single_ns
    return max(VECTORIZED_LEAST * single_ns, single_ns - saved)


def _unknown_function(before: RunOptions, after: RunOptions) -> str | None:
    """Find a stage that the run did not have, or not in that form."""
    old = {stage.stage: stage for stage in before.pipeline.stages}
    for stage in after.pipeline.stages:
        known = old.get(stage.stage)
        if known is None and (stage.is_function or stage.needs_measuring):
            return f"The run had no {stage.stage} stage, so its cost is not known; record a run that has one."
        if known is not None and stage.is_function:
            unknown = sorted(set(_changed(known.model_dump(), stage.model_dump())) - HOW_IT_RUNS)
            if unknown:
                return _not_from(stage.stage, unknown)
    left = [name for name, stage in old.items() if stage.hides_work and after.pipeline.find(name) is None]
    if left:
        return f"What {left[0]} keeps from running was not measured; record a run without it."
    return None


def _batches(options: RunOptions) -> list[Stage]:
    return [stage for stage in options.pipeline.stages if stage.makes_batches]


def _not_from(place: str, names: list[str]) -> str:
    changed = " and ".join(f"{place}.{name}" for name in names)
    return f"The cost of {changed} cannot be predicted from a run with another value; record a run with the new one."


def _changed(old: dict[str, object], new: dict[str, object]) -> list[str]:
    return [name for name in new if old.get(name) != new[name]]
