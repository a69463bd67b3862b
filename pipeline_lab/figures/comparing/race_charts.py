"""A race: each candidate's ratio with its interval, what a step of each arm consists of, and every round with the interval closing in."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from pipeline_lab.comparison.race_arms import name_arms
from pipeline_lab.comparison.race_result import Race
from pipeline_lab.errors import Unavailable
from pipeline_lab.figures.aggregate import FloatArray
from pipeline_lab.figures.comparing.comparison_charts import add_bars, add_intervals, mark_zero, rows_figure
from pipeline_lab.figures.comparing.overlaid_runs import CANDIDATES, short_labels
from pipeline_lab.figures.theme import THEMES, Mode, add_key, add_note, color, new_figure, say
from pipeline_lab.options.race_options import AnyRace
from pipeline_lab.runs.race_standings import Rounds, compared_ns, counted_ns
from pipeline_lab.runs.run_events import RaceEvent
from pipeline_lab.statistics.sequential import SequentialResult
from pipeline_lab.statistics.signed_ranks import hodges_lehmann
from pipeline_lab.units import duration_unit, format_duration, format_percent


def race_intervals(race: Race, mode: Mode = "light") -> go.Figure | Unavailable:
    """Draw each candidate's time, per step or per example, as a difference from the baseline's, with interval and margin."""
    labels = short_labels([candidate.name for candidate in race.candidates])
    found = [
        (label, candidate.standing.result)
        for label, candidate in zip(labels, race.candidates, strict=True)
        if candidate.standing.result is not None and _excludes_anything(candidate.standing.result)
    ]
    if not found:
        return Unavailable("The race ended before it could exclude anything; let it go on for more rounds.")
    figure = rows_figure(
        f"Time per {race.options.per} against the baseline", mode, "Difference (%; left is faster)", len(found)
    )
    percent, low, high = (
        np.array([100 * (getattr(result, name) - 1) for _, result in found]) for name in ("ratio", "low", "high")
    )
    add_intervals(figure, [label for label, _ in found], percent, low, high, mode)
    label, result = found[int(np.argmin(percent))]
    say(
        figure,
        f"{label} takes {_change(result.ratio)} time per {race.options.per}, {_between(result.low, result.high)}.",
    )
    _shade_margin(figure, race.options.margin_percent, mode)
    mark_zero(figure, mode)
    alpha = found[0][1].alpha
    add_note(figure, f"Bars: {100 * (1 - alpha):.3g} % interval, valid at whatever moment the race stopped.")
    if len(found) < len(labels):
        add_note(figure, f"{len(labels) - len(found)} are not known well enough to draw.")
    return figure


def race_steps(race: Race, mode: Mode = "light") -> go.Figure:
    """Draw the mean step of each arm, or the mean example where their batches differ: its wait for the batch, and the rest."""
    labels, per = short_labels([arm.name for arm in race.arms]), race.options.per
    figure = rows_figure(f"What {'an example' if per == 'example' else 'a step'} takes", mode, "", len(labels))
    total_ns = compared_ns(np.array([arm.step_ns for arm in race.arms]), race.options)
    scale, unit = duration_unit(total_ns.max())
    figure.update_xaxes(title_text=f"Mean time per {per} ({unit})")
    fast, slow = int(np.argmin(total_ns)), int(np.argmax(total_ns))
    say(
        figure,
        f"The mean {per} takes {format_duration(total_ns[slow])} in {labels[slow]}, "
        f"{format_duration(total_ns[fast])} in {labels[fast]}.",
    )
    if race.options.examples_per_step is not None:
        sizes = ", ".join(
            f"{count} in {label}" for count, label in zip(race.options.examples_per_step, labels, strict=True)
        )
        add_note(figure, f"Examples per step: {sizes}.")
    add_note(
        figure,
        "Means of the whole race; the answer compares the arms round by round, so its difference is not exactly that of these means.",
    )
    figure.update_layout(uniformtext={"minsize": 10, "mode": "hide"})
    waits_ns = [arm.wait_ns for arm in race.arms if not isinstance(arm.wait_ns, Unavailable)]
    if len(waits_ns) < len(labels):
        add_bars(figure, labels, total_ns / scale, per, "busy", mode, unit)
    else:
        wait_ns = compared_ns(np.array(waits_ns), race.options)
        add_bars(figure, labels, wait_ns / scale, "waiting for the batch", "input_wait", mode, unit)
        add_bars(figure, labels, (total_ns - wait_ns) / scale, "training", "busy", mode, unit)
    _name_lengths(figure, unit)
    return figure


def _name_lengths(figure: go.Figure, unit: str) -> None:
    """Write the time of each part into its bar, where it has room."""
    figure.update_traces(
        texttemplate=f"<b>%{{x:.3g}} {unit}</b>",
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        selector={"type": "bar"},
    )


def _excludes_anything(result: SequentialResult) -> bool:
    return result.low > 0 and not math.isinf(result.high)


def _shade_margin(figure: go.Figure, margin_percent: float, mode: Mode) -> None:
    """Put a gray band behind the differences that are too small to matter."""
    low = 100 * (1 / (1 + margin_percent / 100) - 1)
    figure.add_vrect(x0=low, x1=margin_percent, fillcolor=THEMES[mode].shade, line_width=0, layer="below")
    add_key(figure, "too small to matter", mode)


SPREAD = 0.18
"""Candidates stand this far apart at the same look, in pairs, so that their bars do not hide each other."""


MOST_TICKS = 12
MOST_ESTIMATES = 60
"""Rounds after which the estimate is drawn; each costs the square of the rounds before."""


def closing_intervals(
    rounds: Rounds, events: Sequence[RaceEvent], options: AnyRace, mode: Mode = "light"
) -> go.Figure | Unavailable:
    """Draw each candidate's difference from the baseline: a dot per round, the estimate after them, and the interval after every look.

    Args:
        rounds: The complete rounds so far.
        events: Of the race; they hold what was known at each look.
        options: Of the race.
        mode: Light or dark.
    """
    kept = rounds.kept(options.max_extra_load_percent)
    times_ns = counted_ns(rounds, options)
    if not len(times_ns):
        return Unavailable("The first round is not complete yet; it shows here as soon as it is.")
    figure = new_figure("How the intervals close in", mode, "Round", f"Time per {options.per} (%; below 0 is faster)")
    labels = short_labels(list(name_arms(options)[1:]))
    looks = {arm: _looks(events, arm) for arm in range(1, options.arm_count)}
    say(figure, _so_far(labels, times_ns, looks, options))
    for number, (label, arm) in enumerate(zip(labels, looks, strict=True)):
        category, offset = CANDIDATES[number % len(CANDIDATES)], (number - (len(labels) - 1) / 2) * SPREAD
        percent = 100 * (times_ns[:, arm] / times_ns[:, 0] - 1)
        _add_rounds(figure, label, percent, category, offset, mode)
        shown = _rounds_of_estimates(len(times_ns))
        _add_estimates(figure, label, shown, _percent_so_far(times_ns, arm), category, offset, mode)
        if looks[arm]:
            _add_looks(figure, label, looks[arm], category, offset, mode)
    margin = options.margin_percent
    low = 100 * (1 / (1 + margin / 100) - 1)
    figure.add_hrect(y0=low, y1=margin, fillcolor=THEMES[mode].shade, line_width=0, layer="below")
    figure.add_hline(y=0, line={"color": THEMES[mode].muted, "width": 1})
    add_key(figure, "too small to matter", mode)
    figure.update_yaxes(rangemode="normal", zeroline=False)
    figure.update_xaxes(range=[0.5, len(times_ns) + 0.5], tick0=0, dtick=-(-len(times_ns) // MOST_TICKS))
    if left_out := len(kept) - int(kept.sum()):
        add_note(figure, f"{left_out} disturbed {'round is' if left_out == 1 else 'rounds are'} left out.")
    return figure


def _so_far(labels: list[str], times_ns: FloatArray, looks: dict[int, list[dict[str, Any]]], options: AnyRace) -> str:
    """Say where the candidate stands that is furthest from the baseline."""
    so_far = {arm: 100 * math.expm1(hodges_lehmann(np.log(times_ns[:, arm] / times_ns[:, 0]))) for arm in looks}
    arm = max(so_far, key=lambda one: abs(so_far[one]))
    ratio, between = 1 + so_far[arm] / 100, ""
    if looks[arm]:
        last = looks[arm][-1]
        ratio = last["ratio"]
        between = f", {_between(last['low'], last['high'])}"
    rounds = f"{len(times_ns)} {'round' if len(times_ns) == 1 else 'rounds'}"
    early = "" if looks[arm] else "; the interval needs a few more rounds"
    return f"After {rounds} {labels[arm - 1]} takes {_change(ratio)} time per {options.per}{between}{early}."


def _percent_so_far(times_ns: FloatArray, arm: int) -> FloatArray:
    """Return the estimated difference from the baseline after each round, percent: the one that intervals are made around."""
    logs = np.log(times_ns[:, arm] / times_ns[:, 0])
    return np.array([100 * math.expm1(hodges_lehmann(logs[:count])) for count in _rounds_of_estimates(len(logs))])


def _rounds_of_estimates(count: int) -> list[int]:
    """Return the rounds after which the estimate is drawn: each of the first, and some of many."""
    return sorted(
        {*range(1, min(count, MOST_ESTIMATES) + 1), *np.linspace(1, count, MOST_ESTIMATES).astype(int).tolist()}
    )


def _change(ratio: float) -> str:
    return f"{format_percent(100 * abs(ratio - 1))} {'less' if ratio < 1 else 'more'}"


def _between(low: float, high: float) -> str:
    """Write an interval of a ratio."""
    return f"interval from {_change(low)} to {_change(high)}"


def _looks(events: Sequence[RaceEvent], arm: int) -> list[dict[str, Any]]:
    """Return a candidate's standings that exclude something on both sides, one per look, in their order."""
    found = {}
    for event in events:
        for standing in event.standings:
            if standing["arm"] == arm and None not in (standing["ratio"], standing["low"], standing["high"]):
                found[standing["pairs"]] = standing
    return list(found.values())


def _add_rounds(figure: go.Figure, label: str, percent: FloatArray, category: str, offset: float, mode: Mode) -> None:
    """Draw what each round measured by itself."""
    figure.add_scatter(
        x=np.arange(1, len(percent) + 1) + offset,
        y=percent,
        name=f"{label}, one round",
        mode="markers",
        marker={"size": 7, "symbol": "circle-open", "color": color(category, mode), "line": {"width": 1.5}},
        hovertemplate="%{y:.3g} % in this round<extra>%{fullData.name}</extra>",
    )


def _add_estimates(
    figure: go.Figure, label: str, rounds: list[int], percent: FloatArray, category: str, offset: float, mode: Mode
) -> None:
    """Draw what all rounds so far say together."""
    figure.add_scatter(
        x=np.array(rounds) + offset,
        y=percent,
        name=f"{label}, estimate so far",
        mode="lines",
        line={"width": 1.5, "dash": "dot", "color": color(category, mode)},
        hovertemplate="%{y:.3g} % by the rounds so far<extra>%{fullData.name}</extra>",
    )


def _add_looks(
    figure: go.Figure, label: str, looks: list[dict[str, Any]], category: str, offset: float, mode: Mode
) -> None:
    percent, low, high = ([100 * (look[name] - 1) for look in looks] for name in ("ratio", "low", "high"))
    figure.add_scatter(
        x=[look["pairs"] + offset for look in looks],
        y=percent,
        name=f"{label}, with its interval",
        mode="markers",
        marker={"size": 8, "color": color(category, mode)},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [end - middle for middle, end in zip(percent, high, strict=True)],
            "arrayminus": [middle - start for middle, start in zip(percent, low, strict=True)],
            "color": color(category, mode),
            "thickness": 2,
            "width": 5,
        },
        customdata=[
            [f"{start:.3g} % to {end:.3g} %", look["pairs"]] for look, start, end in zip(looks, low, high, strict=True)
        ],
        hovertemplate="%{y:.3g} %, interval %{customdata[0]}, after %{customdata[1]} pairs<extra>%{fullData.name}</extra>",
        showlegend=True,
    )
