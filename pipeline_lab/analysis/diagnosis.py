"""All analyses of one run or log, folded over its windows and hosts."""

from dataclasses import dataclass

from pipeline_lab.analysis.calibration import Calibration
from pipeline_lab.analysis.file_sampling import FileSampling
from pipeline_lab.analysis.idle_gaps import IdleGaps
from pipeline_lab.analysis.input_stalls import InputStalls
from pipeline_lab.analysis.job_steps import JobSteps
from pipeline_lab.analysis.memory import Memory
from pipeline_lab.analysis.profiler_cost import ProfilerCost
from pipeline_lab.analysis.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps import Steps
from pipeline_lab.analysis.verdict import Finding, Verdict
from pipeline_lab.errors import Unavailable
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
    """

    path: str
    kind: str
    hosts: tuple[str, ...]
    windows: int
    size_bytes: int
    events: int
    salvaged: Salvage | None = None


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything that can be said about one run or log.

    Times in tables are ns on one axis whose zero is ``origin_epoch_ns`` (None when the capture has no absolute time).
    """

    source: Source
    origin_epoch_ns: int | None
    job_steps: JobSteps | Unavailable
    steps: Steps | Unavailable
    input_stalls: InputStalls | Unavailable
    step_breakdown: StepBreakdown | Unavailable
    calibration: Calibration | Unavailable
    idle_gaps: IdleGaps | Unavailable
    file_sampling: FileSampling | Unavailable
    memory: Memory | Unavailable
    profiler_cost: ProfilerCost | Unavailable
    findings: tuple[Finding, ...]
    verdict: Verdict
