"""The catalog of presets: named option sets that reproduce questions from the field. They are data, in presets.toml."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, did_you_mean
from pipeline_lab.options.run_options import RunOptions, read_options

PRESETS_FILE = Path(__file__).with_name("presets.toml")


@dataclass(frozen=True)
class Preset:
    """A named, ready-to-run option set.

    Attributes:
        name: What the command line and the app call it.
        question: What it shows, as one sentence for people.
        options: The options themselves.
    """

    name: str
    question: str
    options: RunOptions

    @property
    def headline(self) -> str:
        """The question alone, without what is set to show the answer."""
        head, mark, _ = self.question.partition("? ")
        return head + mark.rstrip()


@dataclass(frozen=True)
class PresetGroup:
    """Presets about one matter.

    Attributes:
        title: What they are about, in a word or two.
        question: What they answer together, as a sentence.
        presets: In the order in which lists show them.
        picture: What they are about as rows of bars: what a bar stands for, as charts color it, and its length in percent.
    """

    title: str
    question: str
    presets: tuple[Preset, ...]
    picture: tuple[tuple[tuple[str, float], ...], ...] = ()


def _read_preset(written: dict[str, Any]) -> Preset:
    document = {part: value for part, value in written.items() if part not in ("question", "stages")}
    document["pipeline"] = {"stages": written["stages"], **written.get("pipeline", {})}
    return Preset(written["name"], written["question"], read_options(document))


def _read_groups(path: Path) -> tuple[PresetGroup, ...]:
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["groups"]
    return tuple(
        PresetGroup(
            group["title"],
            group["question"],
            tuple(map(_read_preset, group["presets"])),
            tuple(tuple((kind, percent) for kind, percent in row) for row in group["picture"]),
        )
        for group in groups
    )


PRESET_GROUPS = _read_groups(PRESETS_FILE)
"""Every preset by what it is about, in the order in which lists show them."""

PRESETS: tuple[Preset, ...] = tuple(preset for group in PRESET_GROUPS for preset in group.presets)


def find_by_name(presets: Sequence[Preset], name: str) -> Preset:
    """Return the preset of that name.

    Raises:
        OptionsError: There is none; the text offers the closest one.
    """
    for preset in presets:
        if preset.name == name:
            return preset
    meant = did_you_mean(name, [preset.name for preset in presets])
    raise OptionsError(f"{name[:80]!r} is not a preset; `pipeline-lab presets` lists them.{meant}")


def find_preset(name: str) -> Preset:
    """Return the bundled preset of that name.

    Raises:
        OptionsError: There is none.
    """
    return find_by_name(PRESETS, name)
