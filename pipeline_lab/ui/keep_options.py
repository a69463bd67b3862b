"""Keep what the form holds: as a preset of one's own, as a JSON file; and take it from one."""

import streamlit as st

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.saved_presets import BUNDLED, remove_preset, save_preset, saved_presets
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import own_code, state
from pipeline_lab.ui.origin import start_anew
from pipeline_lab.ui.text import escape

_NAME, _FILE = "preset-name", "options-file"


def show(store: RunStore, origin: str, options: RunOptions | None) -> None:
    """Offer to keep the options that the form holds (None while they are not ready), and to open others."""
    with st.popover("Keep or share"):
        st.caption("The link of this page carries all that the form holds; copy it to share it.")
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
        st.text_input("Keep as a preset named", key=_NAME, placeholder="my-images", max_chars=64)
        st.button("Keep", key="save-preset", disabled=options is None, on_click=_keep, args=(store, options))
        own = origin.removeprefix("preset:")
        if own not in BUNDLED and own in {preset.name for preset in saved_presets(store)}:
            st.button(f"Forget preset {escape(own)}", key="forget-preset", on_click=_forget, args=(store, own))
        st.file_uploader("Open options from a JSON file", type="json", key=_FILE, on_change=_open)
    if problem := state.take_problem():
        st.error(escape(problem))


def _keep(store: RunStore, options: RunOptions) -> None:
    name = str(state.widget_value(_NAME) or "").strip()
    try:
        save_preset(store, name, options)
        start_anew(options.model_copy(update={"name": name}), f"preset:{name}")
    except (OptionsError, StoreError) as error:
        state.set_problem(str(error))


def _forget(store: RunStore, name: str) -> None:
    try:
        remove_preset(store, name)
    except OptionsError as error:
        state.set_problem(str(error))


def _open() -> None:
    file = state.widget_value(_FILE)
    if file is None:
        return
    try:
        start_anew(own_code.check_brought(read_options(file.getvalue())), f"file:{file.name[:200]}")
    except OptionsError as error:
        state.set_problem(f"{file.name[:80]} holds no options that can be used. {error}")
