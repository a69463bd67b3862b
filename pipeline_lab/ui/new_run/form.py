"""The form of a new run: stages in their order, workload, training and profiling, all from the options' models."""

import base64
import contextlib
import math
from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pipeline_lab.errors import DataError, StoreError
from pipeline_lab.options.profiling import ProfilingOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.report.content import Table
from pipeline_lab.runs.data_files.found_features import infer_features
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.registry import STAGE_TYPES
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import contents, state
from pipeline_lab.ui.shared.draft import (
    Document,
    Draft,
    add_stage,
    change_workload,
    describe_stage,
    move_stage,
    remove_stage,
    stages_to_offer,
    with_features,
)
from pipeline_lab.ui.shared.field_editors import edit_field, edit_fields, edit_folded
from pipeline_lab.ui.shared.text import escape, prose
from pipeline_lab.units import format_percent, keep_together
from pipeline_lab.workloads.records import RecordFeature, parse_features
from pipeline_lab.workloads.registry import WORKLOADS

_GRAY = "#76808d"
"""Visible on the light and the dark background."""
_PATHS = {"up": "M8 13V3M3.5 7.5 8 3l4.5 4.5", "down": "M8 3v10M3.5 8.5 8 13l4.5-4.5", "remove": "M4 4l8 8M12 4l-8 8"}


def labeled(sign: str, name: str) -> str:
    """Return a button label that shows an icon (``up``, ``down``, ``remove``) and is read out as ``name``."""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">'
        f'<path d="{_PATHS[sign]}" fill="none" stroke="{_GRAY}" stroke-width="2"/></svg>'
    )
    return f"![{name}](data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()})"


def show_record_features(draft: Draft, workload: Document, key: str) -> None:
    """Offer to read the first records of the files; list the features, or say what is wrong with the files.

    Where no path on the server may be opened, the user types the features.
    """
    if not access.why_no_paths():
        _offer_to_read(draft, workload, key)
    with contextlib.suppress(ValueError):  # the form says what is wrong with the text
        if features := parse_features(workload["features"]):
            st.markdown(contents.write_table(_feature_table(features)))


def _offer_to_read(draft: Draft, workload: Document, key: str) -> None:
    pattern = workload["pattern"]
    if st.button("Read the features from the files", key=f"{key}.infer", disabled=not pattern) and pattern:
        try:
            access.check_pattern(pattern)
            features = infer_features(pattern, access.check_path)
        except (DataError, StoreError) as error:
            st.error(prose(str(error)))
            return
        state.keep(with_features(draft, workload, features))
        st.rerun()


def _feature_table(features: tuple[RecordFeature, ...]) -> Table:
    rows = tuple((each.name, each.kind, "any number" if each.length is None else str(each.length)) for each in features)
    return Table("Features", ("Feature", "Type", "Values per record"), rows, numeric=(2,))


def edit_draft(draft: Draft) -> Draft:
    """Show the whole form and return the draft as its fields now read."""
    key = f"draft{draft.generation}"
    document = dict(draft.document)
    document["name"] = st.text_input("Name", document["name"], max_chars=200, key=f"{key}.name")
    document["workload"] = _edit_workload(draft, key)
    st.subheader("Pipeline", anchor=False)
    document["pipeline"] = _edit_pipeline(draft, key)
    with st.container(border=True):
        st.markdown("**Training**")
        own = WORKLOADS[document["workload"]["kind"]].decides
        document["training"] = _edit_training(document["training"], f"{key}.training", own)
    with st.container(border=True):
        st.markdown("**Profiling**")
        document["profiling"] = edit_folded(ProfilingOptions, document["profiling"], f"{key}.profiling")
        _state_duty(document["profiling"], document["training"]["steps_per_call"] or 1)
    return replace(draft, document=document)


def _edit_workload(draft: Draft, key: str) -> Document:
    workload = draft.document["workload"]
    with st.container(border=True):
        kind = st.segmented_control(
            "Workload", _offered(workload["kind"]), default=workload["kind"], required=True, key=f"{key}.kind"
        )
        if kind and kind != workload["kind"]:
            state.keep(change_workload(draft, kind))
            st.rerun()
        st.caption(prose(WORKLOADS[workload["kind"]].__doc__ or ""))
        edited = edit_folded(WORKLOADS[workload["kind"]], workload, f"{key}.workload.{workload['kind']}")
        if WORKLOADS[workload["kind"]].finds_features:
            show_record_features(draft, edited, key)
        return edited


def _offered(present: str) -> list[str]:
    """Return the workloads to choose from; custom code only where the app may run it."""
    return [kind for kind, each in WORKLOADS.items() if not each.is_code or kind == present or access.may_run_code()]


def _edit_pipeline(draft: Draft, key: str) -> Document:
    pipeline = dict(draft.document["pipeline"])
    pipeline["stages"] = [
        _edit_stage(draft, index, stage, f"{key}.stage{draft.stage_keys[index]}")
        for index, stage in enumerate(draft.stages)
    ]
    if WORKLOADS[draft.document["workload"]["kind"]].is_code:
        st.caption("Your code defines the stages. These options are applied to its dataset.")
        return edit_folded(PipelineOptions, pipeline, f"{key}.pipeline", skip=("stages",))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("Stage to add", stages_to_offer(draft), key=f"{key}.kind_to_add", width=200)
        st.button("Add stage", key=f"{key}.add", on_click=_change, args=(lambda kept: add_stage(kept, kind),))
    return edit_folded(PipelineOptions, pipeline, f"{key}.pipeline", skip=("stages",))


def _edit_stage(draft: Draft, index: int, stage: Document, key: str) -> Document:
    model = STAGE_TYPES[stage["stage"]]
    last = len(draft.stages) - 1
    row = st.container(horizontal=True, wrap=False, vertical_alignment="top", gap="xsmall", key=key.replace(".", "-"))
    with row:
        summary = escape(describe_stage(stage))
        state.hold(f"{key}.open")
        body = st.expander(f"{index + 1}\\. **{stage['stage']}** {summary}", key=f"{key}.open", on_change="rerun")
        edited = stage
        if body.open:  # fields of closed stages would be most of the page
            with body:
                st.caption(prose(model.__doc__ or ""))
                edited = edit_fields(model, stage, key)
        place = f"{stage['stage']}, stage {index + 1}"
        _stage_button("up", f"Move {place}, up", f"{key}.up", index == 0, lambda kept: move_stage(kept, index, -1))
        _stage_button(
            "down", f"Move {place}, down", f"{key}.down", index == last, lambda kept: move_stage(kept, index, 1)
        )
        _stage_button("remove", f"Remove {place}", f"{key}.remove", last == 0, lambda kept: remove_stage(kept, index))
    return edited


def _stage_button(sign: str, meaning: str, key: str, disabled: bool, change: Callable[[Draft], Draft]) -> None:
    st.button(labeled(sign, meaning), key=key, help=meaning, disabled=disabled, on_click=_change, args=(change,))


def _edit_training(training: Document, key: str, own: tuple[str, ...]) -> Document:
    """Ask for steps or seconds, then for the rest, except what the user's ``own`` code decides."""
    by = "seconds" if training["seconds"] is not None else "steps"
    chosen = st.segmented_control("Length", ["steps", "seconds"], default=by, required=True, key=f"{key}.by") or by
    values = {**training, "steps": training["steps"] or 200, "seconds": training["seconds"] or 60.0}
    length = edit_field(TrainingOptions, chosen, values[chosen], f"{key}.{chosen}")
    edited = edit_folded(TrainingOptions, training, key, skip=("steps", "seconds", *own))
    return {**edited, "steps": None, "seconds": None, chosen: length}


def _state_duty(profiling: Document, steps_per_call: int) -> None:
    """Say how many of the steps are recorded; a window covers whole calls."""
    if not profiling["enabled"]:
        st.caption("The profiler stays off: no trace, only per-step measurements.")
        return
    recorded = math.ceil(profiling["steps_per_window"] / steps_per_call) * steps_per_call
    duty = min(100.0, 100 * recorded / max(1, profiling["every_steps"]))
    whole = f" A window covers whole calls: {recorded} steps." if recorded > profiling["steps_per_window"] else ""
    st.caption(keep_together(f"The profiler is on during {format_percent(duty)} of the steps.{whole}"))


def _change(change: Callable[[Draft], Draft]) -> None:
    state.keep(change(state.draft()))
