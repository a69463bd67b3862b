"""What a search for better input of a script found: the change of its files, the proof, what races said, what was left alone.

``fix.json`` of the search's folder holds it, so that it can be looked at and applied later.
"""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError
from pipeline_lab.options.tune_options import ScriptTuneOptions, read_script_tune
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import store_option
from pipeline_lab.tuning.history import read_history
from pipeline_lab.tuning.search_result import RecordedSearch, read_trials
from pipeline_lab.tuning.space import START

CHANGED = "the changed script"
"""What sentences call the script with the changes that lead; what they are is listed beside the sentence."""


def of_changed(sentence: str, name: str) -> str:
    """Return a sentence about an arm of that name with the arm called the changed script."""
    told = sentence.replace(name, CHANGED)
    return told[:1].upper() + told[1:]


@dataclass(frozen=True)
class WrittenChange:
    """A change of a script.

    Attributes:
        rewrite: Key of its rewrite.
        words: What is done, a sentence with its place.
        effect, risk: What it does to the examples, and how much has to be thought over.
        also: What else it changes, a sentence each.
        reason: Why it was left alone; empty where it is proposed.
    """

    rewrite: str
    words: str
    effect: str
    risk: str
    also: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class WrittenFix:
    """What to change in a script, as it is kept.

    Attributes:
        run: The recording that it was found in.
        changes: The proposed ones; none where nothing helps or nothing could be proved.
        left: What was left alone.
        diff: Of the user's files; empty without a change.
        files: Text of each file before and after, by its path.
        proof: What the proof compared and found; empty without one.
        gain: What was raced and predicted.
        note: Why nothing is proposed, or what keeps it from being applied; empty where nothing does.
        is_sure: Whether it helps is decided, was not asked, or is left to the model, because no race can tell.
    """

    run: str
    changes: tuple[WrittenChange, ...]
    left: tuple[WrittenChange, ...]
    diff: str
    files: Mapping[str, tuple[str, str]]
    proof: str
    gain: str
    note: str
    is_sure: bool


@dataclass(frozen=True, eq=False, repr=False)
class ScriptTuning(RecordedSearch):
    """A search for better input of a script.

    Attributes:
        options: What was searched.
        fix: What it found; None before its end.
    """

    options: ScriptTuneOptions
    fix: WrittenFix | None

    @property
    def sentence(self) -> str:
        """How it ended, or what was done last, in words."""
        is_note = self.fix is not None and self.fix.note and self.winner_name == START
        return self.fix.note if self.fix is not None and is_note else super().sentence

    @property
    def fix_command(self) -> str:
        """The command that writes the change into the files."""
        return f"pipeline-lab fix {store_option(self.path)}--apply --from {self.id}"

    def _winner_json(self) -> dict[str, Any]:
        return {"winner_was_raced": self.winner_was_raced, "fix": _read_document(RunFolder(self.path))}


def read_script_tuning(folder: RunFolder) -> ScriptTuning:
    """Read a search for better input of a script, finished or not.

    Raises:
        OptionsError: It is no search, or its options are damaged.
    """
    record = read_record(folder)
    if record.kind is not RunKind.TUNE:
        raise OptionsError(f"{folder.id} is a {record.kind.value}, and no search for changes of a script.")
    if "script" not in (record.options or {}):
        raise OptionsError(f"{folder.id} is a search for a faster pipeline of a workload, not for changes of a script.")
    options = read_script_tune(record.options or {})
    steps = read_history(folder.history)
    return ScriptTuning(folder.path, record, options, steps, read_trials(folder), options, read_fix(folder))


def read_fix(folder: RunFolder) -> WrittenFix | None:
    """Return what a search found; None before its end, or where it is damaged."""
    found = _read_document(folder)
    if found is None:
        return None
    try:
        return WrittenFix(
            run=found["run"],
            changes=tuple(map(_change, found["changes"])),
            left=tuple(map(_change, found["left"])),
            diff=found["diff"],
            files={path: (texts[0], texts[1]) for path, texts in found["files"].items()},
            proof="" if found["proof"] is None else found["proof"]["sentence"],
            gain=found["gain_sentence"],
            note=found["note"],
            is_sure=found["is_sure"],
        )
    except (KeyError, TypeError, AttributeError, IndexError):
        return None


def _read_document(folder: RunFolder) -> dict[str, Any] | None:
    try:
        found = json.loads(folder.fix.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _change(document: dict[str, Any]) -> WrittenChange:
    return WrittenChange(
        document["rewrite"],
        document["words"],
        document["effect"],
        document["risk"],
        tuple(document["also"]),
        document.get("reason", ""),
    )


def write_fix_command(script: str, run: Path, request: str = "") -> str:
    """Return the command that finds what to change in a watched script.

    Args:
        script: Its command line.
        run: The folder of the run that recorded it.
        request: A change that it is asked for.
    """
    is_module, words = script.startswith("-m "), shlex.split(script.removeprefix("-m "))
    own = f" -- {shlex.join(words[1:])}" if words[1:] else ""
    target = f"{'-m ' if is_module else ''}{shlex.quote(words[0])}"
    asked = f" --change {shlex.quote(request)}" if request else ""
    return f"pipeline-lab fix {store_option(run)}{target} --run {run.name}{asked}{own}"
