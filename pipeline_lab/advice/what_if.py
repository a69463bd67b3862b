"""What other options would bring: the analytic model of a step, fed by one measured run.

The step takes the longest of what happens side by side: the step itself, each stage on the calls that really run at
once, each thread that runs serial stages one after another, the pool's threads, the cores. What the model does not
explain of the run itself is put on the term that binds there, so that the run's own options give its own step.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline_lab.advice.measured_run import Measured, OrderStall, read_measured
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.advice.stage_costs import RunningStage, full_cache, pool_threads, running_stages
from pipeline_lab.advice.step_terms import (
    ORDER,
    PROCESSOR,
    STEP,
    TURNS,
    StageTime,
    Term,
    find_terms,
    memory_bytes,
    refill_terms,
    stage_times,
)
from pipeline_lab.advice.workload_changes import (
    change_of_step,
    examples_sent,
    find_unknown,
)
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.runs.record import EMULATED_NOTE
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.units import format_duration, format_percent

MOST_UNEXPLAINED = 2.0
"""A step that is longer or shorter than the model says by more than this factor is not understood."""
WAITED_SHARE = 0.2
"""Part of a step that passed waiting for input beyond which the step itself cannot have been what it took so long for."""
LEAST_NS = 1.0
NOT_UNDERSTOOD = (
    "A step of the run took {ran}, but the parts that were measured explain {said}: {why}. Record it again on a quieter "
    "machine, or race the change."
)


@dataclass(frozen=True)
class Prediction:
    """What a run with other options would be like after its first epoch.

    Attributes:
        step_ns: Time of one step.
        terms: What runs side by side in a step, the longest first: it bounds the step, the next one comes after it.
        ceiling_ns: The step if its input were free.
        batch_size: Examples in a step.
        memory_bytes: What the pipeline's buffers and caches hold; unavailable where the size of an element or an epoch
            is not known.
        threads: Of the pipeline: the pool's, and one for each stage that prefetches.
        notes: What the prediction takes for granted, a sentence each.
        assumed: Stages whose time was not measured.
    """

    step_ns: float
    terms: tuple[Term, ...]
    ceiling_ns: float
    batch_size: int
    memory_bytes: int | Unavailable
    threads: int
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def ns_per_example(self) -> float:
        """Step time by which options of different batch sizes compare."""
        return self.step_ns / self.batch_size

    @property
    def ceiling_gain(self) -> float:
        """End-to-end over compute-only step time: how much faster the step could become through its input alone."""
        return self.step_ns / self.ceiling_ns

    def gain_percent(self, measured: Measured) -> float:
        """Return how much less time an example takes than in the measured run, percent; below 0 if more."""
        return 100.0 * (1.0 - self.ns_per_example / measured.ns_per_example)


def measure_diagnosis(diagnosis: Diagnosis, options: RunOptions) -> Measured | Unavailable:
    """Make a run ready to be asked about other options, by the epochs that its verdict is about.

    Args:
        diagnosis: Of the run.
        options: The run's options.

    Returns:
        Why not, where the run did not measure enough, or measured something that the model cannot explain.
    """
    measured = read_measured(diagnosis, options)
    return measured if isinstance(measured, Unavailable) else fit_to_run(measured)


def measure_run(folder: RunFolder) -> Measured | Unavailable:
    """Do the same with a recorded run, which is diagnosed if it was not yet.

    Raises:
        TraceReadError: Nothing in the run can be read.
    """
    from pipeline_lab.analysis.diagnosis.saved import diagnose_saved

    options = options_of(folder)
    return options if isinstance(options, Unavailable) else measure_diagnosis(diagnose_saved(folder.path), options)


def fit_to_run(measured: Measured) -> Measured | Unavailable:
    """Put what the model does not explain of the run on the term that binds."""
    found = predict(measured, measured.options)
    if isinstance(found, Unavailable):
        return found
    wanted_ns, binding = measured.step_ns, found.terms[0].name
    excess_ns = wanted_ns - found.step_ns
    if binding == STEP and measured.waited_ns <= WAITED_SHARE * wanted_ns:
        return _add_to_step(measured, excess_ns)
    if binding == TURNS and measured.waited_ns:
        return _explain_turns(measured, found)
    factor = wanted_ns / found.step_ns
    if binding == TURNS:
        factor = (wanted_ns - found.ceiling_ns) / (found.step_ns - found.ceiling_ns)
    elif binding == STEP:  # it waited for input all the same, so the pipeline takes longer than it seems to
        pipeline_ns = max((term.time_ns for term in found.terms if term.name not in (STEP, PROCESSOR)), default=0.0)
        factor = wanted_ns / pipeline_ns if pipeline_ns else math.inf
    if factor > MOST_UNEXPLAINED and (stall := _order_stall(measured)) is not None:
        return replace(measured, order_stall=stall)
    if not 1.0 / MOST_UNEXPLAINED <= factor <= MOST_UNEXPLAINED:
        return _not_understood(wanted_ns, found.step_ns)
    if binding == PROCESSOR:
        return replace(measured, cpu_factor=factor)
    return replace(measured, pipeline_factor=factor)


def _explain_turns(measured: Measured, found: Prediction) -> Measured | Unavailable:
    """Divide a step whose input and compute do not overlap: the wait is the pipeline's, as far as the step leaves room; the rest is the step's."""
    serial_ns, left_ns = found.step_ns - found.ceiling_ns, measured.step_ns - found.ceiling_ns
    factor = min(measured.waited_ns, left_ns) / serial_ns
    factor = min(MOST_UNEXPLAINED, max(1.0 / MOST_UNEXPLAINED, factor))
    if factor * serial_ns >= measured.step_ns:
        return _not_understood(measured.step_ns, found.step_ns)
    return _add_to_step(replace(measured, pipeline_factor=factor), left_ns - factor * serial_ns)


def _not_understood(ran_ns: float, said_ns: float) -> Unavailable:
    ran, said = (format_duration(each) for each in (ran_ns, said_ns))
    why = "something else slows it down" if ran_ns > said_ns else "the machine was slower while they were measured"
    return Unavailable(NOT_UNDERSTOOD.format(ran=ran, said=said, why=why))


def _add_to_step(measured: Measured, added_ns: float) -> Measured:
    """Lengthen the compute-only step, or shorten it where it was measured on a slower machine."""
    between_ns = measured.between_ns + added_ns
    device_ns = measured.device_only_ns + min(0.0, between_ns)
    return replace(measured, between_ns=max(0.0, between_ns), device_only_ns=max(LEAST_NS, device_ns))


def _order_stall(measured: Measured) -> OrderStall | None:
    """Find a parallel stage that keeps its order, on an otherwise idle machine: the remaining explanation of a stall."""
    if measured.other_cores > BUSY_SHARE * measured.cores:
        return None
    running = running_stages(measured.options, measured.machine)
    found = [stage for stage in running if stage.keeps_order]
    if not found:
        return None
    work = {cost.stage: cost.ns_per_example for cost in measured.stages}
    stage = max(found, key=lambda each: work.get(each.stage.stage, 0.0))
    return OrderStall(stage.stage.stage, measured.step_ns, stage.held_examples)


def _order_terms(measured: Measured, running: Sequence[RunningStage], options: RunOptions) -> list[Term]:
    """Return the time that keeping the order costs: the less, the more elements may wait behind a slow one."""
    stall, behind, terms = measured.order_stall, options.pipeline.examples_for_batch(options.amounts), []
    for stage in running:
        if not stage.keeps_order or stage.is_skipped:
            continue
        waited_ns = options.workload.order_ns(stage.stage.stage, behind[stage.index], stage.held_examples)
        waited_ns *= measured.pipeline_factor
        if stall is not None and stall.stage == stage.stage.stage:
            waited_ns = stall.step_ns * min(1.0, stall.held_examples / stage.held_examples)
        if waited_ns:
            terms.append(Term(f"{ORDER}{stage.stage.stage}", waited_ns))
    return terms


def predict(measured: Measured, options: RunOptions) -> Prediction | Unavailable:
    """Predict the step time of other options.

    Args:
        measured: A run.
        options: The options to predict for.

    Returns:
        The reason where the run does not hold what the change depends on.
    """
    unknown = find_unknown(measured.options, options)
    if unknown is not None:
        return Unavailable(unknown)
    running = running_stages(
        options,
        measured.machine,
        ran_parallel=_made_parallel(measured),
    )
    change = change_of_step(measured.options, options, measured.device_only_ns, measured.step_cpu_ns or 0.0)
    device_ns = max(0.0, measured.device_only_ns + change.device_ns)
    ceiling_ns = max(LEAST_NS, device_ns + max(0.0, measured.between_ns + change.between_ns))
    times = stage_times(running, measured, options)
    threads = pool_threads(options, measured.machine)
    terms = find_terms(times, options, ceiling_ns=ceiling_ns, threads=threads)
    if measured.step_cpu_ns is not None:
        cpu_ns = max(0.0, measured.step_cpu_ns + change.cpu_ns) + sum(time.cpu_ns for time in times)
        terms.append(Term(PROCESSOR, measured.cpu_factor * cpu_ns / measured.free_cores))
    terms += _order_terms(measured, running, options)
    full_ns = max(term.time_ns for term in terms)
    terms += refill_terms(times, options, measured, full_ns, ceiling_ns=ceiling_ns, threads=threads)
    terms.sort(key=lambda term: -term.time_ns)
    return Prediction(
        step_ns=terms[0].time_ns,
        terms=tuple(terms),
        ceiling_ns=ceiling_ns,
        batch_size=options.pipeline.batch_size,
        memory_bytes=memory_bytes(options, measured),
        threads=threads + sum(time.running.works_ahead for time in times),
        notes=(*find_notes(measured, options), *_name_assumed(times)),
        assumed=tuple(time.running.stage.stage for time in times if time.assumed_ns is not None),
    )


def _name_assumed(times: Sequence[StageTime]) -> Iterator[str]:
    for time in times:
        if time.assumed_ns is not None:
            yield (
                f"The time of {time.running.stage.stage} was not measured; {format_duration(time.assumed_ns)} for each "
                "example is assumed."
            )


def _made_parallel(measured: Measured) -> frozenset[str]:
    """Return the serial stages that TensorFlow's rewrites made parallel in the measured run."""
    if not measured.options.pipeline.tensorflow_rewrites:
        return frozenset()
    return frozenset(cost.stage for cost in measured.stages if cost.parallelism is not None)


BUSY_SHARE = 0.2
"""Part of the cores that others may use before it is worth a word."""


NOISY_PERCENT = 10.0
"""How uncertain a run's own step time may be before it is worth a word, percent."""


def find_notes(measured: Measured, options: RunOptions) -> tuple[str, ...]:
    """Name what the prediction for changed options rests on beside what the run measured, and what makes it unsure."""
    emulated = (EMULATED_NOTE,) if options.training.is_emulated else ()
    return (*emulated, *_epochs(measured), *_doubts(measured), *_notes(measured.options, options))


def _epochs(measured: Measured) -> Iterator[str]:
    if measured.from_step is not None:
        yield (
            f"The run is used from step {measured.from_step} on, after its first epoch, in which steps take a different "
            "time; the prediction is for later epochs."
        )


def _doubts(measured: Measured) -> Iterator[str]:
    if measured.other_cores > BUSY_SHARE * measured.cores:
        yield (
            f"Other programs used {measured.other_cores:.1f} of {measured.cores:.0f} cores while the run was measured, so "
            "all of it is less sure."
        )
    if measured.noise_percent > NOISY_PERCENT:
        yield (
            f"The run's own step time is only known to ± {format_percent(measured.noise_percent)}; a longer run on a quiet "
            "machine predicts better."
        )


def _notes(before: RunOptions, after: RunOptions) -> Iterator[str]:
    old, new = before.pipeline, after.pipeline
    if old.batch_size != new.batch_size and before.workload.computes:
        yield "The training step is assumed to grow with the batch."
    elif examples_sent(before) != examples_sent(after):
        yield "The training step is assumed to grow with its input, padding included."
    for stage in sorted({stage.stage for stage in new.stages if stage.is_function}):
        if _sees_batches(old, stage) != _sees_batches(new, stage) and not after.workload.set_ns(stage):
            yield f"The gain of {stage} from whole batches is estimated from small images; race it to be sure."
    if full_cache(after) is not None and full_cache(before) is None:
        yield "The first epoch fills the cache and is no faster; the prediction is for later epochs."
    if _tuned(new) - _tuned(old):
        yield "AUTOTUNE is assumed to use all threads of the pool where needed."
    if _read_mode(old) != _read_mode(new):
        yield "Reading is assumed to cost the same per record."


def _sees_batches(pipeline: PipelineOptions, stage: str) -> bool | None:
    sizes = {each.stage: size for each, size in zip(pipeline.stages, pipeline.batch_sizes, strict=True)}
    return sizes[stage] is not None if stage in sizes else None


def _tuned(pipeline: PipelineOptions) -> set[str]:
    return {stage.stage for stage in pipeline.stages if getattr(stage, "num_parallel_calls", None) == "autotune"}


def _read_mode(pipeline: PipelineOptions) -> str | None:
    read = pipeline.first(ReadStage)
    return None if read is None else read.mode
