"""The short form of a report for notebooks: the answer, its evidence, the numbers. No script, no style sheet."""

from pipeline_lab.report.content import Content, Section, Table, Text
from pipeline_lab.report.renderers.html import render_template
from pipeline_lab.report.renderers.markdown import write_markdown
from pipeline_lab.report.renderers.printed import write_short
from pipeline_lab.report.report_on import report_result


def describe(result: object) -> dict[str, str]:
    """Return what a notebook shows of a result, by media type.

    Raises:
        TypeError: The result is of a kind that has no report.
    """
    whole = report_result(result).content()
    content = _shorten(whole)
    return {
        "text/plain": write_short(whole),
        "text/markdown": write_markdown(content, {}),
        "text/html": render_template("notebook.html", content=content),
    }


def describe_briefly(result: object) -> str:
    """Return what ``print`` shows of a result.

    Raises:
        TypeError: The result is of a kind that has no report.
    """
    return write_short(report_result(result).content(), colored=True)


def _shorten(content: Content) -> Content:
    """Keep the answer and the tables that show at once."""
    sections = tuple(
        Section(section.title, tuple(block for block in section.blocks if isinstance(block, Table | Text)))
        for section in content.sections
        if section.in_short
    )
    return Content(content.title, (), content.answer, content.warnings, (), sections)
