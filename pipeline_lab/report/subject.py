"""What can be reported on: each subject gives the same three things to every format."""

from typing import Any, Protocol

import pyarrow as pa

from pipeline_lab.report.content import Content


class Subject(Protocol):
    """A run, a comparison, a race."""

    @property
    def slug(self) -> str:
        """A file name's worth of its title."""
        ...

    def content(self) -> Content:
        """Return what formats for people show."""
        ...

    def document(self) -> dict[str, Any]:
        """Return its JSON document."""
        ...

    def tables(self) -> dict[str, pa.Table]:
        """Return its tables by name, whole."""
        ...
