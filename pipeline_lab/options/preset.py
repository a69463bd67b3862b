"""What a preset is."""

from dataclasses import dataclass

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
