"""Open a log of any job from an upload or a path, or record a running job; then its run's page opens."""

import contextlib
import shutil
from pathlib import Path

import streamlit as st

from pipeline_lab.errors import StoreError
from pipeline_lab.report.content import Table
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.own_job_runs import RemoteCapture, launch_capture
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore
from pipeline_lab.trace import log_parts
from pipeline_lab.ui.serving import access, uploads
from pipeline_lab.ui.shared import analyses, cache, contents, links, run_actions, state
from pipeline_lab.ui.shared.text import escape
from pipeline_lab.ui.upload import upload_zone
from pipeline_lab.ui.upload.parts_of_logs import parts_in_question
from pipeline_lab.units import format_bytes, keep_together


def under_way(store: RunStore) -> RunFolder | None:
    """Return the run that the link names; None without one, or if it is gone."""
    run_id = st.query_params.get(links.OPENED_PARAMETER, "")
    try:
        return store.folder(run_id) if run_id else None
    except StoreError:
        del st.query_params[links.OPENED_PARAMETER]
        return None


def open_upload(store: RunStore, upload: upload_zone.Uploaded) -> None:
    """Continue with a complete upload."""
    folder = uploads.finish(store, upload.id)
    if names := [*upload.left_out, *log_parts.others(folder.opened)]:
        opened_logs.note_left_out(folder, names)
    _go_on(folder)


def open_path(store: RunStore, path: str) -> None:
    """Continue with a log on this machine.

    Copying one from another disk takes a while. The cancel button, like any other click, reruns the page; this ends the
    copy at its next block, and the copied part is deleted.
    """
    shown = st.empty()
    with shown.container(border=True, key="copying"):
        bar = st.progress(0.0, "Adding the log to the store")
        st.button("Cancel", key="cancel-copying")

    def copied(done: int, total: int) -> None:
        bar.progress(done / total, keep_together(f"Copying the log: {format_bytes(done)} of {format_bytes(total)}"))

    try:
        folder = bring(store, path, copied)
    finally:
        shown.empty()
    _go_on(folder)


def _go_on(folder: RunFolder) -> None:
    st.query_params[links.OPENED_PARAMETER] = folder.id
    st.rerun()


def _go_on_with(store: RunStore, folder: RunFolder) -> None:
    """Ask how many jobs a log holds where its parts disagree, else open it once it is analyzed."""
    if parts := parts_in_question(folder):
        ask_how_many_jobs(store, folder, parts)
    elif analyses.wait_for(folder, is_sample=False) is not None:
        links.open_run(folder.id)


def ask_how_many_jobs(store: RunStore, folder: RunFolder, parts: tuple[log_parts.LogPart, ...]) -> None:
    """Ask whether parts from different hosts or frameworks belong to one job."""
    count = len(parts)
    st.markdown(f"The {count} parts come from different hosts or frameworks. **Are they one job, or {count} jobs?**")
    columns = ("Part", "Host", "Framework", "Size")
    rows = [
        (one.name, ", ".join(one.hosts) or "–", ", ".join(one.frameworks) or "–", format_bytes(one.size_bytes))
        for one in parts
    ]
    st.markdown(contents.write_table(Table("Parts", columns, tuple(rows), numeric=(3,))))
    with st.container(horizontal=True):
        if st.button("One job", key="one-job", help="All parts are analyzed together, as hosts of one job."):
            with state.show_problem():
                store.check_unlocked()
                opened_logs.note_one_job(folder)
                st.rerun()
        if st.button(f"{count} jobs", key="several-jobs", help="Each part becomes a run of its own."):
            opened_logs.split(store, folder, [(one.name, one.paths) for one in parts])
            st.switch_page(links.RUNS.path)


def bring(store: RunStore, text: str, copied: opened_logs.Copied) -> RunFolder:
    """Make a run of a trace file, a log directory, an archive or a run folder; a run of the store is itself.

    Args:
        store: Where the run goes.
        text: The path as the user wrote it.
        copied: As for :func:`~pipeline_lab.runs.opened_logs.bring`.

    Raises:
        StoreError: It does not exist, may not be opened, or cannot be brought into the store.
    """
    path = _resolve(text)
    if path.parent == store.root.resolve() and RunFolder(path).record.is_file():
        return store.folder(path.name)
    arrival = opened_logs.new_arrival(store)
    try:
        opened_logs.bring(path, arrival, copied)
        return opened_logs.adopt(store, arrival, path.name)
    finally:
        shutil.rmtree(arrival, ignore_errors=True)


def _resolve(text: str) -> Path:
    """Return the real path, links followed, if it may be opened."""
    if reason := access.why_no_paths():
        raise StoreError(reason)
    try:
        path = Path(text.strip()).expanduser().resolve()
    except (RuntimeError, ValueError, OSError):
        raise StoreError("That is not a path; enter one such as /home/me/logs/plugins/profile/2026_01_02.") from None
    access.check_path(path)
    with contextlib.suppress(OSError):
        if path.exists():
            return path
    raise StoreError(f"{path} does not exist on the machine that runs the app.")


_CAPTURE_HELP = (
    "The job must have called tf.profiler.experimental.server.start(6009) with a free port, and must reach the run "
    "store under the same path as the app."
)
_DEFAULT_CAPTURE = RemoteCapture("localhost:6009")


def show_capture_form(store: RunStore) -> None:
    """Ask for an address and the windows, and start recording."""
    if not access.is_local():
        return
    with st.expander("Or record a job that is running"), st.form("capture", border=False):
        st.caption(escape(_CAPTURE_HELP))
        address = st.text_input("Address", key="capture-address", placeholder="HOST:PORT, such as localhost:6009")
        with st.grid("auto", min_column_width=150, gap="small"):
            length_s = st.number_input("Length of a window (s)", value=_DEFAULT_CAPTURE.length_s, key="capture-seconds")
            windows = st.number_input("Windows", value=_DEFAULT_CAPTURE.windows, step=1, key="capture-windows")
            every_s = st.number_input("One window every … (s)", value=_DEFAULT_CAPTURE.every_s, key="capture-every")
        if not st.form_submit_button("Record", key="capture-start"):
            return
        with state.show_problem():
            chosen = RemoteCapture(address.strip(), length_s, every_s, int(windows))
            links.open_run(launch_capture(store, chosen).id)


def show_page() -> None:
    st.title("What is in a log?", anchor=False)
    st.caption("A profile of any TensorFlow, Keras or JAX job becomes a run with a verdict and charts.")
    store = cache.store()

    folder = under_way(store)
    if folder is not None:
        with st.container(border=True, key="opening"):
            st.markdown(f"**{escape(store.read(folder.id).name)}**")
            _go_on_with(store, folder)
            if st.button("Discard", key="discard"):
                run_actions.discard(store, folder)

    if upload := upload_zone.show(folder.id if folder else ""):
        open_upload(store, upload)

    if reason := access.why_no_paths():
        st.caption(escape(reason))
    else:
        with st.form("by-path", border=False):
            path = st.text_input(
                "Or a path on this machine",
                key="path",
                placeholder="a file, a log directory, an archive or a run folder",
            )
            is_asked = st.form_submit_button("Open", key="open-path")
        if is_asked and path.strip():
            open_path(store, path)

    show_capture_form(store)


if __name__ == "__main__":  # Streamlit runs this file as a script
    show_page()
