"""What a preset is, and how one is found."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.closest import did_you_mean
from pipeline_lab.options.run import RunOptions


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
    """

    title: str
    question: str
    presets: tuple[Preset, ...]


def find_by_name(presets: Sequence[Preset], name: str) -> Preset:
    """Return the preset of that name.

    Raises:
        OptionsError: There is none; the text offers the closest one.
    """
    for preset in presets:
        if preset.name == name:
            return preset
    meant = did_you_mean(name, [preset.name for preset in presets])
    raise OptionsError(f"There is no preset {name[:80]!r}; `pipeline-lab presets` lists those that there are.{meant}")
