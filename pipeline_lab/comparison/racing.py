"""Race option sets from a script: find the arms, launch, wait for the end, read the answer."""

from pathlib import Path
from typing import TypeAlias

from pipeline_lab.comparison.race import Race, read_race
from pipeline_lab.errors import OptionsError, RunFailedError
from pipeline_lab.options.closest import did_you_mean
from pipeline_lab.options.own import with_preset
from pipeline_lab.options.race import RaceOptions, read_race_options
from pipeline_lab.options.run import RunOptions, read_options, read_options_file
from pipeline_lab.runs.launcher import cancel, launch_race, wait
from pipeline_lab.runs.record import RunKind, RunState
from pipeline_lab.runs.saved_presets import all_presets
from pipeline_lab.runs.store import RunStore, open_store

ArmSource: TypeAlias = RunOptions | str | Path


def race(*options: ArmSource, store: RunStore | None = None, **settings: object) -> Race:
    """Race option sets against the first of them in one process of its own; an interrupt cancels it.

    Blocks of every arm take turns in random order until the answer is known or the budget is used up. The result shows
    itself in a notebook:

        from pipeline_lab import race
        race("baseline", "optimised", pairs=20)

    Args:
        options: Two to eight arms, the baseline first: options, a preset's name, a JSON file of options, or a run's id.
        store: Where to keep the race; None for the store that the command line uses too.
        settings: Fields of ``pipeline_lab.options.race.RaceOptions`` beside the arms: ``pairs`` (rounds),
            ``block_steps``, ``margin_percent``, ``max_seconds`` (s), ``fail_if_slower_percent``, ``name`` and others.

    Raises:
        OptionsError: An arm cannot be found, or the race is not possible as it is asked for.
        RunFailedError: The race failed; the text says why, and what it left is kept.
        TraceIncompleteError: It was cancelled before its first round was complete.
    """
    opened = store or open_store()
    folder = launch_race(opened, choose_race([find_arm(each, opened) for each in options], **settings))
    try:
        record = wait(folder)
    except KeyboardInterrupt:
        cancel(folder)
        raise
    if record.status.state in (RunState.FAILED, RunState.LOST):
        raise RunFailedError(f"Race {folder.id} failed: {record.status.reason}")
    return read_race(folder)


def choose_race(arms: list[RunOptions], **settings: object) -> RaceOptions:
    """Return the options of a race; settings that are None keep their defaults.

    Raises:
        OptionsError: There are fewer than two arms, or they cannot race.
    """
    if len(arms) < 2:
        raise OptionsError("A race needs at least two option sets: the baseline and a candidate.")
    given = {name: value for name, value in settings.items() if value is not None}
    return read_race_options({"arms": [arm.model_dump(mode="json") for arm in arms], **given})


def find_arm(source: ArmSource, store: RunStore, *, own: RunOptions | None = None) -> RunOptions:
    """Return the options of a preset, of a JSON file or of a run, whichever has that name.

    Args:
        source: What was named.
        store: Where runs are.
        own: A workload of the user's own; then presets are its own, and what is no file and no run is one of them.

    Raises:
        OptionsError: There is none, or the run has no options to race.
    """
    if isinstance(source, RunOptions):
        return source
    name = str(source)
    presets = all_presets(store) if own is None else []
    for preset in presets:
        if preset.name == name:
            return preset.options
    if Path(name).is_file():
        found = read_options_file(Path(name))
        return found if found.name else found.model_copy(update={"name": Path(name).stem})
    is_run = name in {record.id for record in store.runs()}
    if own is not None and not is_run:
        return with_preset(own, name)
    if not is_run:
        meant = did_you_mean(name, [preset.name for preset in presets])
        raise OptionsError(f"{name[:80]!r} is no preset, no file and no run in {store.root}.{meant}")
    return options_of_run(store, name)


def options_of_run(store: RunStore, run_id: str) -> RunOptions:
    """Return what a run was told, under the run's own name.

    Raises:
        OptionsError: It has no options, or is a race itself.
        StoreError: There is no such run.
    """
    record = store.read(run_id)
    if record.kind is RunKind.LOG:
        raise OptionsError(f"Run {run_id} was not launched by Pipeline Lab, so it has no options to race.")
    if record.kind is not RunKind.RUN:
        raise OptionsError(f"{run_id} is a {record.kind.value} itself; name a preset, a file or a run of its instead.")
    return read_options(record.options or {}).model_copy(update={"name": record.name})
