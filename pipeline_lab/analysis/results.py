"""What was measured on one run or log, and what was concluded from it.

Each field of :class:`Results` names the declaration of its analysis; that registers it. The fold fills it, the storage
keeps it and the JSON document holds it without any of them naming it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pipeline_lab.analysis.declaring.declaration import Analysis, Document, to_ms
from pipeline_lab.analysis.idle.idle_gaps import IDLE_GAPS, IdleGaps
from pipeline_lab.analysis.input.input_stalls import INPUT_STALLS, InputStalls
from pipeline_lab.analysis.input.live_model import LIVE_MODEL, LiveModel
from pipeline_lab.analysis.machine.allocators import ALLOCATORS, Allocators
from pipeline_lab.analysis.machine.gpu_clocks import GPU_CLOCKS, GpuClocks
from pipeline_lab.analysis.machine.job_load import JOB_LOAD, JobLoad
from pipeline_lab.analysis.machine.process_memory import MEMORY, Memory
from pipeline_lab.analysis.machine.profiler_cost import PROFILER_COST, ProfilerCost
from pipeline_lab.analysis.sampling.evaluation import EVALUATION, Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FILE_SAMPLING, FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KEPT_OUTPUTS, KeptOutputs
from pipeline_lab.analysis.sampling.padding import PADDING, Padding
from pipeline_lab.analysis.steps.calibration import CALIBRATION, Calibration
from pipeline_lab.analysis.steps.checkpoints import CHECKPOINTS, Checkpoints
from pipeline_lab.analysis.steps.eager_ops import EAGER_OPS, EagerOps
from pipeline_lab.analysis.steps.idle_python import IDLE_PYTHON, IdlePython
from pipeline_lab.analysis.steps.iterator_ends import ITERATOR_ENDS, ITERATOR_STARTS, IteratorEnds, IteratorStarts
from pipeline_lab.analysis.steps.job_steps import JOB_STEPS, JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OUTLIER_STEPS, OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import STEPS, Steps
from pipeline_lab.analysis.steps.retracing import RETRACES, Retraces
from pipeline_lab.analysis.steps.step_breakdown import STEP_BREAKDOWN, StepBreakdown
from pipeline_lab.analysis.steps.step_phases import STEP_PHASES, PhaseTimes, StepPhases, phase_to_json
from pipeline_lab.analysis.steps.stragglers import HOSTS, Hosts
from pipeline_lab.analysis.tf_data.pipeline_analysis import TF_DATA
from pipeline_lab.analysis.tf_data.tf_data import TfData
from pipeline_lab.analysis.tf_data.written_words import WRITTEN
from pipeline_lab.analysis.verdict.verdict import Finding, Verdict
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.hooks import Displayed
from pipeline_lab.runs.run_documents import WrittenPipeline
from pipeline_lab.trace.schema import Salvage

SCHEMA_VERSION = 1
"""Of the JSON document. History: 1, the first one; parts were added to it since."""


@dataclass(frozen=True)
class Source:
    """What was analyzed.

    Attributes:
        kind: ``run``, ``xplane``, ``trace_json``, ``derived`` or ``logdir``.
        hosts: Names of the hosts.
        windows: Number of windows.
        size_bytes, events: Of all trace files.
        salvaged: What damaged files lost, or None.
        kept_apart: Windows or hosts whose captures do not say when they were made; they are placed one after another.
        unseen_device: The job used an accelerator of whose work the captures hold nothing.
        unreadable: One sentence for each trace file that could not be read at all.
        is_emulated: The accelerator was emulated: its steps took a set time, without a model.
        is_of_jax: The job is written in JAX, so that advice about TensorFlow does not fit.
        errors, warnings: What the profiler could not record, in its own words.
        damaged_tables: What is wrong with what the job noted beside its traces, a sentence each.
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
    is_emulated: bool = False
    is_of_jax: bool = False
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    damaged_tables: tuple[str, ...] = ()

    def to_json(self) -> Document:
        lost = self.salvaged
        return {
            "path": self.path,
            "kind": self.kind,
            "hosts": list(self.hosts),
            "windows": self.windows,
            "bytes": self.size_bytes,
            "events": self.events,
            "salvaged": lost
            and {"bytes_lost": lost.bytes_lost, "events_kept": lost.events_kept, "reason": lost.reason},
            "unreadable": list(self.unreadable),
            "emulated": self.is_emulated,
            "errors": list(self.errors),
            "warnings": list(self.warnings),
            "damaged_tables": list(self.damaged_tables),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """All analyses of one run or log, in the order of the JSON document.

    Times in tables are ns on one axis whose zero is ``origin_epoch_ns`` (None when the capture has no absolute time).
    ``other_cpu_percent`` is what other processes took on average during the job, 100 for one core; None if unknown.
    """

    source: Source
    origin_epoch_ns: int | None
    job_steps: Annotated[JobSteps | Unavailable, JOB_STEPS]
    steps: Annotated[Steps | Unavailable, STEPS]
    input_stalls: Annotated[InputStalls | Unavailable, INPUT_STALLS]
    step_breakdown: Annotated[StepBreakdown | Unavailable, STEP_BREAKDOWN]
    step_phases: Annotated[StepPhases | Unavailable, STEP_PHASES]
    outlier_steps: Annotated[OutlierSteps | Unavailable, OUTLIER_STEPS]
    checkpoints: Annotated[Checkpoints | Unavailable, CHECKPOINTS]
    iterator_starts: Annotated[IteratorStarts | Unavailable, ITERATOR_STARTS]
    iterator_ends: Annotated[IteratorEnds | Unavailable, ITERATOR_ENDS]
    retraces: Annotated[Retraces | Unavailable, RETRACES]
    eager_ops: Annotated[EagerOps | Unavailable, EAGER_OPS]
    hosts: Annotated[Hosts | Unavailable, HOSTS]
    calibration: Annotated[Calibration | Unavailable, CALIBRATION]
    idle_gaps: Annotated[IdleGaps | Unavailable, IDLE_GAPS]
    idle_python: Annotated[IdlePython | Unavailable, IDLE_PYTHON]
    tf_data: Annotated[TfData | Unavailable, TF_DATA]
    written: Annotated[WrittenPipeline | Unavailable, WRITTEN]
    file_sampling: Annotated[FileSampling | Unavailable, FILE_SAMPLING]
    padding: Annotated[Padding | Unavailable, PADDING]
    gpu_clocks: Annotated[GpuClocks | Unavailable, GPU_CLOCKS]
    evaluation: Annotated[Evaluation | Unavailable, EVALUATION]
    kept_outputs: Annotated[KeptOutputs | Unavailable, KEPT_OUTPUTS]
    memory: Annotated[Memory | Unavailable, MEMORY]
    allocators: Annotated[Allocators | Unavailable, ALLOCATORS]
    profiler_cost: Annotated[ProfilerCost | Unavailable, PROFILER_COST]
    live_model: Annotated[LiveModel | Unavailable, LIVE_MODEL]
    job_load: Annotated[JobLoad | Unavailable, JOB_LOAD]
    other_cpu_percent: float | None = None


@dataclass(frozen=True, eq=False)
class LaterEpochs:
    """What the job noted of its later epochs, where these are judged by themselves.

    Attributes:
        first_step, start_ns: Number of their first step, and when it began, on the diagnosis' axis.
        first: The first epoch.
        job_steps, iterator_starts, iterator_ends, checkpoints, calibration, live_model, job_load, profiler_cost: As for the whole job.
    """

    first_step: int
    start_ns: int
    first: PhaseTimes
    job_steps: JobSteps | Unavailable
    iterator_starts: IteratorStarts | Unavailable
    iterator_ends: IteratorEnds | Unavailable
    checkpoints: Checkpoints | Unavailable
    calibration: Calibration | Unavailable
    live_model: LiveModel | Unavailable
    job_load: JobLoad | Unavailable
    profiler_cost: ProfilerCost | Unavailable

    @property
    def results(self) -> dict[str, Any]:
        """What stands for the whole job in a verdict about these epochs, by its name in :class:`Results`."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in analyses()}

    def to_json(self) -> Document:
        head = {
            "first_step": self.first_step,
            "start_ms": to_ms(self.start_ns),
            "first_epoch": phase_to_json(self.first),
        }
        return head | {name: _write(analyses()[name], found) for name, found in self.results.items()}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Diagnosis(Displayed, Results):
    """Everything that can be said about one run or log.

    The results are those of the whole job. The verdict, and all advice, are about the later epochs alone where there are
    any of these; see ``analysis.diagnosis.later_epochs``.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    later_epochs: LaterEpochs | None = None

    def to_json(self) -> Document:
        """Return the document that ``pipeline-lab analyze --json`` prints: times in ms, shares in percent.

        What was not measured stands as ``{"unavailable": reason}`` in its place.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "source": self.source.to_json(),
            **dict(self._parts()),
            "other_cpu_percent": self.other_cpu_percent,
            "later_epochs": self.later_epochs and self.later_epochs.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
            "verdict": self.verdict.to_json(),
        }

    def _parts(self) -> Iterator[tuple[str, Document]]:
        for name, analysis in analyses().items():
            if analysis.to_json_with is not None:
                yield analysis.json_name or name, analysis.to_json_with(self)
            elif analysis.to_json is not None:
                yield analysis.json_name or name, _write(analysis, getattr(self, name))


@cache
def analyses() -> Mapping[str, Analysis[Any]]:
    """Return the declaration of every analysis by its name in :class:`Results`."""
    hints = get_type_hints(Results, include_extras=True).items()
    declared = {name: get_args(hint)[1] for name, hint in hints if get_origin(hint) is Annotated}
    return MappingProxyType(declared)


def _write(analysis: Analysis[Any], found: object) -> Document:
    assert analysis.to_json is not None
    return found.to_json() if isinstance(found, Unavailable) else analysis.to_json(found)
