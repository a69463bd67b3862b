"""Every run in a table with what limits it: search, open, rename, tag, copy into the form, delete; several are compared."""

from datetime import datetime
from statistics import median
from urllib.parse import quote

import pyarrow as pa
import streamlit as st

from pipeline_lab.runs.record import ListedRun
from pipeline_lab.runs.store import RunStore, describe_unreadable
from pipeline_lab.ui.shared import cache, run_actions
from pipeline_lab.ui.shared.cache import summaries
from pipeline_lab.ui.shared.text import escape

COLUMNS = pa.schema(
    [
        ("Name", pa.string()),  # as a link
        ("State", pa.string()),
        ("Verdict", pa.string()),
        ("Preset", pa.string()),
        ("Step time", pa.float64()),  # ms
        ("Course", pa.list_(pa.float64())),  # ms
        ("Input wait", pa.float64()),  # percent of the step time
        ("Tags", pa.string()),  # separated by commas
        ("Created", pa.timestamp("s")),  # local time
    ]
)

COLUMN_CONFIG = {
    "Name": st.column_config.LinkColumn(width="medium", display_text="#(.*)$", help="Opens the run."),
    "Verdict": st.column_config.TextColumn(help="What limits the run, or how its race stands."),
    "Course": st.column_config.LineChartColumn("Step time", y_min=0, help="Over the run, without warm-up."),
    "Step time": st.column_config.NumberColumn("Median step (ms)", format="%.2f", help="Without warm-up."),
    "Input wait": st.column_config.NumberColumn(
        "Input wait (%)", format="%.1f", help="Share of step time spent waiting for input."
    ),
    "Created": st.column_config.DatetimeColumn(format="D MMM YYYY, HH:mm"),
}


NOT_THERE = "–"
TAGS_JOINT = ", "
_PLAIN = "/?&=+,;:@$!'()*~"
"""Characters that a browser does not decode again, and that do no harm behind the #."""


def find_runs(records: list[ListedRun], words: str) -> list[ListedRun]:
    """Return the runs whose name, id, state, preset or tags contain every word, ignoring case."""
    wanted = words.lower().split()
    return [record for record in records if all(word in _searchable(record) for word in wanted)]


def runs_table(store: RunStore, records: list[ListedRun]) -> pa.Table:
    """Return one row per run, :data:`COLUMNS`."""
    numbers = summaries([store.folder(record.id) for record in records])
    return pa.table(
        {
            "Name": [link_to(record) for record in records],
            "State": ["sample" if store.is_sample(record.id) else record.status.state.label for record in records],
            "Verdict": [one.verdict or NOT_THERE for one in numbers],
            "Preset": [preset_of(record) for record in records],
            "Step time": [one.step_ms for one in numbers],
            "Course": [one.course_ms or None for one in numbers],
            "Input wait": [one.wait_percent for one in numbers],
            "Tags": [TAGS_JOINT.join(record.tags) or NOT_THERE for record in records],
            "Created": [datetime.fromtimestamp(record.status.created_s) for record in records],
        },
        schema=COLUMNS,
    )


def link_to(record: ListedRun) -> str:
    """Return the address of a run's page, with its name behind the #, where the list finds what to show."""
    return f"run?run={record.id}#{quote(' '.join(record.name.split()), safe=_PLAIN)}"


def preset_of(record: ListedRun) -> str:
    """Return the name of the run's options (a preset's, if it came from one), or its kind for a race or search."""
    return record.kind.value if record.kind.holds_several else record.preset or NOT_THERE


def _searchable(record: ListedRun) -> str:
    return " ".join([record.name, record.id, record.status.state.label, preset_of(record), *record.tags]).lower()


GROUPINGS = {"preset": "Preset", "verdict": "Verdict", "tag": "Tags", "state": "State"}
"""What runs are grouped by, and the column that says it."""


def find_groups(table: pa.Table, by: str) -> dict[str, list[int]]:
    """Return the rows of each group, in the order of their first ones; a run of several tags is in several groups."""
    found: dict[str, list[int]] = {}
    for row, value in enumerate(table.column(GROUPINGS[by]).to_pylist()):
        for name in value.split(TAGS_JOINT) if by == "tag" else [value]:
            found.setdefault(name, []).append(row)
    return found


def groups_table(table: pa.Table, groups: dict[str, list[int]], by: str) -> pa.Table:
    """Return one row per group: how many runs, and the median and the least of their step times, ms."""
    steps = table.column("Step time").to_pylist()
    known = [[steps[row] for row in rows if steps[row] is not None] for rows in groups.values()]
    created = table.column("Created").to_pylist()
    return pa.table(
        {
            by.capitalize(): list(groups),
            "Runs": [len(rows) for rows in groups.values()],
            "Median of their steps (ms)": [median(each) if each else None for each in known],
            "Fastest (ms)": [min(each, default=None) for each in known],
            "Latest": pa.array([max(created[row] for row in rows) for rows in groups.values()], pa.timestamp("s")),
        }
    )


GROUP_CONFIG = {
    "Median of their steps (ms)": st.column_config.NumberColumn(format="%.2f"),
    "Fastest (ms)": st.column_config.NumberColumn(format="%.2f"),
    "Latest": COLUMN_CONFIG["Created"],
}


def choose_group(table: pa.Table, by: str) -> list[int]:
    """Show the groups; return the rows of those that are chosen, of all where none is."""
    groups = find_groups(table, by)
    chosen = st.dataframe(
        groups_table(table, groups, by),
        column_config=GROUP_CONFIG,
        hide_index=True,
        lazy=False,
        placeholder=NOT_THERE,
        on_select="rerun",
        selection_mode="multi-row",
        key=f"groups-{by}",
        alt=f"Runs by {by}",
    )
    names = list(groups)
    rows = {row for number in chosen.selection.rows if number < len(names) for row in groups[names[number]]}
    return sorted(rows) or list(range(table.num_rows))


def show_page() -> None:
    st.title("Which runs are there?", anchor=False)
    store = cache.store()
    with st.container(horizontal=True, vertical_alignment="center"):
        words = st.text_input(
            "Search",
            key="search",
            placeholder="name, state, preset or tag",
            bind="query-params",
            label_visibility="collapsed",
        )
        by = st.selectbox(
            "Group by",
            list(GROUPINGS),
            None,
            key="group",
            bind="query-params",
            placeholder="Group by …",
            label_visibility="collapsed",
            width=170,
        )
    readable, unreadable = store.survey()
    if unreadable:
        st.warning(escape(describe_unreadable(unreadable)))
    records = find_runs(readable, words or "")
    if not records:
        st.info("No run matches the search." if words else "There are no runs yet; launch one on the page New run.")
        st.stop()
    shown = records
    if len(records) > cache.FIRST_ROWS and not st.toggle(
        f"Show all {len(records):,} runs, not only the newest {cache.FIRST_ROWS}", key="all-runs"
    ):
        shown = records[: cache.FIRST_ROWS]
    with st.spinner("Reading the numbers of the runs"):  # once for each run
        table = runs_table(store, shown)
    if by:
        rows = choose_group(table, by)
        table, shown = table.take(rows), [shown[row] for row in rows]
    chosen = st.dataframe(
        table,
        column_config=COLUMN_CONFIG,
        hide_index=True,
        lazy=False,
        placeholder=NOT_THERE,
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs-{by}-{len(shown)}-{shown[0].id}"
        if by
        else "runs",  # rows that were chosen are others in another list
        alt="All runs with state, step time, input wait and tags",
    )
    selected = [shown[row] for row in chosen.selection.rows if row < len(shown)]
    if len(selected) > 1:
        run_actions.show_comparison(selected)
    elif selected:
        run_actions.show_actions(store, selected[0], can_open=True)
    else:
        own = sum(not store.is_sample(record.id) for record in records)
        others = len(records) - own
        samples = f", and {'1 sample' if others == 1 else f'{others} samples'}" if others else ""
        st.caption(
            f"{'1 run' if own == 1 else f'{own} runs'} in {escape(str(store.root))}{samples}. Choose one to open, tag or delete it, "
            "several to compare them."
        )


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
