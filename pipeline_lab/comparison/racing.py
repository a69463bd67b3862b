"""Find what is to race, and put the options of a race together."""

import contextlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from pipeline_lab.errors import OptionsError, did_you_mean
from pipeline_lab.options.race_options import RaceOptions, ScriptRaceOptions, read_race_options, read_script_race
from pipeline_lab.options.run_options import RunOptions, read_options, read_options_file, with_preset
from pipeline_lab.runs.record import RunKind, RunRecord
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.saved_presets import all_presets
from pipeline_lab.runs.store import RunStore

ArmSource: TypeAlias = RunOptions | str | PathLike[str]


def choose_race(arms: list[RunOptions], **settings: object) -> RaceOptions:
    """Return the options of a race; settings that are None keep their defaults.

    Raises:
        OptionsError: There are fewer than two arms, or they cannot race.
    """
    if len(arms) < 2:
        raise OptionsError("A race needs at least two option sets: the baseline and a candidate.")
    given = {name: value for name, value in settings.items() if value is not None}
    return read_race_options({"arms": [arm.model_dump(mode="json") for arm in arms], **given})


def choose_script_race(
    script: str, arguments: Sequence[str], changes: Sequence[str], *, is_module: bool = False, **settings: object
) -> ScriptRaceOptions:
    """Return the options of a race inside a script that is run from here; settings that are None keep their defaults.

    Raises:
        OptionsError: There is no change, or a setting is not allowed.
    """
    if not changes:
        raise OptionsError(
            f"A race inside {script} needs a change of its pipeline, such as --change prefetch or "
            f"--change '{Path(script).name}:41 num_parallel_calls=8'."
        )
    given = {name: value for name, value in settings.items() if value is not None}
    document = {
        "script": script,
        "is_module": is_module,
        "arguments": list(arguments),
        "folder": str(Path.cwd()),
        "changes": list(changes),
    }
    return read_script_race({**document, **given})


def find_arm(source: ArmSource, store: RunStore, *, own: RunOptions | None = None) -> RunOptions:
    """Return the options of a preset, of a JSON file, of a run's folder or of a run, whichever has that name.

    A run is named by its id, by a name that no other run has, or as the ``latest``.

    Args:
        source: What was named.
        store: Where runs are.
        own: A workload of the user's own; then presets are its own, and a name that is neither a file nor a run is one of them.

    Raises:
        OptionsError: There is none, or the run has no options to race.
        StoreError: Several runs have that name, or there is no latest run yet.
    """
    if isinstance(source, RunOptions):
        return source
    name = str(source)
    presets = all_presets(store) if own is None else []
    for preset in presets:
        if preset.name == name:
            return preset.options
    with contextlib.suppress(OSError, ValueError):  # too long for a path, or with a zero byte
        if Path(name).is_file():
            found = read_options_file(Path(name))
            return found if found.name else found.model_copy(update={"name": Path(name).stem})
        if RunFolder(Path(name)).record.is_file():
            return options_of_record(read_record(RunFolder(Path(name))))
    run_id = store.find_id(name)
    if run_id in {record.id for record in store.runs()}:
        return options_of_run(store, run_id)
    if own is not None:
        return with_preset(own, name)
    meant = did_you_mean(name, [preset.name for preset in presets])
    raise OptionsError(f"{name[:80]!r} is not a preset, a file or a run in {store.root}.{meant}")


def options_of_run(store: RunStore, run_id: str) -> RunOptions:
    """Return the options of a run, under the run's own name.

    Raises:
        OptionsError: It has no options, or is a race itself.
        StoreError: There is no such run.
    """
    return options_of_record(store.read(run_id))


def options_of_record(record: RunRecord) -> RunOptions:
    """Return the options of a run, under its own name.

    Raises:
        OptionsError: It has no options, or is a race itself.
    """
    if record.kind is RunKind.LOG:
        raise OptionsError(f"Run {record.id} was not launched by Pipeline Lab, so it has no options to race.")
    if record.kind is not RunKind.RUN:
        raise OptionsError(
            f"{record.id} is a {record.kind.value} itself; name a preset, a file or a run of its instead."
        )
    return read_options(record.options or {}).model_copy(update={"name": record.name})
