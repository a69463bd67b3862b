"""Where a draft comes from: a preset, an earlier run's options, or a link that contains edited options."""

import base64
import binascii
import json
import zlib
from typing import Any

import streamlit as st

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.saved_presets import find_any_preset, preset_groups
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.search_result import read_tuning
from pipeline_lab.ui.serving import access
from pipeline_lab.ui.shared import cache, links, state

MAX_BYTES = 200_000
"""Options are a few thousand bytes; a link that decompresses to more is refused."""
DAMAGED = "The link's options cannot be read; copy the whole link again, or start from a preset."


def pack(document: dict[str, Any]) -> str:
    """Return a document as letters, digits, ``-`` and ``_``."""
    text = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")


def unpack(word: str) -> dict[str, Any]:
    """Return the document that :func:`pack` was given.

    Raises:
        OptionsError: The word is damaged, or contains something else.
    """
    try:
        packed = base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True)
        unfolding = zlib.decompressobj()
        text = unfolding.decompress(packed, MAX_BYTES)
        if not unfolding.eof:
            raise OptionsError(DAMAGED)
        document = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise OptionsError(DAMAGED) from None
    if not isinstance(document, dict):
        raise OptionsError(DAMAGED)
    return document


PRESET_PARAMETER, OPTIONS_PARAMETER = "preset", "options"
"""``preset=NAME`` is short for ``from=preset:NAME``."""


def load(store: RunStore) -> None:
    """Start the draft from the link, unless it was started from there already.

    Raises:
        OptionsError, StoreError: There is no such preset or run, the run was not launched by us, or the link is damaged.
    """
    origin, preset, word = (
        st.query_params.get(name, "") for name in (links.FROM_PARAMETER, PRESET_PARAMETER, OPTIONS_PARAMETER)
    )
    if preset and not origin:
        origin = f"preset:{preset}"
    if word and word != state.linked():
        state.start(access.check_brought(read_options(unpack(word))), origin or "link:")
        state.remember_linked(word)
    elif origin and origin != state.draft_origin():
        state.start(read_origin(origin, store), origin)


def update_link(options: RunOptions) -> None:
    """Make the page's link reproduce the form; it contains the options where their origin's name is not enough."""
    draft, document = state.draft(), options.model_dump(mode="json")
    is_named = draft.origin.startswith(("preset:", "run:")) and not state.linked()
    is_short = (is_named and document == draft.start) or access.runs_code(options)
    word = "" if is_short else pack(document)
    state.remember_linked(word)
    if word:
        st.query_params[OPTIONS_PARAMETER] = word
    else:
        st.query_params.pop(OPTIONS_PARAMETER, None)


def offer_presets(store: RunStore) -> dict[str, str]:
    """Return the presets' names with topic and question."""
    return {
        preset.name: f"{group.title} · {preset.name} · {preset.headline}"
        for group in preset_groups(store)
        for preset in group.presets
    }


def choose_preset(key: str) -> None:
    """Start over from the preset that the widget of that key shows (a callback)."""
    if name := state.widget_value(key):
        start_over(find_any_preset(cache.store(), name).options, f"preset:{name}")


def start_over(options: RunOptions, origin: str) -> None:
    """Replace the draft and its part of the link (for use in callbacks)."""
    state.start(options, origin)
    state.remember_linked("")
    st.query_params.from_dict({links.FROM_PARAMETER: origin})


def describe(origin: str) -> str:
    """Say where a draft comes from."""
    kind, _, name = origin.partition(":")
    return {"run": f"options of run {name}", "link": "options of a link"}.get(kind, name)


def read_origin(origin: str, store: RunStore) -> RunOptions:
    """Return the options of ``preset:NAME`` or ``run:ID``; those of a search are its winner's.

    Raises:
        OptionsError, StoreError: There is no such preset or run, or the run was not launched by us.
    """
    kind, _, name = origin.partition(":")
    if kind == "preset":
        return find_any_preset(store, name).options
    if kind != "run":
        raise OptionsError(f"{origin[:80]!r} cannot start a new run; use preset:NAME or run:ID.")
    record = store.read(name)
    if record.kind is RunKind.TUNE:
        return read_tuning(store.folder(name)).winner
    if record.kind is RunKind.LOG:
        raise StoreError(f"Run {name} was not launched by Pipeline Lab, so it has no options.")
    if record.kind is not RunKind.RUN:
        raise OptionsError(f"{name} is a {record.kind.value}; start from the options of a run in it, or from a preset.")
    return read_options(record.options or {})
