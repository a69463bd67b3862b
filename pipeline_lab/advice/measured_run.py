"""What one run tells about the next: step and pipeline alone, work of each stage, processor time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline_lab.advice.stage_costs import ARGUMENTS, Machine, StageCost, attribute_costs, full_cache, running_stages
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.input.live_model import LiveModel, StageWork
from pipeline_lab.analysis.results import Diagnosis, Results
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.statistics.effective_sample import estimate_mean

ELSEWHERE = (
    "Workers of tf.data service did the work, and their time was not measured; record a run without the service stage."
)
OWN_PIPELINE = (
    "The pipeline is made by your own module, and what a change of its code would bring cannot be predicted from options; race "
    "the module's arguments against each other."
)
FILLING = (
    "The cache was still being filled in a part of what was measured, and filling and reading it take different times; record "
    "a run of more epochs to predict."
)
NO_THREADS = (
    "How many threads run the pipeline's functions is only known for pipelines that TensorFlow can write down; launch the "
    "job with `pipeline-lab run`."
)
FULL_SHARE = 0.85
"""Of the cores that others left: threads of a job that uses more have waited for a core now and then."""
LEAST_SHARE = 0.5
"""Part of the cores that a fair scheduler gives a job that asks for it, however much others use while it does not."""
NEVER_ASKED = 0.5
"""Elements for one batch below which an iterator is called unused: the cache above it is full."""
BLOCK_STEPS = 10
"""Neighboring steps that count as one value, as in a race."""
CONFIDENCE_95 = 1.96


@dataclass(frozen=True)
class OrderStall:
    """What a parallel stage that keeps its order costs where some of its calls take much longer than others.

    Attributes:
        stage: Its name.
        step_ns: Step time that this came to.
        held_examples: Examples that were under way or waited meanwhile.
    """

    stage: str
    step_ns: float
    held_examples: float


@dataclass(frozen=True)
class Measured:
    """One run, ready to be asked what other options would bring; times in ns for one step or one batch.

    Attributes:
        options: The run's options.
        step_ns: End-to-end step time.
        device_only_ns: Compute-only step time.
        stages: Work of each stage of the options, in their order.
        cores: N, cores that the job may use.
        pool_threads: Q, threads that run functions where the options do not set them.
        other_cores: L, cores that others kept busy.
        between_ns: Python between two steps, and whatever else the model's parts do not explain of the step.
        waited_ns: Of the step, what passed before the batch was there.
        step_cpu_ns: Processor time of all that is not the pipeline; None if it is not known.
        records: Records of one epoch; None if they were not counted.
        noise_percent: Half of the 95 % interval of the mean step time, percent of it.
        pipeline_factor, cpu_factor: What the modeled pipeline and processor time have to be multiplied by for the
            run's own options to give the step that was measured.
        order_stall: The stage whose order holds the run up, if one does.
        from_step: The step with which the later epochs begin, where these were measured alone; None where all were.
    """

    options: RunOptions
    step_ns: float
    device_only_ns: float
    stages: tuple[StageCost, ...]
    cores: float
    pool_threads: int
    other_cores: float = 0.0
    between_ns: float = 0.0
    waited_ns: float = 0.0
    step_cpu_ns: float | None = None
    records: int | None = None
    noise_percent: float = 0.0
    pipeline_factor: float = 1.0
    cpu_factor: float = 1.0
    order_stall: OrderStall | None = None
    from_step: int | None = None

    @property
    def free_cores(self) -> float:
        """Cores that the job can have beside others."""
        return max(LEAST_SHARE * self.cores, self.cores - self.other_cores)

    @property
    def machine(self) -> Machine:
        return Machine(self.cores, self.pool_threads)

    @property
    def ns_per_example(self) -> float:
        return self.step_ns / self.options.pipeline.batch_size


def read_measured(diagnosis: Diagnosis, options: RunOptions) -> Measured | Unavailable:
    """Read what a run measured in the epochs that were judged; nothing is put down to the model's errors yet.

    Args:
        diagnosis: Of the run.
        options: Of the run.
    """
    if not options.is_assembled:
        return Unavailable(OWN_PIPELINE)
    if any(stage.is_elsewhere for stage in options.pipeline.stages):
        return Unavailable(ELSEWHERE)
    results, later = judged(diagnosis), diagnosis.later_epochs
    calibration, model, job = results.calibration, results.live_model, results.job_steps
    if isinstance(calibration, Unavailable):
        return calibration
    if isinstance(model, Unavailable):
        return model
    if isinstance(job, Unavailable):
        return job
    if _is_filling(model, options):
        return Unavailable(FILLING)
    load = results.job_load
    threads = None if isinstance(results.written, Unavailable) else results.written.pool_threads
    if threads is None:
        return Unavailable(NO_THREADS)
    cores = float(model.cpu_budget) if isinstance(load, Unavailable) else load.cores
    steps = unprofiled_steps(job)
    measured = Measured(
        options=options,
        step_ns=steps.step_ns,
        device_only_ns=min(calibration.device_only_ns, steps.step_ns),
        stages=_without_turns(attribute_costs(model.stages, options), options, threads),
        cores=cores,
        pool_threads=threads if options.pipeline.private_threadpool_size is None else max(1, int(cores)),
        other_cores=0.0 if isinstance(load, Unavailable) else load.other_cores,
        between_ns=steps.between_ns,
        waited_ns=steps.waited_ns,
        records=_records(results, options),
        noise_percent=noise_percent(job),
        from_step=None if later is None else later.first_step,
    )
    cpu_ns = _cpu_ns(calibration) if isinstance(load, Unavailable) else load.cpu_ns_per_step
    return measured if cpu_ns is None else _share_processor(measured, cpu_ns, calibration)


def _cpu_ns(calibration: Calibration) -> float | None:
    """Return the processor time of step and pipeline alone, if that of the job was not sampled."""
    step_ns, pipeline_ns = calibration.device_only_cpu_ns, calibration.pipeline_only_cpu_ns
    return None if step_ns is None or pipeline_ns is None else (step_ns + pipeline_ns)


def _without_turns(stages: tuple[StageCost, ...], options: RunOptions, threads: int) -> tuple[StageCost, ...]:
    """Take out of parallel Python generators the time in which they waited for each other: one at a time can run."""
    if not options.workload.made_by_python:
        return stages
    read, *others = stages
    at_once = max(1.0, min(read.parallelism or 1.0, threads))
    return (replace(read, ns_per_example=read.ns_per_example / at_once), *others)


def _share_processor(measured: Measured, cpu_ns: float, calibration: Calibration) -> Measured:
    """Divide the processor time between the step and the stages.

    Stages without a function work all the time. Functions may wait for something else; how much they work is what
    draining the pipeline alone took beyond the others. On full cores, thread time beyond processor time was spent
    waiting for a core and is no work. Stages before a full cache did not run meanwhile; all of their time counts.

    Args:
        measured: With thread time alone.
        cpu_ns: C, processor time of the job for one step.
        calibration: For the pipeline alone.
    """
    options, running = measured.options, running_stages(measured.options, measured.machine)
    parts = tuple(zip(measured.stages, options.pipeline.examples_for_batch(options.amounts), running, strict=True))
    ran = [(cost, examples) for cost, examples, stage in parts if not stage.is_skipped]
    share = _busy_share(ran, options, cpu_ns, calibration)
    is_full = cpu_ns / measured.free_cores >= FULL_SHARE * measured.step_ns
    stages, own_ns = [], 0.0
    for cost, examples, stage in parts:
        idle = idle_ns(cost, options)
        each_ns, cpu_each_ns = cost.ns_per_example, cost.ns_per_example - idle
        if not stage.is_skipped:
            cpu_each_ns *= share if _has_function(cost.stage, options) else 1.0
            each_ns = idle + cpu_each_ns if is_full else each_ns
            own_ns += cpu_each_ns * examples
        stages.append(replace(cost, ns_per_example=each_ns, cpu_ns_per_example=cpu_each_ns))
    return replace(measured, stages=tuple(stages), step_cpu_ns=max(0.0, cpu_ns - own_ns))


def _busy_share(
    ran: Sequence[tuple[StageCost, float]], options: RunOptions, cpu_ns: float, calibration: Calibration
) -> float:
    """Return how much of the functions' time keeps a core busy, 0 to 1; never more than the whole job does.

    Args:
        ran: The stages that ran, each with the examples that it handed on for one batch.
        options: The run's options.
        cpu_ns: Processor time of the job for one step.
        calibration: For the pipeline alone.
    """
    alone_ns = calibration.pipeline_only_cpu_ns
    most_ns = cpu_ns if alone_ns is None else min(cpu_ns, alone_ns)
    functions_ns = others_ns = 0.0
    for cost, examples in ran:
        busy_ns = (cost.ns_per_example - idle_ns(cost, options)) * examples
        if _has_function(cost.stage, options):
            functions_ns += busy_ns
        else:
            others_ns += busy_ns
    return min(1.0, max(0.0, most_ns - others_ns) / functions_ns) if functions_ns > 0 else 1.0


def _has_function(stage: str, options: RunOptions) -> bool:
    reads_by_function = options.workload.set_ns("read") > 0 or options.workload.made_by_python
    return STAGE_TYPES[stage].is_function or (stage == "read" and reads_by_function)


def idle_ns(cost: StageCost, options: RunOptions) -> float:
    """Return the time per example that a function is known to pass without a core, ns."""
    return min(cost.ns_per_example, options.workload.set_ns(cost.stage)) if options.workload.sleeps else 0.0


@dataclass(frozen=True)
class UnprofiledSteps:
    """The steps that no profile window touched, ns: a step, its wait for a batch, and the time between two.

    The last one is 0 where it is not known; what the model does not explain of the step is added to it anyway.
    """

    step_ns: float
    waited_ns: float
    between_ns: float


def unprofiled_steps(job: JobSteps) -> UnprofiledSteps:
    """Sum up the steps outside of profile windows.

    A step and its wait are medians of blocks' means: steps that are long and short in turn count as what they take
    together, and one that was held up by something else does not count.
    """
    plain = ~(tables.bools(job.table, "warmup") | tables.bools(job.table, "profiled"))
    if not plain.any():
        plain = ~tables.bools(job.table, "warmup")
    plain &= tables.valid(job.table, "wait_ns") | ~tables.valid(job.table, "wait_ns").any()
    step, wait, compute = (tables.ints(job.table, name)[plain] for name in ("step_ns", "wait_ns", "compute_ns"))
    is_divided = tables.valid(job.table, "compute_ns")[plain]
    between = (step - wait - compute)[is_divided]
    return UnprofiledSteps(
        _median_of_blocks(step),
        _median_of_blocks(wait),
        max(0.0, float(np.median(between))) if len(between) else 0.0,
    )


def _median_of_blocks(values: np.ndarray) -> float:
    blocks = np.array_split(values, max(1, len(values) // BLOCK_STEPS))
    return float(np.median([block.mean() for block in blocks]))


def noise_percent(job: JobSteps) -> float:
    measured = tables.ints(job.table, "step_ns")[~tables.bools(job.table, "warmup")]
    if len(measured) < 2:
        return 100.0
    return 100.0 * CONFIDENCE_95 * estimate_mean(np.log(np.maximum(measured, 1).astype(np.float64))).standard_error


def _records(results: Results, options: RunOptions) -> int | None:
    if options.records is not None or isinstance(results.file_sampling, Unavailable):
        return options.records
    records = tables.floats(results.file_sampling.table, "records")
    return int(records.sum()) if len(records) and np.isfinite(records).all() else None


def _is_filling(model: LiveModel, options: RunOptions) -> bool:
    """Say whether the reader below a cache was still asked for records: the first epoch was not over."""
    readers = [work for work in model.stages if work.name not in ARGUMENTS and _is_leaf(model, work)]
    asked = sum(work.visits_per_batch for work in readers)
    return full_cache(options) is not None and asked > NEVER_ASKED


def _is_leaf(model: LiveModel, work: StageWork) -> bool:
    index = model.stages.index(work)
    return all(other.parent != index for other in model.stages)
