"""What results show of themselves in a notebook and in ``print``.

Results are made in rooms that know nothing of reports. They only say that they can be displayed; the façade, which is
above all rooms, says how (:func:`show_with`).
"""

from collections.abc import Callable
from typing import Any

Describe = Callable[[object], str]
DescribeRichly = Callable[[object], dict[str, str]]

_shown_by: list[tuple[Describe, DescribeRichly]] = []


def show_with(briefly: Describe, richly: DescribeRichly) -> None:
    """Say how results are shown from now on.

    Args:
        briefly: Returns the text that ``print`` shows.
        richly: Returns what a notebook shows, by media type.
    """
    _shown_by[:] = [(briefly, richly)]


class Displayed:
    """A result that notebooks show as the short form of its report, and ``print`` as some thirty lines of text."""

    def __repr__(self) -> str:
        return _shown_by[0][0](self) if _shown_by else object.__repr__(self)

    def _repr_mimebundle_(self, **_include_exclude: Any) -> dict[str, str]:
        return _shown_by[0][1](self) if _shown_by else {"text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return self._repr_mimebundle_()["text/html"]
