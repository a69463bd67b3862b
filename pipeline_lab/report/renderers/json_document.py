"""The report for machines: the JSON document that ``analyze --json`` and ``compare --json`` print."""

import json
from typing import ClassVar

from pipeline_lab.report.content import Subject
from pipeline_lab.report.renderers.format import ReportFormat


class JsonReport(ReportFormat):
    """One JSON object."""

    name: ClassVar[str] = "json"
    title: ClassVar[str] = "JSON"
    suffix: ClassVar[str] = ".json"
    media_type: ClassVar[str] = "application/json"

    def files(self, subject: Subject) -> dict[str, bytes]:
        text = json.dumps(subject.document(), indent=2, ensure_ascii=False, allow_nan=False)
        # A lone surrogate has no UTF-8 form; its JSON escape means the same.
        return {self.file_name(subject): f"{text}\n".encode("utf-8", "backslashreplace")}
