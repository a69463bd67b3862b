"""Rows that can be clicked as a whole: the bar of a stage that took little is a pixel wide, and nobody hits it."""

import plotly.graph_objects as go

from pipeline_lab.figures.places import stage_at

INVISIBLE = "rgba(0,0,0,0)"


def add_row_targets(figure: go.Figure) -> None:
    """Fill what the bar of every stage leaves of its row with an invisible one that says and leads to the same.

    For pages that can be clicked; a chart whose marks are no stages stays as it is.
    """
    for bars in figure.data:
        if bars.type == "bar" and bars.ids and stage_at(bars.ids[0]) is not None:
            end = figure.layout.xaxis.range[1]
            figure.add_bar(
                y=bars.y,
                ids=bars.ids,
                base=end,
                x=[length - end for length in bars.x],  # from the right, so that what it says stands at the bar's end
                orientation="h",
                offset=-0.5,  # given, it leaves the width of the other bars alone
                width=1,
                marker={"color": INVISIBLE, "line": {"width": 0}},
                unselected={"marker": {"opacity": 1}},
                hovertext=bars.hovertext,
                hovertemplate=bars.hovertemplate,
                hoverlabel={"bgcolor": bars.marker.color},
                showlegend=False,
            )
