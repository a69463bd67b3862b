"""What was measured on one run or log, and what was concluded from it."""

from dataclasses import dataclass
from typing import Any

from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.input.live_model import LiveModel
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.machine.gpu_clocks import GpuClocks
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.step_phases import PhaseTimes, StepPhases
from pipeline_lab.analysis.steps.stragglers import Hosts
from pipeline_lab.analysis.tf_data.tf_data import TfData
from pipeline_lab.analysis.verdict.verdict import Finding, Verdict
from pipeline_lab.display import Displayed
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.trace.schema import Salvage


@dataclass(frozen=True)
class Source:
    """What was analysed.

    Attributes:
        kind: ``run``, ``xplane``, ``trace_json``, ``derived`` or ``logdir``.
        hosts: Names of the hosts.
        windows: Number of windows.
        size_bytes, events: Of all trace files.
        salvaged: What damaged files lost, or None.
        kept_apart: Windows or hosts whose captures do not say when they were made; they are laid one after another.
        unseen_device: The host's threads served a device that left no plane.
        unreadable: One sentence for each trace file that could not be read at all.
    """

    path: str
    kind: str
    hosts: tuple[str, ...]
    windows: int
    size_bytes: int
    events: int
    salvaged: Salvage | None = None
    kept_apart: bool = False
    unseen_device: bool = False
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """All analyses of one run or log.

    Times in tables are ns on one axis whose zero is ``origin_epoch_ns`` (None when the capture has no absolute time).
    ``other_cpu_percent`` is what other processes took on average during the job, 100 for one core; None if unknown.
    """

    source: Source
    origin_epoch_ns: int | None
    job_steps: JobSteps | Unavailable
    steps: Steps | Unavailable
    input_stalls: InputStalls | Unavailable
    step_breakdown: StepBreakdown | Unavailable
    retraces: Retraces | Unavailable
    outlier_steps: OutlierSteps | Unavailable
    step_phases: StepPhases | Unavailable
    hosts: Hosts | Unavailable
    calibration: Calibration | Unavailable
    idle_gaps: IdleGaps | Unavailable
    tf_data: TfData | Unavailable
    file_sampling: FileSampling | Unavailable
    padding: Padding | Unavailable
    kept_outputs: KeptOutputs | Unavailable
    evaluation: Evaluation | Unavailable
    gpu_clocks: GpuClocks | Unavailable
    memory: Memory | Unavailable
    allocators: Allocators | Unavailable
    profiler_cost: ProfilerCost | Unavailable
    live_model: LiveModel | Unavailable
    job_load: JobLoad | Unavailable
    written: WrittenPipeline | Unavailable
    other_cpu_percent: float | None = None


@dataclass(frozen=True, eq=False)
class LaterEpochs:
    """What the job noted of its later epochs, where these are judged by themselves.

    Attributes:
        first_step, start_ns: Number of their first step, and when it began, on the diagnosis' axis.
        first: The first epoch.
        job_steps, calibration, live_model, job_load, profiler_cost: As for the whole job.
    """

    first_step: int
    start_ns: int
    first: PhaseTimes
    job_steps: JobSteps | Unavailable
    calibration: Calibration | Unavailable
    live_model: LiveModel | Unavailable
    job_load: JobLoad | Unavailable
    profiler_cost: ProfilerCost | Unavailable


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Diagnosis(Displayed, Results):
    """Everything that can be said about one run or log.

    The results are those of the whole job. The verdict, and all advice, are about the later epochs alone where there are
    any of these; see ``analysis.later_epochs``.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    later_epochs: LaterEpochs | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``pipeline-lab analyze --json`` prints."""
        from pipeline_lab.analysis.diagnosis.document import write_document

        return write_document(self)
