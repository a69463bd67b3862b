"""The colors can be told apart, by color-blind eyes too."""

import itertools

import numpy as np
import pytest

from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.figures.theme import NOTE_WIDTH, THEMES, add_note, new_figure, notes_of, say, shade, take_heading

SIGHTS = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
"""What each kind of eye sees of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1)."""

LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(color: str) -> np.ndarray:
    channel = np.array([int(color[index : index + 2], 16) for index in (1, 3, 5)]) / 255
    return np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)


def distance(one: str, other: str, sight: str) -> float:
    seen = [OKLAB @ np.cbrt(LMS @ np.clip(SIGHTS[sight] @ linear(color), 0, 1)) for color in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def contrast(one: str, other: str) -> float:
    light = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) + 0.05 for color in (one, other))
    return light[1] / light[0]


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_causes_and_busy_look_different(mode, sight):
    colors = [THEMES[mode].categories[name] for name in ("busy", *GapCause)]
    closest = min(distance(one, other, sight) for one, other in itertools.combinations(colors, 2))
    assert closest > (0.055 if sight == "tritanopia" else 0.08)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_a_host_operation_is_no_input_wait(mode, sight):
    one, other = (THEMES[mode].categories[name] for name in (GapCause.HOST_OPERATION, GapCause.INPUT_WAIT))
    assert distance(one, other, sight) > 0.095
    assert contrast(one, other) > 1.5


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_marks_and_text_stand_out_from_the_background(mode):
    theme = THEMES[mode]
    measured = [name for name in theme.categories if name not in (GapCause.CAPTURE_GAP, "hidden_wait")]
    assert all(contrast(theme.categories[name], theme.paper) >= 3 for name in measured)
    assert contrast(theme.ink, theme.paper) >= 7
    assert contrast(theme.muted, theme.paper) >= 4.5


def test_every_cause_has_a_name_and_a_color():
    assert all(cause.label for cause in GapCause)
    assert all(set(GapCause) <= set(theme.categories) for theme in THEMES.values())


def test_notes_are_wrapped_and_kept():
    figure = new_figure("A", "light", "x (s)", "y (ms)")
    add_note(figure, "First sentence.")
    add_note(figure, "A second sentence that is so long that it does not fit on one line of a phone.")
    assert notes_of(figure)[0] == "First sentence."
    lines = figure.layout.title.subtitle.text.split("<br>")
    assert len(lines) == 2
    assert max(map(len, lines)) <= NOTE_WIDTH


def test_many_bands_are_thinned():
    figure = new_figure("A", "light", "x (s)", "y (ms)")
    shade(figure, "light", [(float(index), index + 0.5) for index in range(1000)], cap=100)
    assert len(figure.layout.shapes) == 100


def test_a_page_takes_the_heading_off_a_chart_whose_marks_keep_their_room() -> None:
    figure = new_figure("Step time", "light", "Step", "ms")
    room = figure.layout.height - 48
    say(figure, "A typical step takes 20 ms. " * 6)
    add_note(figure, "The accelerator is emulated.")
    title, caption, notes = take_heading(figure)
    assert (title, notes) == ("Step time", ["The accelerator is emulated."])
    assert caption.startswith("A typical step")
    assert not figure.layout.title.text
    assert not figure.layout.title.subtitle.text
    assert figure.layout.height - figure.layout.margin.t == room
