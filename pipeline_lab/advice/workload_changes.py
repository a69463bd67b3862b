"""What a change of the workload's own numbers does to the work of stages and step, and which changes nobody can tell."""

from dataclasses import dataclass

from pipeline_lab.advice.stage_costs import StageCost
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.functions import HOW_IT_RUNS
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.stages.stage import Stage
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

KNOWN_TIMES = {
    "synthetic": frozenset(
        {"read_ms", "map_ms", "tail_every", "tail_ms", "jitter_percent", "compute_ms", "python_ms", "examples_per_file"}
    ),
    "generator": frozenset({"example_ms", "examples_at_once", "compute_ms", "examples_per_generator"}),
}
"""Fields of a workload whose change has an effect that is known: they are times, or the length of an epoch."""
OTHER_PRODUCERS = frozenset({"compute_ms", "examples_per_generator"})
"""The same where threads or processes make a generator's examples: how long they take is not how long one waits."""
ANY_WORKLOAD = frozenset({"examples_per_file"})
SAME_STEP = frozenset({"steps", "seconds", "warmup_steps", "calibrate", "learning_rate", "seed", "timeout_s"})
"""Fields of the training that leave a step as long as it is."""
CONSTANT_STEPS = (SyntheticWorkload, GeneratorWorkload)
"""Workloads whose step takes as long for a batch of any size."""

CALL_MS = 0.2
"""Time of a call that only waits, beside the wait: Python, or a dataset of one element (2.5 GHz core)."""
VECTORISED_LEAST = 0.3
"""A vectorised function still takes at least this share of what it took one by one."""


@dataclass(frozen=True)
class Change:
    """What becomes of the parts that are no stage: additions in ms for one step.

    Attributes:
        device_ms: To the step on a held batch.
        between_ms: To the time between two steps.
        cpu_ms: To the processor time of both.
    """

    device_ms: float
    between_ms: float
    cpu_ms: float


def find_unknown(before: RunOptions, after: RunOptions) -> str | None:
    """Return why the step time of changed options cannot be told from a run, as a sentence; None if it can."""
    old, new = before.workload, after.workload
    if old.kind != new.kind:
        return f"The run trained on the {old.kind} workload; record one with {new.kind} to predict for it."
    if any(stage.is_elsewhere for options in (before, after) for stage in options.pipeline.stages):
        return "With tf.data service other processes prepare the data, and what they can do was not measured; race it."
    if isinstance(new, AudioWorkload) and new.data == "folder" and _batches(before) != _batches(after):
        return "How long your clips are is not known, so neither is what other batches of them hold; record a run with those."
    changed = _changed(old.model_dump(), new.model_dump())
    known = KNOWN_TIMES.get(old.kind, ANY_WORKLOAD) if makes_in_line(old) else OTHER_PRODUCERS
    unknown = sorted(set(changed) - known)
    if unknown:
        return _not_from("workload", unknown)
    training = _changed(before.training.model_dump(), after.training.model_dump())
    unknown = sorted(set(training) - SAME_STEP)
    return _not_from("training", unknown) if unknown else _unknown_function(before, after)


def change_of_step(before: RunOptions, after: RunOptions, device_only_ms: float, cpu_ms: float) -> Change:
    """Return what is added to the step by another batch size, more or less padding, ``compute_ms`` or ``python_ms``.

    Args:
        before, after: The options that were measured, and those to predict for.
        device_only_ms: G, the step on a held batch.
        cpu_ms: Processor time of what is not the pipeline.
    """
    old, new = before.workload, after.workload
    between = _number(new, "python_ms") - _number(old, "python_ms")
    if isinstance(old, CONSTANT_STEPS):
        device = _number(new, "compute_ms") - _number(old, "compute_ms")
        return Change(device, between, device if computes_on_a_core(old) else 0.0)
    larger = examples_sent(after) / examples_sent(before) - 1.0
    return Change(device_only_ms * larger, between, cpu_ms * larger)


def examples_sent(options: RunOptions) -> float:
    """Return how many examples of mean length take as much room as what a step is sent, padding included."""
    shares = [options.workload.padding_share(stage) for stage in options.pipeline.stages if stage.makes_batches]
    return options.pipeline.batch_size / (1.0 - (shares[-1] or 0.0))


def computes_on_a_core(workload: Workload) -> bool:
    """Say whether the time that a workload sets for its step keeps a core busy."""
    return isinstance(workload, SyntheticWorkload) and workload.work == "spin"


def function_ms(stage: str, workload: Workload) -> float:
    """Return the time per example that a workload's own numbers set for a stage, ms; 0 where none do."""
    if isinstance(workload, SyntheticWorkload):
        if stage == "map":
            slow = 1.0 / workload.tail_every if workload.tail_every else 0.0
            return (1.0 - slow) * workload.map_ms + slow * workload.tail_ms
        return workload.read_ms if stage == "read" else 0.0
    if isinstance(workload, GeneratorWorkload) and stage == "read" and makes_in_line(workload):
        return workload.example_ms
    return 0.0


def makes_in_line(workload: Workload) -> bool:
    """Say whether a generator makes its examples itself, if the workload is one."""
    return not isinstance(workload, GeneratorWorkload) or workload.producer == "in_line"


def order_ms(stage: str, workload: Workload, examples: float, held_examples: float) -> float:
    """Return what it takes to hand on so many examples in order where some of them are known to be slow, ms.

    One slow record in ``tail_every`` keeps the others waiting until it is done, unless that many may wait beside it.
    """
    if not isinstance(workload, SyntheticWorkload) or stage != "map" or not workload.tail_every:
        return 0.0
    return examples / workload.tail_every * workload.tail_ms * min(1.0, workload.tail_every / held_examples)


def sleeps(workload: Workload) -> bool:
    """Say whether the times that a workload sets pass without a core."""
    return isinstance(workload, SyntheticWorkload) and workload.work == "sleep"


def changed_ms(cost: StageCost, before: RunOptions, after: RunOptions, *, examples_per_call: int) -> float:
    """Return the thread time per example that a stage will take, ms.

    Args:
        cost: What it took.
        before, after: The options that it was measured with, and those to predict for.
        examples_per_call: How many examples it is to see at once.
    """
    old_ms, new_ms = function_ms(cost.stage, before.workload), function_ms(cost.stage, after.workload)
    beside_ms = max(0.0, cost.ms_per_example - old_ms)  # what a call takes beside the time that is set
    if new_ms and not old_ms:
        beside_ms += CALL_MS
    if old_ms or new_ms:
        calls = _yields(cost.stage, before.workload) * cost.examples_per_call
        return new_ms + beside_ms * calls / (_yields(cost.stage, after.workload) * examples_per_call)
    kind = STAGE_TYPES[cost.stage]
    saved = kind.vectorised_saves_ms
    single_ms = cost.ms_per_example + (saved if cost.examples_per_call > 1 else 0.0)
    if examples_per_call == 1 or not kind.is_function:
        return single_ms
    return max(VECTORISED_LEAST * single_ms, single_ms - saved)


def _yields(stage: str, workload: Workload) -> int:
    """Return the examples that one call of a Python generator makes."""
    return workload.examples_at_once if stage == "read" and isinstance(workload, GeneratorWorkload) else 1


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
    return f"What {changed} costs cannot be told from a run with another value; record a run with the new one."


def _changed(old: dict[str, object], new: dict[str, object]) -> list[str]:
    return [name for name in new if old.get(name) != new[name]]


def _number(workload: Workload, name: str) -> float:
    return float(getattr(workload, name, 0.0))
