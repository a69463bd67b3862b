"""The drop zone for logs: sends files to the routes of :mod:`pipeline_lab.ui.serving.uploads`, with progress."""

from pathlib import Path

import streamlit as st

from pipeline_lab.data_classes import dataclass
from pipeline_lab.runs.opened_logs import PART_OF_A_LOG
from pipeline_lab.ui.serving import uploads
from pipeline_lab.units import format_bytes

_HERE = Path(__file__)
_zone = st.components.v2.component(
    "pipeline_lab_upload",
    html=_HERE.with_name("upload.html").read_text(encoding="utf-8"),
    css=_HERE.with_name("upload.css").read_text(encoding="utf-8"),
    js=_HERE.with_name("upload.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True)
class Uploaded:
    """An upload that was just completed; ``left_out`` names files of its folders that were not sent."""

    id: str
    left_out: tuple[str, ...] = ()


def show(opened: str) -> Uploaded | None:
    """Show the zone; return the upload that was just completed, if there is one.

    Args:
        opened: The run that the page shows already, so that the zone no longer mentions it.
    """
    limit = uploads.limit_bytes()
    result = _zone(
        key="upload-zone",
        data={
            "opened": opened,
            "part_of_a_log": PART_OF_A_LOG.pattern,
            "url": uploads.URL,
            "limit_bytes": limit,
            "limit_text": format_bytes(limit),
            "too_large": uploads.too_large(),
        },
        on_uploaded_change=lambda: None,
    )
    found = result.uploaded
    return Uploaded(str(found["id"]), tuple(map(str, found["left_out"]))) if found else None
