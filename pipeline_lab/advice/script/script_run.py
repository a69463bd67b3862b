"""What one watched run tells of its script: the step, what it would take with free input, and the processor."""

from pipeline_lab.advice.measured_run import LEAST_SHARE, noise_percent, unprofiled_steps
from pipeline_lab.advice.script.script_stages import ScriptStage, read_stages
from pipeline_lab.analysis.causes import InputCause, VerdictClass
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.diagnosis.later_epochs import judged
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.interruptions import sum_percent
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.recipe import Recipe

NO_TRAINING = "The recipe names no dataset that was trained on, so there is nothing whose change could be predicted."
NO_STEPS = "No step of the script was timed, so what a change would bring cannot be predicted; watch it for longer."

STARTING_SHARE = 0.05
"""Part of the time that the starts of epochs take before they are told apart from other waits."""
ITS_PYTHON = 0.5
"""Part of the Python between TensorFlow's calls, as a window has it, that a step timed alone lacks: with it, it took what five published
scripts took on one batch to 7 % (``benchmarks.scripts``)."""
ITS_BREAKS = 0.25
"""Part of what passes between epochs, beside the setup and teardown of iterators, that one iterator for all of them saves: callbacks,
and what Keras does then, stay. Of a published script whose breaks took 23 % of its time nearly none was saved (``benchmarks.fix``)."""
BUFFERS_SHARE = 0.5
"""Part of the free memory that AUTOTUNE may use for buffers (``kRamBudgetShare`` of TensorFlow's ``model.h``)."""


@dataclass(frozen=True)
class ScriptRun:
    """A watched run, ready to be asked what changes would bring; times in ns for one step or one batch.

    Attributes:
        recipe: Of the script.
        stages: Of the pipeline that was trained on, each after the one that takes its elements.
        step_ns: End-to-end step.
        ceiling_ns: The step if its input were free.
        cores: That the job may use.
        pool_threads: That run functions.
        other_cores: That others kept busy.
        step_cpu_ns: Processor time of all that is not the pipeline; None where it is not known.
        cpu_share: Part of the pipeline's thread time that keeps a core busy, 0 to 1.
        noise_percent: Half of the 95 % interval of the mean step, percent of it.
        pipeline_factor, cpu_factor: What the stages' work and the processor time have to be multiplied by for the script as it
            is to give its own step.
        is_calibrated: The compute-only step was timed; else it is what is left of a step without its wait.
        busy_ns: What of a step computes, by the trace; None where no trace tells. Python in the pipeline holds up the rest, which
            belongs to Python too.
        between_ns: Of a step, Python between TensorFlow's calls, and that with their launches too: what several steps in one call save;
            None where no trace tells.
        python_computes: Python in the pipeline was seen to compute and not to wait, so that its lock holds up other calls.
        order_stall: Place of the stage whose finished elements wait for slower ones before them, if that holds the script up.
        memory_bytes: That was free on the machine; None where nobody knows.
        epoch_batches: Batches of an epoch; None where no epoch was seen to end.
        starting_ns: Of the mean step: the waits for the first batches of epochs, beyond what a step usually waits.
        making_ns, ends_ns, breaks_ns: Of the mean step: the making of iterators, their ends, and what else passes between epochs.
        beside_ns: What a step was seen to take longer beside the pipeline than alone, without its waits; None where it was not timed
            alone.
        cores_used: By the job, where the step computes on the cores that the pipeline uses and was not timed without it; else None.
        copied_ns: Of a step, the device has nothing to do while its input is copied to it; None where no trace shows a device.
        slowing: What each ns of processor time of the pipeline lengthens the step by, 0 to 1.
    """

    recipe: Recipe
    stages: tuple[ScriptStage, ...]
    step_ns: float
    ceiling_ns: float
    cores: float
    pool_threads: int
    other_cores: float = 0.0
    step_cpu_ns: float | None = None
    cpu_share: float = 1.0
    noise_percent: float = 0.0
    pipeline_factor: float = 1.0
    cpu_factor: float = 1.0
    is_calibrated: bool = False
    busy_ns: float | None = None
    between_ns: tuple[float, float] | None = None
    python_computes: bool = False
    order_stall: int | None = None
    memory_bytes: float | None = None
    epoch_batches: float | None = None
    starting_ns: float = 0.0
    making_ns: float = 0.0
    ends_ns: float = 0.0
    breaks_ns: float = 0.0
    beside_ns: float | None = None
    cores_used: float | None = None
    copied_ns: float | None = None
    slowing: float = 0.0

    @property
    def steady_ns(self) -> float:
        """The mean step within epochs."""
        return self.step_ns - self.starting_ns

    @property
    def most_gain_percent(self) -> float:
        """What free input would save of the step."""
        return max(0.0, 100.0 * (1.0 - self.ceiling_ns / self.step_ns))

    def free_cores(self, other_cores: float) -> float:
        """Return the cores that the job can have beside those that others use."""
        return max(LEAST_SHARE * self.cores, self.cores - other_cores)


def take_script(diagnosis: Diagnosis, recipe: Recipe) -> ScriptRun | Unavailable:
    """Read what a watched run measured in the epochs that its verdict is about."""
    if recipe.trained is None:
        return Unavailable(NO_TRAINING)
    results = judged(diagnosis)
    step_ns, noise = _step(results)
    if not step_ns:
        return Unavailable(NO_STEPS)
    load = results.job_load
    cores = 1.0 if isinstance(load, Unavailable) else load.cores
    threads = None if isinstance(results.written, Unavailable) else results.written.pool_threads
    pool_threads = threads or max(1, round(cores))
    stages = read_stages(results, recipe, pool_threads)
    if isinstance(stages, Unavailable):
        return stages
    calibration = results.calibration
    beside_ns = _beside_ns(results)
    waits = _waiting_share(results, is_calibrated=beside_ns is not None)
    least_ns = max(least_step_ns(results), computed_in_loop_ns(results, step_ns))
    ceiling_ns = max(step_ns * (1.0 - waits) - (beside_ns or 0.0), least_ns)
    work_ns = sum(stage.work_ns for stage in stages)
    cpu_ns = None if isinstance(load, Unavailable) else load.cpu_ns_per_step
    share = 1.0 if cpu_ns is None else min(1.0, cpu_ns / max(1.0, work_ns + ceiling_ns))
    most_cpu_ns = cores * ceiling_ns  # beyond that, it is the pipeline's, though its stages do not tell
    step_cpu_ns = None if cpu_ns is None else min(most_cpu_ns, max(0.0, cpu_ns - share * work_ns))
    return ScriptRun(
        recipe=recipe,
        stages=stages,
        step_ns=step_ns,
        ceiling_ns=ceiling_ns,
        cores=cores,
        pool_threads=pool_threads,
        other_cores=0.0 if isinstance(load, Unavailable) else load.other_cores,
        step_cpu_ns=step_cpu_ns,
        cpu_share=share,
        noise_percent=noise,
        is_calibrated=not isinstance(calibration, Unavailable),
        busy_ns=_busy_ns(results, step_ns),
        between_ns=_between_ns(results, step_ns),
        python_computes=results.verdict.cause == InputCause.PYTHON_BOUND,
        order_stall=_order_stall(results, stages),
        memory_bytes=_memory_bytes(results),
        epoch_batches=_epoch_batches(diagnosis),
        starting_ns=_starting_ns(results, step_ns, step_ns - ceiling_ns),
        making_ns=step_ns * sum_percent(judged(diagnosis).iterator_starts) / 100.0,
        ends_ns=step_ns * sum_percent(judged(diagnosis).iterator_ends) / 100.0,
        breaks_ns=step_ns * diagnosis.verdict.break_percent / 100.0,
        beside_ns=beside_ns,
        cores_used=_shared_cores(results),
        copied_ns=_copied_ns(results, step_ns),
    )


def saved_by_one_iterator(diagnosis: Diagnosis) -> float:
    """Return what one iterator for all epochs is expected to save of the mean step, percent."""
    return sum_percent(judged(diagnosis).iterator_starts) + saved_by_quick_ends(diagnosis)


def saved_by_quick_ends(diagnosis: Diagnosis) -> float:
    """Return what ends of iterators that wait for nobody are expected to save of the mean step, percent."""
    return sum_percent(judged(diagnosis).iterator_ends) + ITS_BREAKS * diagnosis.verdict.break_percent


def _memory_bytes(results: Diagnosis) -> float | None:
    """Return what was free when the pipeline began: TensorFlow allows its buffers half of that."""
    model = results.live_model
    return None if isinstance(model, Unavailable) else model.ram_budget_bytes / BUFFERS_SHARE


def _epoch_batches(diagnosis: Diagnosis) -> float | None:
    """Return the batches of an epoch, by the steps of the job and the epochs that began after the first one."""
    phases = diagnosis.step_phases
    if isinstance(phases, Unavailable) or phases.boundaries is None:
        return None
    return sum(phase.steps for phase in phases.phases) / (phases.boundaries.count + 1)


def _starting_ns(results: Diagnosis, step_ns: float, waited_ns: float) -> float:
    """Return what the starts of epochs add to the mean step, ns: 0 where that is too little to tell from chance."""
    phases = results.step_phases
    if isinstance(phases, Unavailable) or phases.boundaries is None or phases.boundaries.share < STARTING_SHARE:
        return 0.0
    return max(0.0, min(waited_ns, phases.boundaries.share * step_ns))


def _busy_ns(results: Diagnosis, step_ns: float) -> float | None:
    breakdown = results.step_breakdown
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns:
        return None
    computes_ns = breakdown.device_compute_ns + breakdown.device_copy_ns + breakdown.host_compute_ns
    return step_ns * computes_ns / breakdown.total_ns


def _copied_ns(results: Diagnosis, step_ns: float) -> float | None:
    breakdown = results.step_breakdown
    if isinstance(breakdown, Unavailable) or not breakdown.device_compute_ns:
        return None
    return step_ns * breakdown.host_to_device_ns / breakdown.total_ns


def _between_ns(results: Diagnosis, step_ns: float) -> tuple[float, float] | None:
    """Return what of a typical step passes between TensorFlow's calls; what only some steps have, as at an epoch's end, is left out."""
    breakdown, job = results.step_breakdown, results.job_steps
    if isinstance(breakdown, Unavailable) or not breakdown.total_ns:
        return None
    typical_ns = step_ns if isinstance(job, Unavailable) else min(step_ns, job.median_ns)
    python_ns, dispatch_ns = (
        typical_ns * ns / breakdown.total_ns for ns in (breakdown.python_ns, breakdown.dispatch_ns)
    )
    return python_ns, python_ns + dispatch_ns


def _shared_cores(results: Diagnosis) -> float | None:
    breakdown, load = results.step_breakdown, results.job_load
    has_device = results.source.unseen_device or (
        not isinstance(breakdown, Unavailable) and breakdown.device_compute_ns > 0
    )
    is_timed = not isinstance(results.calibration, Unavailable)
    return None if has_device or is_timed or isinstance(load, Unavailable) else load.cores_used


def _beside_ns(results: Diagnosis) -> float | None:
    """Return what a typical step takes longer beside the pipeline than alone, without its wait; None where it was not timed alone."""
    job, calibration = results.job_steps, results.calibration
    if isinstance(job, Unavailable) or isinstance(calibration, Unavailable):
        return None
    typical, python = unprofiled_steps(job), _between_ns(results, job.median_ns)
    between_ns = max(typical.between_ns, 0.0 if python is None else ITS_PYTHON * python[0])
    return max(0.0, typical.step_ns - typical.waited_ns - between_ns - calibration.device_only_ns)


def least_step_ns(results: Diagnosis) -> float:
    """Return the shortest that a step can be, ns: what it takes alone, if a device works on it while the host waits for its next batch."""
    calibration, breakdown = results.calibration, results.step_breakdown
    if isinstance(calibration, Unavailable) or isinstance(breakdown, Unavailable) or not breakdown.device_compute_ns:
        return 1.0
    return max(1.0, calibration.device_only_ns)


def computed_in_loop_ns(results: Diagnosis, step_ns: float) -> float:
    """Return what a step of a loop inside of a function computes, of which its own requests tell too little; 0 for other steps."""
    is_loop = not isinstance(results.steps, Unavailable) and results.steps.is_in_function
    return (_busy_ns(results, step_ns) or 0.0) if is_loop else 0.0


def _order_stall(results: Diagnosis, stages: tuple[ScriptStage, ...]) -> int | None:
    verdict = results.verdict
    blamed = [index for index, stage in enumerate(stages) if stage.name == verdict.stage and stage.at_once > 1]
    return blamed[0] if blamed and verdict.cause == InputCause.ORDERING else None


def _step(results: Diagnosis) -> tuple[float, float]:
    """Return the step, ns, and how uncertain it is, percent; 0 where it is not known."""
    job, steps = results.job_steps, results.steps
    if not isinstance(job, Unavailable):
        return _mean_ns(job), noise_percent(job)
    if not isinstance(steps, Unavailable):
        return float(steps.training_step_ns.mean()), 0.0
    return 0.0, 0.0


def _mean_ns(job: JobSteps) -> float:
    """Return the mean of the steps outside of profile windows: what an epoch's beginning costs, as where a buffer fills, counts."""
    plain = ~(tables.bools(job.table, "warmup") | tables.bools(job.table, "profiled"))
    return float(tables.ints(job.table, "step_ns")[plain].mean()) if plain.any() else job.mean_ns


def _waiting_share(results: Diagnosis, *, is_calibrated: bool) -> float:
    """Return the share of the step that passes waiting for input, as the verdict has it; all waits where the step was timed alone."""
    verdict, job = results.verdict, results.job_steps
    if is_calibrated and not isinstance(job, Unavailable) and job.wait_percent is not None:
        return min(1.0, job.wait_percent / 100.0)
    if verdict.verdict_class is VerdictClass.INPUT_BOUND and verdict.lost_percent is not None:
        return min(1.0, verdict.lost_percent / 100.0)
    if not isinstance(job, Unavailable) and job.wait_percent is not None:
        return min(1.0, job.wait_percent / 100.0)
    stalls = results.input_stalls
    return 0.0 if isinstance(stalls, Unavailable) else min(1.0, stalls.exposed_percent / 100.0)
