"""The tab *What if* of a run: the predicted effect of other options, and how accurate earlier predictions were."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import streamlit as st

from pipeline_lab.advice.forecasts import Forecast, plan_race, read_forecasts, score
from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import find_settings, source_diff, write_command
from pipeline_lab.advice.option_edits import (
    edit_stages,
    set_pipeline,
    set_stage,
    set_workload,
    with_cache,
    with_whole_batches,
)
from pipeline_lab.advice.recorded_options import options_of
from pipeline_lab.advice.script.script_edits import Assumed
from pipeline_lab.advice.script.script_forecasts import forecast_changes, measure_script, recipe_of
from pipeline_lab.advice.script.script_layout import lay_out
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.what_if import Prediction, measure_diagnosis, predict
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.verdict.verdict import Suggestion
from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.options.run_options import RunOptions, read_options, set_options
from pipeline_lab.report.content import Table
from pipeline_lab.report.subjects.what_if_report import report_script_changes
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore, name_of
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.ui.run.verdict_view import weighed
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import contents, links, state
from pipeline_lab.ui.shared.field_editors import label_of
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.units import format_bytes, format_count, format_duration, format_percent
from pipeline_lab.workloads.registry import FUNCTION_STAGES

TITLE = "What if"
HELP = (
    "Each as one change, highest gain per risk first. Using memory or disk is a risk; changing what the model learns from "
    "is a greater one."
)


def show(store: RunStore, folder: RunFolder, diagnosis: Diagnosis) -> None:
    """Show the tab for a run that is over."""
    recorded = options_of(folder)
    if isinstance(recorded, Unavailable) or not recorded.is_assembled:
        recipe = recipe_of(folder)
        if not isinstance(recipe, Unavailable):
            _show_script(measure_script(diagnosis, recipe))
            return
    measured = recorded if isinstance(recorded, Unavailable) else measure_diagnosis(diagnosis, recorded)
    if isinstance(measured, Unavailable):
        st.info(prose(f"Nothing can be predicted from this run. {measured.reason}"))
    else:
        _show_prediction(store, folder, measured)
        _show_suggestions(store, measured, diagnosis.verdict.suggestions)
    _show_forecasts(store)


def _show_script(measured: ScriptRun | Unavailable) -> None:
    """Show what each rewrite of a watched script would bring."""
    if isinstance(measured, Unavailable):
        st.info(prose(f"Nothing can be predicted from this run. {measured.reason}"))
        return
    own = lay_out(measured, measured.stages, Assumed(measured.other_cores))
    content = report_script_changes(measured, forecast_changes(measured), None, own)
    st.markdown(prose(content.answer.sentences[0]))
    for number, section in enumerate(content.sections):
        contents.show_section(section, f"what-if-script-{number}")


@st.fragment
def _show_prediction(store: RunStore, folder: RunFolder, measured: Measured) -> None:
    chosen_side, answer_side = st.columns([3, 2], gap="large")
    with chosen_side:
        st.subheader("Change", anchor=False)
        try:
            chosen = choose_changes(measured.options, f"what-if.{folder.id}")
        except OptionsError as error:
            st.error(prose(str(error)))
            return
    prediction = predict(measured, chosen)
    with answer_side:
        st.subheader("Prediction", anchor=False)
        if isinstance(prediction, Unavailable):
            st.info(prose(prediction.reason))
        else:
            _show_answer(measured, prediction)
        changed = find_settings(measured.options, chosen)
        _show_buttons(store, measured, chosen, bool(changed), f"what-if.{folder.id}.own")
    if changed:
        with chosen_side, st.expander("The change"):
            st.code(write_command(name_of(folder.path), changed), language="shell", wrap_lines=True)
            st.code(source_diff(measured.options, chosen), language="diff")


def _show_answer(measured: Measured, prediction: Prediction) -> None:
    gain = prediction.gain_percent(measured)
    is_same = abs(gain) < 0.1
    with st.grid("auto", min_column_width=150, gap="small"):
        st.metric(
            "Predicted step",
            format_duration(prediction.step_ns),
            None if is_same else f"{'-' if gain > 0 else '+'}{format_percent(abs(gain))} per example",
            delta_color="off" if is_same else "inverse",  # less time is good
            border=True,
            height="stretch",
            help="Mean step time outside profile windows, without outliers.",
        )
        st.metric(
            "If input were free",
            format_duration(prediction.ceiling_ns),
            border=True,
            height="stretch",
            help="The training step and its Python overhead: no pipeline can make a step shorter.",
        )
    binding, *others = prediction.terms
    second = f" Next: {others[0].name}, {format_duration(others[0].time_ns)}." if others else ""
    st.markdown(escape(f"Limited by {binding.name}, {format_duration(binding.time_ns)}.{second}"))
    rows = tuple((term.name, format_duration(term.time_ns)) for term in prediction.terms)
    st.markdown(
        contents.write_table(Table("Terms", ("A step takes as long as the slowest of", "Time"), rows, numeric=(1,)))
    )
    memory = prediction.memory_bytes
    used = f"unknown ({memory.reason})" if isinstance(memory, Unavailable) else format_bytes(memory)
    st.caption(escape(f"Buffers and caches: {used}. Threads: {format_count(prediction.threads)}."))
    for note in prediction.notes:
        st.caption(f":material/info: {escape(note)}")


def _show_buttons(store: RunStore, measured: Measured, chosen: RunOptions, is_changed: bool, key: str) -> None:
    with st.container(horizontal=True):
        if st.button(
            "Race it",
            key=f"{key}.race",
            icon=":material/flag:",
            disabled=not is_changed,
            help="The run's options against these; the prediction is saved with the race.",
        ):
            with state.show_problem():
                links.open_run(launch(store, plan_race(measured, [access.check_launch(chosen)])).id)
        if st.button("Open in New run", key=f"{key}.form", disabled=not is_changed):
            links.open_new_run(chosen, "link:")


def _show_suggestions(store: RunStore, measured: Measured, suggestions: tuple[Suggestion, ...]) -> None:
    changes = [each for each in suggestions if each.options is not None]
    if not changes:
        return
    st.subheader("Suggestions", anchor=False, help=HELP)
    for number, suggestion in enumerate(changes):
        st.markdown(f"**{escape(suggestion.change)}**{weighed(suggestion)}  \n{escape(suggestion.why)}")
        for effect in suggestion.side_effects:
            st.caption(escape(effect))
        with st.expander("The change"):
            st.code(suggestion.command, language="shell", wrap_lines=True)
            st.code(suggestion.source_diff, language="diff")
        _show_buttons(store, measured, read_options(suggestion.options or {}), True, f"what-if.suggestion.{number}")


def _show_forecasts(store: RunStore) -> None:
    forecasts = read_forecasts(store)
    st.subheader("Predicted against measured", anchor=False)
    if not forecasts:
        st.caption("No race in this store has tested a prediction yet.")
        return
    st.markdown(score(forecasts).sentence)
    heads = ("Race", "Candidate", "Predicted", "Raced", "Interval", "Outside it")
    rows = tuple(_row(forecast) for forecast in forecasts)
    st.markdown(contents.write_table(Table("Predictions", heads, rows, numeric=(2, 3, 4, 5))))


def _row(forecast: Forecast) -> tuple[str, ...]:
    return (
        forecast.race,
        forecast.name,
        f"{forecast.predicted:.2f}",
        f"{forecast.ratio:.2f}",
        f"{forecast.low:.2f} to {forecast.high:.2f}",
        format_percent(forecast.error_percent),
    )


AUTOTUNE, SERIAL, DEFAULT, NONE = "autotune", "serial", "default", "none"
CALLS: tuple[int | str, ...] = (SERIAL, 2, 4, 8, 16, 32, AUTOTUNE)
FILES: tuple[int | str, ...] = ("one by one", 2, 4, 8, 16, AUTOTUNE)
POOL: tuple[int | str, ...] = (DEFAULT, 1, 2, 4, 8, 16, 32)
PREFETCH: tuple[int | str, ...] = (NONE, 1, 2, 4, 8, 16, AUTOTUNE)
FACTORS = (0.25, 0.5, 1, 2, 4)
TOGETHER = "These choices conflict; undo one of them."

Value = TypeVar("Value")
Edit = Callable[[RunOptions], RunOptions | None]


def choose_changes(options: RunOptions, key: str) -> RunOptions:
    """Show the widgets and return the options that they stand for.

    Args:
        options: Of the run.
        key: Prefix of the widgets' keys.

    Raises:
        OptionsError: The choices contradict each other, or the typed text is not an option.
    """
    with st.grid("auto", min_column_width=210, gap="small", vertical_alignment="bottom"):
        edits = [
            *_stage_sliders(options, key),
            _pool(options, key),
            _prefetch(options, key),
            _cache(options, key),
            _order(options, key),
            _whole_batches(options, key),
            *_workload_numbers(options, key),
        ]
    typed = st.text_input(
        "Other options",
        key=f"{key}.typed",
        placeholder="pipeline.tensorflow_rewrites=true, pipeline.shuffle.buffer_size=5000",
        help="Options as PATH=VALUE, comma-separated, as on the command line.",
    )
    changed = options
    for edit in edits:
        found = edit(changed)
        if found is None:
            raise OptionsError(TOGETHER)
        changed = found
    return _apply_typed(changed, typed)


def _stage_sliders(options: RunOptions, key: str) -> list[Edit]:
    edits: list[Edit] = []
    for index, stage in enumerate(options.pipeline.stages):
        name = f"{key}.{index}.{stage.stage}"
        if isinstance(stage, ReadStage) and stage.mode != "sample" and len(options.file_sizes or (0, 0)) > 1:
            edits.append(_reading(options, stage, name))
        for field, title in stage.sliders.items():
            edits.append(_field(index, field, title.format(stage=stage.stage), getattr(stage, field), name))
    return edits


def _field(index: int, field: str, title: str, now: int | str | None, key: str) -> Edit:
    """Show a slider over a stage's field: a number, or calls at once, of which there may be none."""
    is_calls = field == "num_parallel_calls"
    shown = SERIAL if now is None else now
    chosen = _slide(title, CALLS if is_calls or isinstance(shown, str) else _around(shown), shown, key)
    value = None if chosen == SERIAL else chosen
    return lambda options: options if chosen == shown else set_stage(options, index, **{field: value})


def _reading(options: RunOptions, stage: ReadStage, key: str) -> Edit:
    now: int | str = FILES[0]
    if stage.num_parallel_calls is not None:
        now = stage.num_parallel_calls
    most = len(options.file_sizes) if options.file_sizes else None
    choices = [each for each in FILES if isinstance(each, str) or most is None or each <= most]
    chosen = _slide("Files read at a time", choices, now, key)

    def edit(changed: RunOptions) -> RunOptions | None:
        if chosen == now:
            return changed
        if chosen == FILES[0]:
            return set_stage(
                changed, 0, num_parallel_calls=None, **({} if stage.mode == "interleave" else {"mode": "sequential"})
            )
        wide = max(chosen, stage.cycle_length or 0) if isinstance(chosen, int) else stage.cycle_length
        return set_stage(changed, 0, mode="interleave", cycle_length=wide, num_parallel_calls=chosen)

    return edit


def _workload_numbers(options: RunOptions, key: str) -> list[Edit]:
    workload = options.workload
    edits: list[Edit] = []
    for name in sorted(workload.known_fields):
        is_unused = name == "tail_ms" and not getattr(workload, "tail_every", 0)
        if is_unused or not (name.endswith("_ms") or name == "examples_at_once"):
            continue
        now = getattr(workload, name)
        step = 1 if isinstance(now, int) else None
        chosen = st.number_input(
            label_of(name), min_value=type(now)(step or 0), value=now, step=step, key=f"{key}.{name}"
        )
        if chosen != now:
            edits.append(partial(set_workload, **{name: chosen}))
    return edits


def _pool(options: RunOptions, key: str) -> Edit:
    now = options.pipeline.private_threadpool_size or DEFAULT
    chosen = _slide("Threads in the pool", POOL, now, f"{key}.pool")
    value = None if chosen == DEFAULT else chosen
    return lambda changed: changed if chosen == now else set_pipeline(changed, private_threadpool_size=value)


def _order(options: RunOptions, key: str) -> Edit:
    now = options.pipeline.deterministic is not False
    chosen = st.toggle(
        "Deterministic order", now, key=f"{key}.order", help="For parallel stages that do not set it themselves."
    )
    return lambda changed: changed if chosen == now else set_pipeline(changed, deterministic=chosen)


def _prefetch(options: RunOptions, key: str) -> Edit:
    last = options.pipeline.stages[-1]
    if last.stage == "prefetch_to_device":
        return lambda changed: changed
    now: int | str = last.buffer_size if isinstance(last, PrefetchStage) else NONE
    chosen = _slide("Prefetch at the end", PREFETCH, now, f"{key}.prefetch")

    def edit(changed: RunOptions) -> RunOptions | None:
        if chosen == now:
            return changed
        added = [] if chosen == NONE else [{"stage": "prefetch", "buffer_size": chosen}]
        return edit_stages(changed, lambda stages: [*(stages if now == NONE else stages[:-1]), *added])

    return edit


def _whole_batches(options: RunOptions, key: str) -> Edit:
    single = _single(options)
    if not single or with_whole_batches(options, single) is None:
        return lambda changed: changed
    chosen = st.toggle(
        "Map whole batches", False, key=f"{key}.batches", help=f"Moves batch before {' and '.join(single)}."
    )
    return lambda changed: with_whole_batches(changed, single) if chosen else changed


def _cache(options: RunOptions, key: str) -> Edit:
    places = ["read", *_single(options)]
    has_cache = isinstance(options.pipeline.find("cache"), CacheStage)
    as_is = "as it is" if has_cache else NONE
    choices = [as_is, *([NONE] if has_cache else [])]
    choices += [f"{where}, after {place}" for where in ("memory", "disk") for place in places]
    chosen = st.selectbox("Cache", choices, key=f"{key}.cache", help="Stages before the cache move to the reader.")

    def edit(changed: RunOptions) -> RunOptions | None:
        if chosen == as_is:
            return changed
        if chosen == NONE:
            return with_cache(changed, (), None)
        where, _, place = chosen.partition(", after ")
        kept = places[1 : places.index(place) + 1]
        return with_cache(changed, kept, "file" if where == "disk" else where)

    return edit


def _single(options: RunOptions) -> list[str]:
    """Return the functions that process one example at a time."""
    stages, sizes = options.pipeline.stages, options.pipeline.batch_sizes
    return [
        stage.stage
        for stage, size in zip(stages, sizes, strict=True)
        if stage.stage in FUNCTION_STAGES and size is None
    ]


def _around(size: int) -> tuple[int | str, ...]:
    return tuple(dict.fromkeys(max(1, int(size * factor)) for factor in FACTORS))


def _slide(label: str, choices: Sequence[int | str], now: int | str, key: str) -> int | str:
    """Show a slider over choices and the current value, in order."""
    offered = list(choices)
    if isinstance(now, str) and now not in offered:
        offered.append(now)
    elif isinstance(now, int) and now not in offered:
        smaller = [index for index, each in enumerate(offered) if isinstance(each, int) and each < now]
        offered.insert(smaller[-1] + 1 if smaller else 1, now)
    chosen: int | str = st.select_slider(label, offered, now, key=key)
    return chosen


def _apply_typed(options: RunOptions, typed: str) -> RunOptions:
    pairs = []
    for part in filter(str.strip, typed.split(",")):
        path, equals, value = part.partition("=")
        if not equals:
            raise OptionsError(f"Write PATH=VALUE, such as training.steps=50; {part.strip()[:80]!r} has no '='.")
        pairs.append((path.strip(), value.strip()))
    return set_options(options, pairs) if pairs else options
