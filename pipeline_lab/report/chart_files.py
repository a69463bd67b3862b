"""The charts of a report as image files, one each."""

from typing import ClassVar

import plotly.graph_objects as go

from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Content, Picture
from pipeline_lab.report.format import ReportFormat
from pipeline_lab.report.images import ImageError, Kind, draw_images, image_support
from pipeline_lab.report.subject import Subject


class ChartFiles(ReportFormat):
    """One image per chart, in light colours."""

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
    """Return every chart of a report that can be drawn, in light colours, by its name."""
    pictures = [block for section in content.sections for block in section.blocks if isinstance(block, Picture)]
    drawings = {picture.name: picture.draw("light") for picture in pictures}
    return {name: drawing for name, drawing in drawings.items() if isinstance(drawing, go.Figure)}
