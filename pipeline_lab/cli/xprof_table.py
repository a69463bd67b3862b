"""Our numbers beside XProf's for a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck
from pipeline_lab.units import NS_PER_S, format_bytes, format_duration


def xprof_table(check: CrossCheck) -> RenderableType:
    """Return one row per quantity; what agrees needs no reason."""
    table = Table("", "Pipeline Lab", f"XProf {check.version}".strip(), "why they differ", title_justify="left")
    for row in check.differences:
        cells = (row.quantity, row.ours, row.xprof, " ".join(row.reasons) or "they agree")
        table.add_row(*map(Text, cells))
    return Group(Text(""), table, *_cost(check))


def _cost(check: CrossCheck) -> list[Text]:
    if check.seconds is None or check.peak_rss_bytes is None:
        return []
    took = format_duration(check.seconds * NS_PER_S)
    return [Text(f"XProf took {took} and {format_bytes(check.peak_rss_bytes)} of memory.", style="dim")]
