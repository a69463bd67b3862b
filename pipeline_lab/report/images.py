"""Charts as PNG and SVG files, drawn by kaleido where it is installed."""

import importlib.util
import shutil
from typing import TYPE_CHECKING, Literal

from pipeline_lab.errors import Unavailable

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 900
SCALE = 2
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

MISSING = Unavailable(
    "Chart images need kaleido and Chromium here: `pip install kaleido`, and Chromium or Chrome from your system. "
    "The HTML report and the app save PNG and SVG without them."
)


def image_support() -> Unavailable | None:
    """Say what is missing to draw images here; None if nothing is."""
    has_browser = any(map(shutil.which, _BROWSERS))
    return None if importlib.util.find_spec("kaleido") is not None and has_browser else MISSING


def draw_image(figure: "go.Figure", kind: Literal["png", "svg"] = "png") -> bytes | Unavailable:
    """Draw a figure as an image file, or say what is missing."""
    missing = image_support()
    if missing is not None:
        return missing
    height = figure.layout.height
    return bytes(figure.to_image(format=kind, width=WIDTH, height=height, scale=SCALE))
