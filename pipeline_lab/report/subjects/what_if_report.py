"""What a prediction says: the step time first, then what it is the longest of; of a script, what each change would bring."""

from collections.abc import Sequence

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import option_changes
from pipeline_lab.advice.script.script_forecasts import ChangeForecast
from pipeline_lab.advice.script.script_model import ScriptPrediction
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.step_terms import Term
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
    terms = _terms(prediction.terms)
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


def _terms(terms: Sequence[Term]) -> Table:
    return Table(
        "What limits the step",
        ("Part", "Time"),
        tuple((term.name, format_duration(term.time_ns)) for term in terms),
        numeric=(1,),
        note="The step takes as long as the longest of them.",
    )


def report_script_changes(
    run: ScriptRun,
    changes: Sequence[ChangeForecast],
    together: ScriptPrediction | Unavailable | None,
    own: Sequence[Term],
) -> Content:
    """Put what changes of a script would bring into blocks.

    Args:
        run: What the script measured.
        changes: Each by itself.
        together: The prediction for all of them at once; None where they are only listed.
        own: What the script's own step is the longest of.
    """
    if isinstance(together, Unavailable):
        return report_unpredicted(together)
    listed = Table(
        "Changes of the script",
        ("Line", "Change", "Step", "Shorter by", "Range"),
        tuple(map(_script_row, changes)),
        numeric=(2, 3, 4),
        note="Each by itself; `pipeline-lab what-if` with several --change predicts them together."
        if changes
        else "No rewrite applies to the dataset that is trained on.",
    )
    sentence = (
        f"The step takes {format_duration(run.step_ns)}, with free input {format_duration(run.ceiling_ns)}."
        if together is None
        else f"Predicted: {format_duration(together.step_ns)} a step instead of {format_duration(run.step_ns)}, "
        f"{format_percent(abs(together.gain_percent))} {'more' if together.is_longer else 'less'} "
        "({:.0f} to {:.0f} %).".format(*together.bounds_percent)
    )
    terms = _terms(own if together is None else together.terms)
    return Content(
        title="Prediction",
        about=(),
        answer=Answer("predicted", "neutral", (sentence,), "from one run"),
        warnings=() if together is None else together.notes,
        notes=(),
        sections=(Section(listed.title, (listed,), in_short=True), Section(terms.title, (terms,), in_short=True)),
    )


def _script_row(forecast: ChangeForecast) -> tuple[str, ...]:
    found, place = forecast.prediction, forecast.change.place
    change = f"{forecast.before} → {forecast.after}" if forecast.before else forecast.after
    if isinstance(found, Unavailable):
        return ("" if place is None else str(place), change, "–", "–", found.reason)
    return (
        "" if place is None else str(place),
        change,
        format_duration(found.step_ns),
        format_percent(round(found.gain_percent, 1)),
        f"{found.low_percent:.0f} to {found.high_percent:.0f} %",
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
