"""What a race's arms are called: those of one name by the options in which they differ, for a letter alone tells nothing."""

from pipeline_lab.comparison.differences import Difference, find_differences, flatten_options
from pipeline_lab.options.race_options import RaceOptions, arm_name

MOST_DIFFERENCES = 2
"""Options that a name holds; *What differs* lists all of them."""
LONGEST_VALUE = 24
"""Characters of a value in a name, so that a table still has room for it."""
STAGES = "pipeline.stages"
"""The order of the stages, which is long; of a stage that one arm lacks the stage's own options tell in fewer words."""


def name_arms(options: RaceOptions) -> tuple[str, ...]:
    """Return the arms' names, baseline first; one of several that are called alike is ``baseline (B: batch.size = 64)``."""
    called = [arm_name(arm, number) for number, arm in enumerate(options.arms)]
    named = list(options.arm_names)
    for name in set(called):
        alike = [number for number, other in enumerate(called) if other == name]
        if differences := _differences(options, alike):
            for place, number in enumerate(alike):
                named[number] = f"{named[number].removesuffix(')')}: {_told(differences, place)})"
    return tuple(named)


def describe_alike(options: RaceOptions) -> str:
    """Say which arms were told the same; empty where no two were."""
    holders: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, arm in zip(name_arms(options), options.arms, strict=True):
        told = flatten_options(arm.model_dump(mode="json"))
        holders.setdefault(tuple(told.items()), []).append(name)
    return " ".join(
        f"{' and '.join(names)} have the same options: what differs between them is chance."
        for names in holders.values()
        if len(names) > 1
    )


def _differences(options: RaceOptions, arms: list[int]) -> tuple[Difference, ...]:
    """Return the options in which these arms are not all alike; none if there is one arm only."""
    documents = [options.arms[number].model_dump(mode="json") for number in arms]
    found = find_differences(documents, [{}] * len(arms), [None] * len(arms)).options
    return tuple(each for each in found if each.path != STAGES) or found


def _told(differences: tuple[Difference, ...], place: int) -> str:
    """Write what one of the arms was told, in the words of ``--set``."""
    words = [
        f"{each.path.removeprefix('pipeline.')} = {_short(each.values[place])}"
        for each in differences[:MOST_DIFFERENCES]
    ]
    return ", ".join([*words, "…"] if len(differences) > MOST_DIFFERENCES else words)


def _short(value: str | None) -> str:
    text = "none" if value is None or value == "null" else value
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
