"""Assemble a pipeline and launch it; the source on the right is the file that will run."""

import streamlit as st

from pipeline_lab.errors import OptionsError, Unavailable
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch.launchable import check_launchable
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.saved_presets import BUNDLED, remove_preset, save_preset, saved_presets
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.new_run import advice, form, origin
from pipeline_lab.ui.new_run.origin import start_over
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import cache, links, state
from pipeline_lab.ui.shared.choices import FORM
from pipeline_lab.ui.shared.text import escape, prose, sentence

_NAME, _FILE = "preset-name", "options-file"


def show_keeping(store: RunStore, origin: str, options: RunOptions | None) -> None:
    """Offer to save the form's options (None while they are invalid) and to open others."""
    with st.popover("Save or share"):
        st.caption("This page's link contains the whole form; copy it to share it.")
        st.download_button(
            "Options as JSON",
            "" if options is None else options.to_json(),
            f"{options.name or 'options'}.json" if options else "options.json",
            "application/json",
            disabled=options is None,
            on_click="ignore",
            key="save-json",
            help="For `pipeline-lab run --options FILE`.",
        )
        st.text_input("Save as a preset named", key=_NAME, placeholder="my-images", max_chars=64)
        st.button("Keep", key="save-preset", disabled=options is None, on_click=_keep, args=(store, options))
        own = origin.removeprefix("preset:")
        if own not in BUNDLED and own in {preset.name for preset in saved_presets(store)}:
            st.button(f"Delete preset {escape(own)}", key="forget-preset", on_click=_forget, args=(store, own))
        st.file_uploader("Open options from a JSON file", type="json", key=_FILE, on_change=_open)
    if problem := state.take_problem():
        st.error(prose(problem))


def _keep(store: RunStore, options: RunOptions) -> None:
    name = str(state.widget_value(_NAME) or "").strip()
    with state.keep_problem():
        save_preset(store, name, options)
        start_over(options.model_copy(update={"name": name}), f"preset:{name}")


def _forget(store: RunStore, name: str) -> None:
    with state.keep_problem():
        remove_preset(store, name)


def _open() -> None:
    file = state.widget_value(_FILE)
    if file is None:
        return
    try:
        start_over(access.check_brought(read_options(file.getvalue())), f"file:{file.name[:200]}")
    except OptionsError as error:
        state.set_problem(f"{file.name[:80]} contains no usable options. {error}")


def show_page() -> None:
    st.title("Which pipeline do you want to try?", anchor=False)
    st.caption("Assemble the input pipeline stage by stage, choose what to train, and launch.")
    origin.load(cache.store())

    draft = state.draft()
    launch_place = st.container(key="launch-place")  # on a phone the form is long, so the buttons come first
    left, right = st.columns([6, 5], gap="large")
    with left:
        offered = origin.offer_presets(cache.store())
        names = list(offered)
        current = draft.origin.removeprefix("preset:")
        st.selectbox(
            "Start from a preset",
            names,
            names.index(current) if current in names else None,
            format_func=lambda name: offered.get(name, name),
            key=f"preset{draft.generation}",
            placeholder=origin.describe(draft.origin),
            on_change=origin.choose_preset,
            args=(f"preset{draft.generation}",),
        )
        draft = form.edit_draft(draft)
        state.keep(draft)

    problem, options = "", None
    try:
        chosen = access.check_launch(read_options(draft.document))
        check_launchable(chosen)
        options = chosen
        state.remember_launchable(options)
        origin.update_link(options)
    except OptionsError as error:
        problem = str(error)

    with launch_place:
        if problem:
            st.error(f"Not ready to launch. {prose(sentence(problem))}")
        with st.container(horizontal=True):
            if st.button("Launch", type="primary", disabled=options is None, width="stretch", key="launch") and options:
                links.open_run(launch(cache.store(), options).id)
            if st.button("Race against …", disabled=options is None, key="race-form"):
                links.open_race([FORM])
            if st.button(
                "Tune", disabled=options is None, key="tune-form", help="Search for a faster pipeline from here."
            ):
                links.open_tune(FORM)
            show_keeping(cache.store(), draft.origin, options)

    with right:
        shown = options or state.launchable()
        if shown is not None:
            if options is None:
                st.caption("Advice and source for the last valid form:")
            sources = advice.find_sources(cache.store(), shown)
            predicted = None if isinstance(sources.forecast, Unavailable) else sources.forecast
            if predicted is not None:
                advice.show_forecast(cache.store(), predicted, shown)
            advice.show_source(sources)
            advice.show_advice(cache.store(), shown, predicted)
            st.markdown("**pipeline.py** — the file that will run")
            st.code(render_source(shown), language="python", height=640)


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
