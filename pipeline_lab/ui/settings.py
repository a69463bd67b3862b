"""What the app was started with, in words: where things lie, what is allowed, and how each is changed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st

from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import changes, own_code, security, server_paths, uploads
from pipeline_lab.units import format_bytes


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
    yield Setting("Made data and saved analyses of single files", cache, "PIPELINE_LAB_CACHE")
    yield Setting("Largest upload", format_bytes(uploads.limit_bytes()), "PIPELINE_LAB_UPLOAD_LIMIT_MB")
    yield Setting("Paths on this machine that may be opened", _paths(), "PIPELINE_LAB_PATHS, folders parted by colons")
    yield Setting(
        "Launching, opening, changing, deleting",
        "not allowed: only to look" if changes.problem() else "allowed",
        f"{changes.VARIABLE}=1 or 0; without it, as long as only this machine is answered",
    )
    code = "allowed" if own_code.is_allowed() else "not allowed"
    yield Setting(
        "Workloads that run your own Python code", code, f"`pipeline-lab app --allow-code`, or {own_code.VARIABLE}=1"
    )
    reach = (
        "this machine only" if server_paths.is_local() else f"other machines too ({st.get_option('server.address')})"
    )
    yield Setting(
        "Answers", reach, "`--server.address` of `streamlit run`; see the page on servers in the documentation"
    )
    yield Setting(
        "Answers to the names", ", ".join(security.allowed_hosts()), "PIPELINE_LAB_HOSTS, names parted by commas"
    )
    telemetry = "on" if st.get_option("browser.gatherUsageStats") else "off: nothing is sent anywhere"
    yield Setting("Telemetry", telemetry, "–")


def _paths() -> str:
    if problem := server_paths.problem():
        return problem
    named = os.environ.get("PIPELINE_LAB_PATHS")
    return "all that you may read" if named is None else named
