"""What the terms mean, and how the app was started."""

import os
import re
from collections.abc import Container, Iterator
from pathlib import Path

import streamlit as st

from pipeline_lab.data_classes import dataclass
from pipeline_lab.report.content import Table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui.serving import access, uploads
from pipeline_lab.ui.shared import cache, links
from pipeline_lab.ui.shared.contents import write_table
from pipeline_lab.ui.shared.glossary import GLOSSARY
from pipeline_lab.ui.shared.text import escape
from pipeline_lab.units import format_bytes

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs"
"""In a checkout; an installed package has none."""
_LINK = re.compile(r"\]\(([\w-]+)\.md(#[\w-]*)?\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)(\{[^}]*\})?")


@dataclass(frozen=True)
class Setting:
    """One setting, as the page lists it."""

    name: str
    value: str
    change: str


def settings(store: RunStore) -> Iterator[Setting]:
    """Return every setting of the running app."""
    yield Setting("Run store", str(store.root), "`pipeline-lab app --store DIR`, or PIPELINE_LAB_STORE")
    yield Setting("Bundled samples", "listed, read-only" if store.samples else "not installed", "–")
    cache = os.environ.get("PIPELINE_LAB_CACHE", "the user's cache folder")
    yield Setting("Cache of generated data and analyses", cache, "PIPELINE_LAB_CACHE")
    yield Setting("Largest upload", format_bytes(uploads.limit_bytes()), "PIPELINE_LAB_UPLOAD_LIMIT_MB")
    yield Setting("Paths on this machine that can be opened", _paths(), "PIPELINE_LAB_PATHS (separated by colons)")
    yield Setting(
        "Launching, opening, changing, deleting",
        "not allowed (view only)" if access.why_read_only() else "allowed",
        f"{access.CHANGES_VARIABLE}=1 or 0; by default allowed while the app serves only this machine",
    )
    code = "allowed" if access.may_run_code() else "not allowed"
    yield Setting(
        "Workloads that run custom Python code", code, f"`pipeline-lab app --allow-code`, or {access.CODE_VARIABLE}=1"
    )
    reach = "this machine only" if access.is_local() else f"other machines as well ({st.get_option('server.address')})"
    yield Setting("Serves", reach, "`--server.address` of `streamlit run`; see the documentation on servers")
    yield Setting("Host names", ", ".join(access.allowed_hosts()), "PIPELINE_LAB_HOSTS (comma-separated)")
    telemetry = "on" if st.get_option("browser.gatherUsageStats") else "off"
    yield Setting("Telemetry", telemetry, "–")


def _paths() -> str:
    if problem := access.why_no_paths():
        return problem
    named = os.environ.get("PIPELINE_LAB_PATHS")
    return "everything you can read" if named is None else named


def show_start() -> None:
    """Show an example to look at, the first commands to type, and where the documentation is."""
    store = cache.store()
    sample = next(iter(store.bundled()), None)
    with st.container(border=True, key="start"):
        st.markdown(
            "**How to read a run.** The sentence says what limits the job; the strip below it shows what a step consists of: "
            "orange is waiting for input, blue is work. *Try first* says what to change, and a race shows whether it helped."
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            if sample is not None and st.button("Open an example", key="open-example", type="primary"):
                links.open_run(sample.id)
        st.page_link(
            links.HELP.path,
            label="Documentation",
            icon=":material/menu_book:",
            query_params={"help-tab": "Documentation"},
        )
        st.code("pipeline-lab watch train.py\npipeline-lab analyze latest\npipeline-lab fix train.py", language="shell")


def show_documentation() -> None:
    """Show a page of the documentation; the link names it."""
    pages = {path.stem: path for path in sorted(DOCUMENTATION.glob("*.md"))}
    if not pages:
        st.info("The documentation is in the folder docs of the source code; this installation has none.")
        return
    names = ["index", *(name for name in pages if name != "index")]
    texts = {name: pages[name].read_text(encoding="utf-8") for name in names}
    chosen = st.selectbox(
        "Page",
        names,
        format_func=lambda name: texts[name].partition("\n")[0].lstrip("# "),
        key="page",
        bind="query-params",
        width=460,
    )
    st.markdown(_linked(texts[chosen], pages))


def _linked(text: str, pages: Container[str]) -> str:
    """Return a page's text whose links to other pages lead here, without its pictures."""

    def lead(found: re.Match[str]) -> str:
        return f"](/help?help-tab=Documentation&page={found[1]})" if found[1] in pages else found[0]

    return _LINK.sub(lead, _PICTURE.sub("", text))


def show_page() -> None:
    st.title("What do the terms mean, and how is the app set up?", anchor=False)
    show_start()
    words, set_up, read = st.tabs(
        ["Terms", "Settings", "Documentation"], on_change="rerun", key="help-tab", bind="query-params"
    )
    with read:
        if read.open:
            show_documentation()
    with words:
        wanted = st.text_input("Find a term", key="word", placeholder="stall, race, coverage …").strip().lower()
        found = {word: text for word, text in GLOSSARY.items() if wanted in f"{word} {text}".lower()}
        with st.grid(2, min_column_width=420):
            for word, text in found.items():
                st.markdown(f"**{escape(word)}**  \n{escape(text)}")
        if not found:
            st.info("No term matches; the documentation explains every number.")
    with set_up:
        st.caption("Settings are fixed when the app starts.")
        rows = tuple((each.name, each.value, each.change) for each in settings(cache.store()))
        st.markdown(write_table(Table("Settings", ("Setting", "Now", "Changed by"), rows)))


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
