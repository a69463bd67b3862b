"""Presets that the user saved: named options, kept with the runs of a store. They never replace bundled presets."""

import contextlib
import re

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.presets import PRESET_GROUPS, PRESETS, Preset, PresetGroup, find_by_name
from pipeline_lab.options.run_options import RunOptions, read_options_file
from pipeline_lab.runs.run_folder import write_whole
from pipeline_lab.runs.store import RunStore

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
BUNDLED = frozenset(preset.name for preset in PRESETS)


def save_preset(store: RunStore, name: str, options: RunOptions) -> None:
    """Save options under a name; an earlier preset of that name is replaced.

    Raises:
        OptionsError: The name is not allowed, or belongs to a bundled preset.
        StoreError: The store is locked, or cannot be written.
    """
    store.check_unlocked()
    if not NAME.fullmatch(name):
        raise OptionsError(
            f"{name[:80]!r} cannot name a preset; use up to 64 lowercase letters, digits and hyphens, such as my-images."
        )
    if name in BUNDLED:
        raise OptionsError(f"{name} is a bundled preset; choose another name.")
    try:
        store.presets.mkdir(parents=True, exist_ok=True)
        write_whole(store.presets / f"{name}.json", options.model_copy(update={"name": name}).to_json())
    except OSError as error:
        raise StoreError(f"Cannot save preset {name} in {store.root}: {error.strerror}.") from None


def remove_preset(store: RunStore, name: str) -> None:
    """Delete a saved preset.

    Raises:
        OptionsError: There is none with that name.
        StoreError: The store is locked.
    """
    store.check_unlocked()
    if name not in {preset.name for preset in saved_presets(store)}:
        raise OptionsError(f"There is no saved preset named {name[:80]!r}; bundled presets cannot be removed.")
    (store.presets / f"{name}.json").unlink(missing_ok=True)


def saved_presets(store: RunStore) -> list[Preset]:
    """Return the saved presets by name; files without valid options are left out."""
    found = []
    for file in sorted(store.presets.glob("*.json")):
        if NAME.fullmatch(file.stem) and file.stem not in BUNDLED:
            with contextlib.suppress(OptionsError):
                found.append(Preset(file.stem, "Your own.", read_options_file(file)))
    return found


def preset_groups(store: RunStore) -> list[PresetGroup]:
    """Return the bundled presets in their groups, then the saved ones."""
    own = saved_presets(store)
    return [*PRESET_GROUPS, *([PresetGroup("Your own", "What have I kept?", tuple(own))] if own else [])]


def all_presets(store: RunStore) -> list[Preset]:
    """Return the bundled presets, then the saved ones."""
    return [preset for group in preset_groups(store) for preset in group.presets]


def find_any_preset(store: RunStore, name: str) -> Preset:
    """Return the bundled or saved preset of that name.

    Raises:
        OptionsError: There is no such preset.
    """
    return find_by_name(all_presets(store), name)
