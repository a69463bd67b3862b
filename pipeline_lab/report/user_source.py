"""The user's own lines behind a stage or a verdict, as blocks."""

from pathlib import Path

from pipeline_lab.report.content import CodeBlock
from pipeline_lab.runs.run_documents import WrittenCall
from pipeline_lab.runs.store import RunFolder
from pipeline_lab.runs.user_sources import excerpts


def source_blocks(path: str, calls: tuple[WrittenCall, ...]) -> tuple[CodeBlock, ...]:
    """Return the source around each call with its line marked.

    Args:
        path: Of the run.
        calls: What was written.
    """
    return tuple(CodeBlock(each.title, each.text, "text") for each in excerpts(RunFolder(Path(path)), calls))
