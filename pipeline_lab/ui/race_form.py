"""What races against what, and for how long: the fields of the page *Race*.

An arm is named ``preset:NAME``, ``run:ID``, or ``form`` for what the page *New run* shows in this session.
"""

from collections.abc import Collection, Sequence

import streamlit as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.saved_presets import all_presets, find_any_preset
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import compare_form, leave, links, state
from pipeline_lab.ui.draft import Document
from pipeline_lab.ui.fields import edit_fields
from pipeline_lab.ui.text import escape

FORM = "form"
MAX_ARMS = 8
_BUDGET = ("pairs", "block_steps", "max_seconds", "margin_percent", "fail_if_slower_percent")
_FINE = ("warmup_seconds", "max_extra_load_percent", "alpha", "seed", "timeout_s")


def show_arms(store: RunStore) -> list[str]:
    """Let the user choose the arms, the baseline first; the page's link suggests them."""
    offered = offer_arms(store)
    named = st.query_params.get(links.ARMS_PARAMETER, "")
    warn_of_unknown(named.split(","), offered)
    return st.multiselect(
        "Arms, the baseline first",
        list(offered),
        [arm for arm in dict.fromkeys(named.split(",")) if arm in offered][:MAX_ARMS],
        format_func=lambda arm: offered.get(arm, arm),
        max_selections=MAX_ARMS,
        key=f"race-arms-{named[:300]}",
        placeholder="presets, runs, or what New run shows",
        help="Each takes its turn in one process. The others are compared with the first.",
    )


def show_budget() -> Document:
    """Show when the race may end and what matters, and return it as options hold it."""
    defaults = {name: field.default for name, field in RaceOptions.model_fields.items() if name in (*_BUDGET, *_FINE)}
    values = edit_fields(RaceOptions, defaults, "race", skip=_all_but(_BUDGET))
    with st.expander("More settings"):
        values = edit_fields(RaceOptions, values, "race", skip=_all_but(_FINE))
    return {"name": st.text_input("Name", "", max_chars=200, key="race.name", placeholder="the arms' names"), **values}


def warn_of_unknown(named: Sequence[str], offered: Collection[str]) -> None:
    """Say which words of a link stand for nothing that is here."""
    if unknown := [arm for arm in named if arm and arm not in offered]:
        st.warning(escape(f"The link names what is not here: {', '.join(unknown)[:300]}."))


def offer_arms(store: RunStore) -> dict[str, str]:
    """Return what can race, with words for each."""
    runs = {record.id: record for record in store.runs() if record.kind is RunKind.RUN}
    return {
        **{f"preset:{preset.name}": f"Preset {preset.name}" for preset in all_presets(store)},
        FORM: "What New run shows now",
        **{f"run:{run_id}": label for run_id, label in compare_form.labels_of(runs).items()},
    }


def read_race(store: RunStore, arms: Sequence[str], settings: Document) -> RaceOptions:
    """Return the options of the race that was chosen.

    Raises:
        OptionsError: The arms cannot race, or a number is not allowed; the text says which.
        StoreError: A run is gone.
    """
    from pipeline_lab.comparison.racing import choose_race

    return choose_race([leave.check(read_arm(store, arm)) for arm in arms], **settings)


def read_arm(store: RunStore, arm: str) -> RunOptions:
    """Return the options that a word stands for.

    Raises:
        OptionsError: It stands for none, or they are not valid.
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
    raise OptionsError(f"{arm[:80]!r} cannot race; write preset:NAME, run:ID or form.")


def _all_but(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in RaceOptions.model_fields if name not in names)
