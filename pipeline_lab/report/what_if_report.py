"""What a prediction says: the step time first, then what it is the longest of."""

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import option_changes
from pipeline_lab.advice.what_if import Prediction
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.report.content import Answer, Content, Section, Table, Text
from pipeline_lab.units import format_bytes, format_duration, format_percent


def report_prediction(
    measured: Measured | Unavailable, options: RunOptions, prediction: Prediction | Unavailable
) -> Content:
    """Put a prediction into blocks; one that cannot be made says why."""
    if isinstance(measured, Unavailable):
        return report_unpredicted(measured)
    if isinstance(prediction, Unavailable):
        return report_unpredicted(prediction)
    changes = option_changes(measured.options, options)
    terms = Table(
        "What limits the step",
        ("Part", "Time"),
        tuple((term.name, format_duration(term.time_ns)) for term in prediction.terms),
        numeric=(1,),
        note="The step takes as long as the longest of them.",
    )
    memory = prediction.memory_bytes
    held = f"unknown ({memory.reason})" if isinstance(memory, Unavailable) else format_bytes(memory)
    bounds = f"If input were free: {format_duration(prediction.ceiling_ns)}. Buffers and caches: {held}. Threads: {prediction.threads}."
    headline = _headline(measured, prediction, is_changed=bool(changes))
    return Content(
        title="Prediction",
        about=(),
        answer=Answer("predicted", "neutral", (headline,), "from one run"),
        warnings=prediction.notes,
        notes=(),
        sections=(
            *((Section("What changes", tuple(map(Text, changes)), in_short=True),) if changes else ()),
            Section(terms.title, (terms, Text(bounds)), in_short=True),
        ),
    )


def report_unpredicted(why: Unavailable) -> Content:
    """Say why nothing can be predicted."""
    answer = Answer("not predicted", "neutral", (f"Nothing can be predicted. {why.reason}",), "")
    return Content("Prediction", (), answer, (), (), ())


def _headline(measured: Measured, prediction: Prediction, *, is_changed: bool) -> str:
    if not is_changed:
        return f"The step takes {format_duration(measured.step_ns)}; change it with --set to see what that would bring."
    gain = prediction.gain_percent(measured)
    by = f"{format_percent(abs(gain))} {'less' if gain >= 0 else 'more'} time for each example"
    return (
        f"Predicted: {format_duration(prediction.step_ns)} a step instead of {format_duration(measured.step_ns)}, {by}."
    )
