"""The charts of a report as image files, one each, drawn by kaleido in Chromium where both are installed."""

import asyncio
import importlib.util
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Literal, TypeAlias

import plotly.graph_objects as go

from pipeline_lab.errors import PipelineLabError, Unavailable
from pipeline_lab.report.content import Content, Picture, Subject
from pipeline_lab.report.renderers.format import ReportFormat

Kind: TypeAlias = Literal["png", "svg"]

WIDTH = 900
SCALE = 2
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

MISSING = Unavailable(
    "Chart images need kaleido and Chromium here: `pip install 'kaleido>=1.5'`, and Chromium or Chrome from your system. "
    "The HTML report saves each chart as PNG or SVG without them."
)


class ImageError(PipelineLabError):
    """Charts cannot be drawn as images."""


def image_support() -> Unavailable | None:
    """Say what is missing to draw images here; None if nothing is."""
    has_browser = any(map(shutil.which, _BROWSERS))
    return None if importlib.util.find_spec("kaleido") is not None and has_browser else MISSING


def draw_images(figures: Mapping[str, "go.Figure"], kind: Kind) -> dict[str, bytes]:
    """Draw figures as image files, all in one Chromium: starting it takes longer than a chart.

    Raises:
        ImageError: What draws is not installed, or it failed.
    """
    missing = image_support()
    if missing is not None:
        raise ImageError(missing.reason)
    with ThreadPoolExecutor(1) as thread:  # with an event loop of its own: a notebook has one that is running
        return thread.submit(asyncio.run, _draw(figures, kind)).result()


async def _draw(figures: Mapping[str, "go.Figure"], kind: Kind) -> dict[str, bytes]:
    from kaleido import Kaleido
    from kaleido.errors import KaleidoError

    try:
        async with Kaleido(n=1, mathjax=False) as drawer:  # MathJax would come from a server, and no chart has formulas
            return {
                name: await drawer.calc_fig(
                    figure, {"format": kind, "width": WIDTH, "height": figure.layout.height, "scale": SCALE}
                )
                for name, figure in figures.items()
            }
    except (KaleidoError, RuntimeError, OSError, TimeoutError) as error:
        raise ImageError(
            f"Chromium did not draw the charts ({type(error).__name__}: {error}); see that `chromium --headless` starts here, "
            "or save them from the HTML report."
        ) from error


class ChartFiles(ReportFormat):
    """One image per chart, in light colors."""

    kind: ClassVar[Kind]
    media_type: ClassVar[str] = "application/zip"
    is_archive: ClassVar[bool] = True

    def missing(self) -> Unavailable | None:
        return image_support()

    def files(self, subject: Subject) -> dict[str, bytes]:
        figures = figures_of(subject.content())
        if not figures:
            raise ImageError(f"{subject.slug} has no chart to draw: nothing that charts show was measured.")
        return {f"{name}.{self.kind}": image for name, image in draw_images(figures, self.kind).items()}


class PngCharts(ChartFiles):
    name: ClassVar[str] = "png"
    title: ClassVar[str] = "PNG charts"
    suffix: ClassVar[str] = ".png.zip"
    kind: ClassVar[Kind] = "png"


class SvgCharts(ChartFiles):
    name: ClassVar[str] = "svg"
    title: ClassVar[str] = "SVG charts"
    suffix: ClassVar[str] = ".svg.zip"
    kind: ClassVar[Kind] = "svg"


def figures_of(content: Content) -> dict[str, go.Figure]:
    """Return every chart of a report that can be drawn, in light colors, by its name."""
    pictures = [block for section in content.sections for block in section.blocks if isinstance(block, Picture)]
    drawings = {picture.name: picture.draw("light") for picture in pictures}
    return {name: drawing for name, drawing in drawings.items() if isinstance(drawing, go.Figure)}
