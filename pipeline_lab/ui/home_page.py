"""The first page: one picture of what this does, ways in, the latest runs, presets to launch."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from pipeline_lab.figures.comparing.chart_lists import COMPARED_STEPS
from pipeline_lab.figures.theme import color
from pipeline_lab.options.presets import Preset, PresetGroup
from pipeline_lab.runs.launch.launcher import launch
from pipeline_lab.runs.record import ListedRun, RunKind
from pipeline_lab.runs.saved_presets import preset_groups
from pipeline_lab.runs.store import RunStore, describe_unreadable
from pipeline_lab.tuning.search_result import read_trials
from pipeline_lab.ui.shared import cache, contents, links, reports, run_actions, state
from pipeline_lab.ui.shared.cache import summary
from pipeline_lab.ui.shared.text import escape, format_moment, sentence
from pipeline_lab.units import NS_PER_MS, format_duration

LATEST, SEARCHES = 4, 8
"""Runs that are shown, and the latest searches whose measurements are not."""


def show_run(store: RunStore, record: ListedRun) -> None:
    """Show a run with what limits it, its step time and a button that opens it."""
    numbers = summary(store.folder(record.id))
    with st.container(border=True, height="stretch", key=f"card-{record.id}"):
        st.markdown(f"**{escape(record.name)}** {run_actions.state_badge(store, record)}")
        if numbers.step_ms is not None:
            step = f"median step {format_duration(numbers.step_ms * NS_PER_MS)}"
            st.markdown(escape(sentence(", ".join(filter(None, (numbers.verdict, step))))))
        else:
            outcome = numbers.verdict and sentence(": ".join(filter(None, (numbers.verdict, numbers.gain))))
            st.markdown(escape(outcome or record.status.reason) or _WITHOUT_STEPS[record.kind])
        st.caption(format_moment(record.status.created_s))
        if st.button("Open", key=f"open-{record.id}", help=f"Open the run {escape(record.name)}"):
            links.open_run(record.id)


_WITHOUT_STEPS = {
    RunKind.LOG: "Recorded elsewhere; open it for its verdict.",
    RunKind.RUN: "No measured steps yet.",
    RunKind.RACE: "A race between pipelines.",
    RunKind.TUNE: "A search for a faster pipeline.",
}


def show_ways_in() -> None:
    """Show where to start with a custom pipeline, a log or a training script."""
    with st.grid(3, min_column_width=300):
        with st.container(border=True, height="stretch"):
            st.markdown("**Assemble a pipeline**  \nStage by stage, with advice and a prediction before it runs.")
            st.space("stretch")
            if st.button("New run", key="way-new"):
                st.switch_page(links.NEW_RUN.path)
        with st.container(border=True, height="stretch"):
            st.markdown("**Open a log**  \nA profile of any TensorFlow, Keras or JAX job.")
            st.space("stretch")
            if st.button("Open a log", key="way-log"):
                st.switch_page(links.UPLOAD.path)
        with st.container(border=True, height="stretch"):
            st.markdown("**Watch your own training**  \nThe script stays unchanged; its run appears here.")
            st.space("stretch")
            st.markdown("`pipeline-lab watch train.py`")


def show_preset(store: RunStore, preset: Preset) -> None:
    """Show a preset's question with buttons that launch it or open it in the form."""
    question, _, setting = preset.question.partition("? ")
    with st.container(border=True, height="stretch", key=f"preset-{preset.name}"):
        st.markdown(f"**{preset.name}**  \n{question}?")
        if setting:
            st.markdown(f":small[{setting}]")
        st.space("stretch")
        with st.container(horizontal=True):
            if st.button("Launch", key=f"launch-{preset.name}", help=f"Launch {preset.name} now"):
                links.open_run(launch(store, preset.options).id)
            if st.button("Edit first", key=f"edit-{preset.name}", help=f"Open {preset.name} in the form"):
                links.open_new_run(preset.options, f"preset:{preset.name}")


def show_before_and_after(store: RunStore, samples: list[ListedRun]) -> Callable[[], None]:
    """Show what the product does in one picture, of what a step of each sample consists.

    Returns:
        A function that draws the picture. Call it last: drawing blocks the browser for half a second.
    """
    folders = [store.folder(record.id) for record in samples]
    if len(folders) < 2 or reports.find_unanalyzed(store, folders) is not None:
        return lambda: None
    with st.container(border=True, key="before-and-after"):
        st.markdown("**One job, before and after its input pipeline was changed**")
        place = st.container(key="picture")
        with st.container(horizontal=True):
            if st.button("See what was wrong", key="see-sample", type="primary"):
                links.open_run(samples[0].id)
            if st.button("Compare the two", key="compare-samples"):
                links.open_comparison([record.id for record in samples])

    def draw() -> None:
        picture, _ = contents.take_picture(reports.open_content(store, folders).sections, COMPARED_STEPS)
        if picture is not None:
            with place:
                contents.show_picture(picture)

    return draw


def show_presets(store: RunStore) -> None:
    """Show the presets behind one search field: those that hold every word, or the groups, one of them open."""
    words = (
        (st.text_input("Find a preset", key="find-preset", placeholder="shuffle, cache, audio …") or "").lower().split()
    )
    groups = preset_groups(store)
    if words:
        found = [preset for group in groups for preset in group.presets if _holds(group, preset, words)]
        if not found:
            st.info("No preset matches; clear the field to see all of them.")
        _show_grid(store, found)
        return
    with st.grid("auto", min_column_width=220):
        for group in groups:
            with st.container(border=True, height="stretch", gap="small"):
                st.html(_picture(group))
                st.markdown(f"**{group.title}**  \n{group.question}")
                st.space("stretch")
                label = f"{len(group.presets)} {'preset' if len(group.presets) == 1 else 'presets'}"
                what = f"Show the presets about {group.title.lower()}"
                st.button(
                    label, key=f"group-{group.title}", help=what, on_click=state.choose, args=(_GROUP, group.title)
                )
    for group in groups:
        if state.widget_value(_GROUP) == group.title:
            st.subheader(group.title, anchor=False)
            _show_grid(store, group.presets)


_GROUP = "preset-group"
_BAR = "<i style='flex:0 0 {percent:g}%;background:light-dark({light},{dark});border-right:1px solid transparent;background-clip:padding-box'></i>"
_ROW = "<div style='display:flex;height:{height}px;margin-bottom:4px'>{bars}</div>"
PICTURE_PX = 56


def _picture(group: PresetGroup) -> str:
    """Draw what a group is about, in the colors of the charts; words beside it say the same."""
    height = PICTURE_PX // max(2, len(group.picture)) - 4
    rows = (
        _ROW.format(height=height, bars="".join(_bar(category, percent) for category, percent in row))
        for row in group.picture
    )
    return f"<div aria-hidden='true' style='height:{PICTURE_PX}px'>{''.join(rows)}</div>"


def _bar(category: str, percent: float) -> str:
    return _BAR.format(percent=percent, light=color(category, "light"), dark=color(category, "dark"))


def _show_grid(store: RunStore, presets: Sequence[Preset]) -> None:
    with st.grid("auto", min_column_width=300):
        for preset in presets:
            show_preset(store, preset)


def _holds(group: PresetGroup, preset: Preset, words: Sequence[str]) -> bool:
    text = f"{group.title} {preset.name} {preset.question}".lower()
    return all(word in text for word in words)


def _latest(store: RunStore, own: Sequence[ListedRun]) -> list[ListedRun]:
    """Return the latest runs that were launched by themselves: what a search measured is on its page."""
    searches = [store.folder(record.id) for record in own if record.kind is RunKind.TUNE][:SEARCHES]
    measured = {Path(trial.run).name for folder in searches for trial in read_trials(folder)}
    return [record for record in own if record.id not in measured][:LATEST]


def show_page() -> None:
    st.title("Why is your accelerator waiting?", anchor=False)
    st.markdown("See **what the device waits for, what to change, and whether the change worked**.")
    store = cache.store()
    runs, unreadable = store.survey()
    if unreadable:
        st.warning(escape(describe_unreadable(unreadable)))
    samples = [record for record in runs if store.is_sample(record.id)]
    draw_picture = show_before_and_after(store, samples)

    st.header("Analyze your own job", anchor=False)
    show_ways_in()

    recent = _latest(store, [record for record in runs if not store.is_sample(record.id)])
    for title, shown in (("Your latest runs", recent), ("Recorded samples", samples)):
        if shown:
            st.header(title, anchor=False)
            with st.grid(2, min_column_width=300):
                for record in shown:
                    show_run(store, record)

    st.header("Launch a preset", anchor=False)
    show_presets(store)
    draw_picture()


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
