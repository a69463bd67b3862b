"""What can be chosen to compare, to race or to search from: runs, presets, and the form.

A choice is named ``preset:NAME``, ``run:ID``, or ``form`` for the options on the page *New run* in this session.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import streamlit as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.record import ListedRun, RunKind
from pipeline_lab.runs.saved_presets import all_presets, find_any_preset
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.shared import state
from pipeline_lab.ui.shared.text import escape, format_moment

FORM = "form"


def warn_of_unknown(named: Sequence[str], offered: Collection[str]) -> None:
    """Name the parts of a link that do not exist here."""
    if unknown := [arm for arm in named if arm and arm not in offered]:
        st.warning(escape(f"The link names items that do not exist: {', '.join(unknown)[:300]}."))


def offer_arms(store: RunStore) -> dict[str, str]:
    """Return everything that can race, with labels."""
    runs = {record.id: record for record in store.runs() if record.kind is RunKind.RUN}
    return {
        **{f"preset:{preset.name}": f"Preset {preset.name}" for preset in all_presets(store)},
        FORM: "The form of New run",
        **{f"run:{run_id}": label for run_id, label in labels_of(runs).items()},
    }


def read_arm(store: RunStore, arm: str) -> RunOptions:
    """Return the options that a choice stands for.

    Raises:
        OptionsError: There are none, or they are not valid.
        StoreError: A run is gone.
    """
    from pipeline_lab.comparison.racing import options_of_run

    kind, _, name = arm.partition(":")
    if arm == FORM:
        return read_options(state.draft().document)
    if kind == "preset":
        return find_any_preset(store, name).options
    if kind == "run":
        return options_of_run(store, name)
    raise OptionsError(f"{arm[:80]!r} cannot race; use preset:NAME, run:ID or form.")


def can_be_compared(record: ListedRun) -> bool:
    """Say whether a run can be compared: not a race, which has its own comparison, and not a run in progress."""
    return not record.status.state.is_live and not record.kind.holds_several


def labels_of(records: dict[str, ListedRun]) -> dict[str, str]:
    """Return name and time of each run, and the end of its id where others share them."""
    labels = {each.id: f"{each.name} · {format_moment(each.status.created_s)}" for each in records.values()}
    shared = Counter(labels.values())
    return {each: label if shared[label] == 1 else f"{label} · {each[-4:]}" for each, label in labels.items()}
