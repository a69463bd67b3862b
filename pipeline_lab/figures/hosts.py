"""Several hosts side by side: whose own work is slow, and who waits for it."""

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.analysis.stragglers import Hosts
from pipeline_lab.figures.aggregate import column
from pipeline_lab.figures.theme import Mode, add_note, colour, new_figure
from pipeline_lab.units import NS_PER_MS

MAX_HOSTS = 32


def hosts_side_by_side(hosts: Hosts, mode: Mode = "light") -> go.Figure:
    """Draw the median step of each host, divided into input wait, other time of its own, and collectives."""
    table = hosts.table
    order = np.argsort(-column(table, "held_up_ns"), kind="stable")[:MAX_HOSTS]
    figure = new_figure("Step of each host", mode, "Median step (ms)", "", height=150 + 30 * max(2, len(order)))
    wait = column(table, "input_wait_ns", NS_PER_MS)[order]
    parts = (
        ("input wait", wait, "input_wait"),
        ("other time of its own", np.maximum(column(table, "own_ns", NS_PER_MS)[order] - wait, 0), "busy"),
        ("collectives: waiting for others", column(table, "collective_ns", NS_PER_MS)[order], "collective"),
    )
    names = [str(table.column("host")[int(row)]) for row in order]
    last = [f"{table.column('last_in')[int(row)]} of {hosts.common_steps}" for row in order]
    for name, value, category in parts:
        figure.add_bar(
            y=names,
            x=value,
            orientation="h",
            name=name,
            customdata=last,
            marker={"color": colour(category, mode)},
            hovertemplate="%{y}: %{x:.3g} ms " + name + "<br>comes last in %{customdata} steps<extra></extra>",
        )
    figure.update_layout(barmode="stack", dragmode=False)
    figure.update_yaxes(autorange="reversed", showgrid=False, type="category")
    straggler = hosts.straggler
    add_note(figure, f"{straggler} holds the others back." if straggler else "No host holds the others back.")
    if table.num_rows > MAX_HOSTS:
        add_note(figure, f"The {MAX_HOSTS} of {table.num_rows} hosts that cost the others most.")
    return figure
