"""Reports of a run, a race, a search, or several runs: as pages show them and as downloads.

The app parses no trace: for a run whose diagnosis is missing, its page waits. A download is byte for byte what
``pipeline-lab report`` writes; its link names the runs and the format.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.errors import OptionsError, PipelineLabError, StoreError, TraceIncompleteError
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.ui.shared.text import escape

if TYPE_CHECKING:
    from pipeline_lab.comparison.race_result import Race
    from pipeline_lab.comparison.recorded_runs import RecordedRun
    from pipeline_lab.report.content import Content
    from pipeline_lab.report.report_on import Report
    from pipeline_lab.tuning.opened_search import AnyTuning
    from pipeline_lab.ui.shared.cache import Fingerprint

Key: TypeAlias = "tuple[Path, bool, Fingerprint, str]"
"""A run's folder, whether it is a sample, and what changes when its record or its measurements do."""

MAX_RUNS = 20


def folders_of(store: RunStore, run_ids: str) -> list[RunFolder]:
    """Return the folders of ``a,b,c``, the baseline first; a run that is named twice counts once.

    Raises:
        OptionsError: No run is named, or too many are.
        StoreError: There is no such run.
    """
    ids = list(dict.fromkeys(part for part in run_ids.split(",") if part))
    if not 0 < len(ids) <= MAX_RUNS:
        raise OptionsError(f"Name 1 to {MAX_RUNS} runs, comma-separated; got {len(ids)}.")
    return [store.folder(run_id) for run_id in ids]


def find_unanalyzed(store: RunStore, folders: Sequence[RunFolder]) -> RunFolder | None:
    """Return the first run whose diagnosis is missing or stale, or None if all are there."""
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis

    for folder in folders:
        if (key := _key(store, folder)) in _analyzed or read_record(folder).kind.holds_several:
            continue
        place = SavedDiagnosis(folder.path)
        is_there = place.load_latest() is not None if store.is_sample(folder.id) else place.is_fresh
        if not is_there:
            return folder
        _analyzed.add(key)
    return None


_analyzed: set[Key] = set()
"""Runs that were found analyzed, so that their diagnoses need not be read again to know it."""


def open_report(store: RunStore, folders: Sequence[RunFolder]) -> "Report":
    """Return the report of one run or race, or of a baseline and its candidates; it is kept until an input changes.

    Raises:
        TraceIncompleteError: A run is still running, is not analyzed yet, or a race has no complete round.
        ComparisonError: A race is among several.
    """
    return _report(tuple(_key(store, folder) for folder in folders))


def open_content(store: RunStore, folders: Sequence[RunFolder]) -> "Content":
    """Return what :func:`open_report` holds, with the same pictures until an input changes."""
    return _content(tuple(_key(store, folder) for folder in folders))


@lru_cache(maxsize=4)
def _content(keys: tuple[Key, ...]) -> "Content":
    return _report(keys).content()


@lru_cache(maxsize=4)
def _report(keys: tuple[Key, ...]) -> "Report":
    from pipeline_lab.report.report_on import report_on

    return report_on([_open(RunFolder(path), is_sample=is_sample) for path, is_sample, *_ in keys])


def _key(store: RunStore, folder: RunFolder) -> Key:
    from pipeline_lab.analysis.diagnosis.saved import fingerprint_inputs
    from pipeline_lab.ui.shared.cache import fingerprint_file

    blocks = fingerprint_file(folder.blocks)
    steps = fingerprint_file(folder.history)
    measured = f"{blocks}{steps}" if any(blocks + steps) else fingerprint_inputs(folder.path)
    return (folder.path, store.is_sample(folder.id), fingerprint_file(folder.record), measured)


def _open(folder: RunFolder, *, is_sample: bool) -> "RecordedRun | Race | AnyTuning":
    from pipeline_lab.analysis.diagnosis.saved import SavedDiagnosis
    from pipeline_lab.comparison.race_result import read_race
    from pipeline_lab.comparison.recorded_runs import describe_run
    from pipeline_lab.tuning.opened_search import read_search

    record = read_record(folder)
    if record.status.state.is_live:
        raise TraceIncompleteError(f"{record.name} is still running; compare and export it when it has ended.")
    if record.kind is RunKind.RACE:
        return read_race(folder)
    if record.kind is RunKind.TUNE:
        return read_search(folder)
    place = SavedDiagnosis(folder.path)
    diagnosis = place.load_latest() if is_sample else place.load()
    if diagnosis is None:
        raise TraceIncompleteError(f"{record.name} is not analyzed yet; open its page to analyze it.")
    # A sample was diagnosed elsewhere, so its path differs.
    here = replace(diagnosis.source, path=str(folder.path))
    return describe_run(folder, replace(diagnosis, source=here))


PREFIX = "/api/lab/reports"


def report_url(run_ids: list[str], format_name: str) -> str:
    """Return the link to the report of one run or race, or of runs with the baseline first."""
    return f"{PREFIX}/{format_name}?runs={quote(','.join(run_ids))}"


def send_report(request: Request) -> Response:
    """Serve a report; a format of several files comes as a zip."""
    from pipeline_lab.report.formats import find_format
    from pipeline_lab.report.renderers.format import pack

    try:
        report_format = find_format(request.path_params["format"][:80])
        store = open_store()
        report = open_report(store, folders_of(store, request.query_params.get("runs", "")))
        files = report_format.files(report)
    except PipelineLabError as error:
        status = 404 if isinstance(error, OptionsError | StoreError) else 409
        return JSONResponse({"error": str(error)}, status_code=status)
    name, media_type = report_format.file_name(report), report_format.media_type
    if len(files) == 1 and not report_format.is_archive:
        return _download(next(iter(files.values())), name, media_type)
    return _download(pack(files), name.removesuffix(".zip") + ".zip", "application/zip")


def _download(content: bytes, name: str, media_type: str) -> Response:
    """Answer with a file to save; a report never opens as a page of this app."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Encoding": "identity",
        "Cache-Control": "no-store",
    }
    return Response(content, headers=headers, media_type=media_type)


ROUTES = [Route(f"{PREFIX}/{{format}}", send_report)]


_MEANINGS = {
    "html": "One file that opens offline, with interactive charts.",
    "markdown": "For a pull request; a zip with images where this machine can render them.",
    "json": "All numbers, for programs.",
    "csv": "The tables, for spreadsheets, as a zip.",
    "parquet": "The tables with their types, as a zip.",
    "png": "Every chart as an image, as a zip.",
    "svg": "Every chart as a vector image, as a zip.",
}


def show_exports(run_ids: list[str]) -> None:
    """Show one button per format.

    Args:
        run_ids: One run or race, or runs with the baseline first.
    """
    from pipeline_lab.report.formats import FORMATS

    st.subheader("Export", anchor=False)
    with st.container(horizontal=True, key="export"):
        for each in FORMATS:
            missing = each.missing()
            meaning = _MEANINGS.get(each.name) if missing is None else missing.reason
            st.link_button(
                escape(each.title), report_url(run_ids, each.name), help=meaning, disabled=missing is not None
            )
    command = f"pipeline-lab report {' '.join(run_ids)} --format html --output report.html"
    st.caption(f"The same from the command line: `{command}`")
