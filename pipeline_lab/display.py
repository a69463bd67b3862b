"""What results show of themselves in a notebook and in print.

Results are made in rooms that know nothing of HTML. They only say that they can be displayed; the report room, which
is above them, is loaded when somebody looks.
"""

from importlib import import_module
from typing import Any


class Displayed:
    """A result that notebooks show as the short form of its report, and ``print`` as some thirty lines of text."""

    def __repr__(self) -> str:
        text: str = import_module("pipeline_lab.report.notebook").describe_briefly(self)
        return text

    def _repr_mimebundle_(self, **_include_exclude: Any) -> dict[str, str]:
        bundle: dict[str, str] = import_module("pipeline_lab.report.notebook").describe(self)
        return bundle

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]
