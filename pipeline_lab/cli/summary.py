"""A diagnosis for a terminal: the verdict, what speaks for it, what to try, then a line or two per analysis."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.machine.allocators import Allocators
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Diagnosis, Source
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_phases import Phase, StepPhases
from pipeline_lab.analysis.verdict.verdict import Verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent

R = TypeVar("R")
MOST_ALLOCATORS = 4


def summarise(diagnosis: Diagnosis) -> RenderableType:
    """Put a diagnosis into words and numbers; what was not measured says so."""
    table = Table.grid(padding=(0, 2))
    for name, line in _lines(diagnosis):
        table.add_row(Text(name, style="bold"), line)
    return Group(*_verdict(diagnosis.verdict), table, *_findings(diagnosis))


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
    yield Text(verdict.sentence, style="bold")
    yield Text(f"{verdict.verdict_class} · confidence {verdict.confidence}", style="dim")
    for evidence in verdict.evidence:
        yield Padding(Text(f"{evidence.name}: {evidence.value}"), (0, 0, 0, 2))
    for suggestion in verdict.suggestions:
        predicted = f" ({suggestion.prediction})" if suggestion.prediction else ""
        effects = "".join(f" {effect}" for effect in suggestion.side_effects)
        yield Padding(Text(f"→ {suggestion.change}{predicted}", style="green"), (0, 0, 0, 2), expand=False)
        yield Padding(Text(f"{suggestion.why}{effects}"), (0, 0, 0, 4), expand=False)
        if suggestion.command:
            yield Text(
                f"    {suggestion.command}", style="dim", no_wrap=True, overflow="ignore"
            )  # to be pasted: no breaks
    yield Text("")


def _findings(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    if diagnosis.findings:
        yield Text("")
    for finding in diagnosis.findings:
        yield Text(f"! {finding.sentence}", style="yellow")


def _lines(diagnosis: Diagnosis) -> Iterator[tuple[str, Text]]:
    yield "Source", _source(diagnosis.source)
    yield "Traced steps", _line(diagnosis.steps, _steps)
    yield "Input stalls", _line(diagnosis.input_stalls, _input_stalls)
    yield "Idle gaps", _line(diagnosis.idle_gaps, _idle_gaps)
    yield "File sampling", _line(diagnosis.file_sampling, _file_sampling)
    if diagnosis.source.kind != "run":
        yield "Not in a log", Text(_ONLY_IN_RUNS, style="dim")
        return
    yield "Job's steps", _line(diagnosis.job_steps, _job_steps)
    phases = diagnosis.step_phases
    if not isinstance(phases, Unavailable) and phases.phases[-1].phase is Phase.LATER_EPOCHS:
        yield "Epochs", Text(_phases(phases))
    if not isinstance(diagnosis.retraces, Unavailable) and diagnosis.retraces.count:
        yield "Traced again", Text(_retraces(diagnosis.retraces))
    if not isinstance(diagnosis.kept_outputs, Unavailable):
        yield "Outputs", Text(_kept_outputs(diagnosis.kept_outputs))
    if not isinstance(diagnosis.evaluation, Unavailable):
        yield "Evaluation", Text(_evaluation(diagnosis.evaluation))
    if not isinstance(diagnosis.padding, Unavailable):
        yield "Padding", Text(f"{format_percent(diagnosis.padding.percent)} of what the steps were sent")
    yield "Calibration", _line(diagnosis.calibration, _calibration)
    yield "Memory", _line(diagnosis.memory, _memory)
    if not isinstance(diagnosis.allocators, Unavailable):
        yield "Allocators", Text(_allocators(diagnosis.allocators))
    yield "Profiler", _line(diagnosis.profiler_cost, _profiler_cost)


_ONLY_IN_RUNS = (
    "Every step's time, calibration, the job's memory and the profiler's price; "
    "launch the job with `pipeline-lab run` to have them."
)


def _line(result: R | Unavailable, describe: Callable[[R], str]) -> Text:
    if isinstance(result, Unavailable):
        return Text(result.reason, style="dim")
    return Text(describe(result))


def _source(source: Source) -> Text:
    parts = [
        source.path,
        source.kind,
        _count(source.windows, "window"),
        f"{format_count(source.events)} events",
        format_bytes(source.size_bytes),
    ]
    if source.salvaged is not None:
        parts.append(f"damaged: {source.salvaged.reason}")
    return Text(" · ".join(parts))


def _job_steps(steps: JobSteps) -> str:
    rate = steps.examples_per_second
    return (
        f"{format_count(steps.count)} · median {format_duration(steps.median_ns)}, "
        f"95 % below {format_duration(steps.p95_ns)} · waited {format_duration(steps.wait_total_ns)} in all"
        + ("" if steps.first_batch_ns is None else f", {format_duration(steps.first_batch_ns)} for the first batch")
        + ("" if rate is None else f" · {format_count(rate)} examples/s")
    )


def _phases(phases: StepPhases) -> str:
    """Say what a step took in each phase: caches and shuffle buffers are filled in the first epoch."""
    return " · ".join(
        f"{one.phase} median step {format_duration(one.median_ns)}, {format_percent(one.wait_percent)} of the time waiting"
        for one in phases.phases
    )


def _retraces(retraces: Retraces) -> str:
    functions = ", ".join(retraces.functions[:3])
    return f"{_count(retraces.count, 'time')} in {_count(retraces.steps, 'recorded step')}" + (
        f": {functions}" if functions else ""
    )


def _kept_outputs(kept: KeptOutputs) -> str:
    return f"of step {kept.step} kept: {format_count(kept.right)} of {_count(kept.table.num_rows, 'example')} predicted right"


def _steps(steps: Steps) -> str:
    only_first = ", only the first step of the job" if steps.first_step_only else ""
    return f"{format_count(steps.count)}, found by {steps.marker}{only_first}"


def _input_stalls(stalls: InputStalls) -> str:
    return (
        f"waited {format_percent(stalls.wait_percent)} of the step ({format_duration(stalls.wait_ns)}), "
        f"{format_percent(stalls.exposed_percent)} with the device idle ({format_duration(stalls.exposed_ns)})"
    )


def _idle_gaps(gaps: IdleGaps) -> str:
    idle = gaps.idle_percent
    if isinstance(idle, Unavailable):
        return idle.reason
    causes = sorted(((ns, cause) for cause, ns in gaps.idle_by_cause_ns.items() if ns), reverse=True)[:4]
    listed = ", ".join(f"{cause.replace('_', ' ')} {format_duration(ns)}" for ns, cause in causes)
    off = f" · not recorded between windows: {format_duration(gaps.unrecorded_ns)}" if gaps.unrecorded_ns else ""
    return f"{gaps.device} idle {format_percent(idle)} of the windows" + (f": {listed}" if listed else "") + off


def _calibration(calibration: Calibration) -> str:
    alone = calibration.pipeline_only_ns
    pipeline = "not timed" if alone is None else format_duration(alone)
    return (
        f"step alone {format_duration(calibration.device_only_ns)}, pipeline alone {pipeline}, together "
        f"{format_duration(calibration.step_ns)} · utilisation {format_percent(calibration.utilisation_percent)}"
    )


def _file_sampling(sampling: FileSampling) -> str:
    is_known = sampling.basis == "samples" or sampling.unopened is not None  # a log's readers may take files in turn
    parts = [f"{_count(sampling.table.num_rows, 'file' if is_known else 'file reader')} by {sampling.basis}"]
    if sampling.total_variation is not None:
        ideal = sampling.total_variation_ideal
        beside = "" if ideal is None else f" (an even sample: {format_percent(100 * ideal)})"
        parts.append(f"{format_percent(100 * sampling.total_variation)} off the expected shares{beside}")
    if sampling.unopened:
        parts.append(f"{sampling.unopened} never used")
    if sampling.coverage_percent is not None:
        parts.append(f"{format_percent(sampling.coverage_percent)} of the records used")
    if sampling.mixing is not None and sampling.mixing.displacement is not None:
        moved = format_percent(100 * sampling.mixing.displacement)
        parts.append(f"examples moved by {moved} of what a random order would move them")
    if (found := sampling.same_source) is not None:
        shared = f"{found.per_batch:.3g} of the {found.batch_size} examples of a batch share their image"
        parts.append(f"{shared} (a perfect shuffle: {found.expected:.3g})")
    return " · ".join(parts)


def _evaluation(evaluation: Evaluation) -> str:
    accuracy, loss = evaluation.last_accuracy, evaluation.last_loss
    parts = [_count(evaluation.count, "evaluation"), f"{format_duration(evaluation.total_ns)} in all"]
    parts += [] if loss is None else [f"last loss {loss:.3g}"]
    parts += [] if accuracy is None else [f"accuracy {format_percent(100 * accuracy)}"]
    parts.append(f"training pipeline {'built anew after each' if evaluation.is_rebuilt else 'kept'}")
    return " · ".join(parts)


def _memory(memory: Memory) -> str:
    data = "" if memory.data_bytes is None else f" · data on disk {format_bytes(memory.data_bytes)}"
    return (
        f"peak {format_bytes(memory.process_peak_bytes)}, {format_bytes(memory.process_start_bytes)} at the start{data}"
    )


def _allocators(found: Allocators) -> str:
    return " · ".join(f"{one.name} peak {format_bytes(one.peak_bytes)}" for one in found.allocators[:MOST_ALLOCATORS])


def _profiler_cost(cost: ProfilerCost) -> str:
    inside = "" if cost.profiled_steps is None else f", {_count(cost.profiled_steps, 'step')} in them"
    parts = [f"{_count(cost.windows.num_rows, 'window')}{inside}"]
    if cost.profiled_step_ns is not None and cost.plain_step_ns is not None:
        parts.append(
            f"step {format_duration(cost.profiled_step_ns)} inside, {format_duration(cost.plain_step_ns)} outside"
        )
    return " · ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{format_count(number)} {noun}{'s' * (number != 1)}"
