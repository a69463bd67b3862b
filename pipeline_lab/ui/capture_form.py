"""Record a job that runs already, by the address of TensorFlow's profiler server in it; its run's page opens at once.

The app connects to that address itself. So the form is there only where the app answers this machine alone, as are
paths on it.
"""

import streamlit as st

from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.launch.remote_capture import RemoteCapture, launch_capture
from pipeline_lab.runs.store import RunStore
from pipeline_lab.ui import links, server_paths
from pipeline_lab.ui.text import escape, sentence

_HELP = (
    "The job must have called tf.profiler.experimental.server.start(6009), with a port of its own, and must see the run "
    "store under the same path as the app."
)
_DEFAULT = RemoteCapture("localhost:6009")


def show(store: RunStore) -> None:
    """Ask for an address and the windows, and start to record."""
    if not server_paths.is_local():
        return
    with st.expander("Or record a job that is running"), st.form("capture", border=False):
        st.caption(escape(_HELP))
        address = st.text_input("Address", key="capture-address", placeholder="HOST:PORT, such as localhost:6009")
        with st.grid("auto", min_column_width=150, gap="small"):
            length_s = st.number_input("Length of a window (s)", value=_DEFAULT.length_s, key="capture-seconds")
            windows = st.number_input("Windows", value=_DEFAULT.windows, step=1, key="capture-windows")
            every_s = st.number_input("One window every … (s)", value=_DEFAULT.every_s, key="capture-every")
        if not st.form_submit_button("Record", key="capture-start"):
            return
        try:
            folder = launch_capture(store, RemoteCapture(address.strip(), length_s, every_s, int(windows)))
        except PipelineLabError as error:
            st.error(escape(sentence(str(error))))
            return
    links.open_run(folder.id)
