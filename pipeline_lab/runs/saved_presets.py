"""Presets of the user's own: options under a name, kept with the runs of a store.

They stand beside the bundled presets wherever one is named, and never in front of them.
"""

import contextlib
import re

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.presets import PRESET_GROUPS, PRESETS, Preset, PresetGroup, find_by_name
from pipeline_lab.options.run_options import RunOptions, read_options_file
from pipeline_lab.runs.store import RunStore, write_whole

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
BUNDLED = frozenset(preset.name for preset in PRESETS)


def save_preset(store: RunStore, name: str, options: RunOptions) -> None:
    """Keep options under a name, in place of what had that name.

    Raises:
        OptionsError: The name is not allowed, or belongs to a bundled preset.
        StoreError: The store is locked, or cannot be written.
    """
    store.check_unlocked()
    if not NAME.fullmatch(name):
        raise OptionsError(
            f"{name[:80]!r} cannot name a preset; use up to 64 small letters, digits and hyphens, such as my-images."
        )
    if name in BUNDLED:
        raise OptionsError(f"{name} is a bundled preset; choose another name.")
    try:
        store.presets.mkdir(parents=True, exist_ok=True)
        write_whole(store.presets / f"{name}.json", options.model_copy(update={"name": name}).to_json())
    except OSError as error:
        raise StoreError(f"Cannot keep preset {name} in {store.root}: {error.strerror}.") from None


def remove_preset(store: RunStore, name: str) -> None:
    """Forget a preset.

    Raises:
        OptionsError: There is none of the user's own with that name.
        StoreError: The store is locked.
    """
    store.check_unlocked()
    if name not in {preset.name for preset in saved_presets(store)}:
        raise OptionsError(f"There is no preset of your own named {name[:80]!r}; bundled ones cannot be removed.")
    (store.presets / f"{name}.json").unlink(missing_ok=True)


def saved_presets(store: RunStore) -> list[Preset]:
    """Return the user's own presets by name; files that hold no valid options are left out."""
    found = []
    for file in sorted(store.presets.glob("*.json")):
        if NAME.fullmatch(file.stem) and file.stem not in BUNDLED:
            with contextlib.suppress(OptionsError):
                found.append(Preset(file.stem, "Your own.", read_options_file(file)))
    return found


def preset_groups(store: RunStore) -> list[PresetGroup]:
    """Return the bundled presets by what they are about, and the user's own behind them."""
    own = saved_presets(store)
    return [*PRESET_GROUPS, *([PresetGroup("Your own", "What have I kept?", tuple(own))] if own else [])]


def all_presets(store: RunStore) -> list[Preset]:
    """Return the bundled presets and the user's own behind them."""
    return [preset for group in preset_groups(store) for preset in group.presets]


def find_any_preset(store: RunStore, name: str) -> Preset:
    """Return the bundled preset of that name, or the user's own.

    Raises:
        OptionsError: There is none.
    """
    return find_by_name(all_presets(store), name)
