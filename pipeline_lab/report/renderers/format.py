"""What every report format can do."""

import io
import zipfile
from abc import ABC, abstractmethod
from typing import ClassVar

from pipeline_lab.errors import Unavailable
from pipeline_lab.report.content import Subject

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class ReportFormat(ABC):
    """One way to write a report.

    Attributes:
        name: What the command line calls it.
        title: What the app calls it.
        suffix: Ending of its file.
        media_type: Of its file.
        is_archive: It consists of several files, which travel as a zip or a folder.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]
    media_type: ClassVar[str]
    is_archive: ClassVar[bool] = False

    @abstractmethod
    def files(self, subject: Subject) -> dict[str, bytes]:
        """Return the report's files by relative name, the main one first."""

    def missing(self) -> Unavailable | None:
        """Say what this machine lacks to write it; None if nothing."""
        return None

    def render(self, subject: Subject) -> bytes:
        """Return the report as one file: itself, or a zip of its files."""
        files = self.files(subject)
        return pack(files) if self.is_archive else next(iter(files.values()))

    def file_name(self, subject: Subject) -> str:
        """Return what to call that file."""
        return f"{subject.slug}{self.suffix}"


def pack(files: dict[str, bytes]) -> bytes:
    """Return files as a zip; equal files give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
