"""Finds what can be changed in a script, proved on its own data.

A change is proposed where it applies to the training's dataset, can be written into the source, and the changed script has
been seen to give its model the same examples. Everything else is left alone, with the reason.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline_lab.advice.script.script_forecasts import measure_script
from pipeline_lab.advice.script.script_model import ScriptPrediction, predict_change
from pipeline_lab.advice.script.script_run import ScriptRun, saved_by_one_iterator, saved_by_quick_ends
from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.iterator_ends import serve_one_step
from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.analysis.verdict.verdict import Verdict
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import OptionsError, StoreError, Unavailable
from pipeline_lab.pipeline.changes import (
    Change,
    Effect,
    are_compatible,
)
from pipeline_lab.pipeline.recipe import LOOP, DatasetUse, Recipe, read_recipe
from pipeline_lab.pipeline.rewrites import ON_REQUEST, find_changes, refuse_one_iterator
from pipeline_lab.pipeline.samples import find_reading
from pipeline_lab.pipeline.source_edits import TOGETHER, Edited, edit_sources
from pipeline_lab.pipeline.written_changes import parse_change
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.user_sources import kept_files
from pipeline_lab.tuning.script.fix import NOT_PREDICTED, Fix
from pipeline_lab.tuning.script.predict_fix import PREDICT_ON_BATCH, fix_predicts
from pipeline_lab.tuning.script.proof import Prover
from pipeline_lab.tuning.script.proving import UNLIMITED, Effort, LeftAlone, Proving, prove_changes, watched_places
from pipeline_lab.tuning.script.sample_process import Script
from pipeline_lab.tuning.script.worth_trying import WORTH_PERCENT, choose_rivals, expected_gain, promises, worth_proving
from pipeline_lab.units import format_percent

OWN_BATCHES = "The script makes its batches itself, between the calls of {call}; only pipelines of tf.data and Keras, and calls of predict that take much of the time, can be changed."
NO_PREDICTS = "the run shows no calls of Keras' predict, with a batch at a time, that take much of its time."
NO_RECIPE = "The run does not say what its script trained on, perhaps because its training had not begun; record longer with --budget."
REORDERS = "It gives the examples in another order; --may-reorder allows that."
NOT_HELD_UP = "Input does not hold this training up."
OTHER_BATCHES = (
    "Each step takes the first batch of a new pass; from one iterator for all steps it would get other batches."
)
NONE_APPLIES = "Nothing is proposed: no change applies."
NONE_IS_LEFT = "Nothing is proposed: each change that applies is left alone, with its reason."
LITTLE_BETWEEN = "Less than 5 % of the time passes between epochs, or it was not measured."
NO_DEVICE = "Without a device to which input is copied, only on request: --change into-step."
LITTLE_COPIED = "Copies of input to the device hold up less than 5 % of a step."
FEWEST = 3
"""Elements of a loop that trains, at least."""
_ONLY_LOOKED = "{place} only looks at an element or two, and no training was recorded; record longer with --budget."
HELD_UP = frozenset({VerdictClass.INPUT_BOUND, VerdictClass.HOST_CONTENTION, VerdictClass.UNKNOWN})
"""What may hold a training up that a change of its input can help."""


@dataclass(frozen=True)
class Wishes:
    """What the user asks for.

    Attributes:
        changes: As :func:`~pipeline_lab.pipeline.written_changes.parse_change` reads them; without any, what helps.
        may_reorder: Also changes that give the examples in another order.
    """

    changes: Sequence[str] = ()
    may_reorder: bool = False


def find_fix(
    folder: RunFolder,
    script: Script,
    wishes: Wishes,
    diagnosis: Diagnosis | Unavailable,
    effort: Effort = UNLIMITED,
) -> Fix:
    """Find what to change in a script of which there is a recorded run.

    Args:
        folder: The run.
        script: As it is started.
        wishes: What the user asks for.
        diagnosis: Of the run; where its input does not hold the training up, only what the model expects a gain of is proposed unasked.
        effort: What its proofs may take.

    Raises:
        StoreError: The run has no recipe, or the script makes its batches itself.
        OptionsError: A requested change cannot be read.
        RunFailedError: The script does not come to its training any more.
    """
    recipe = read_recipe(folder.recipe)
    use = None if recipe is None else recipe.trained
    steps = diagnosis if isinstance(diagnosis, Unavailable) else diagnosis.job_steps
    predicts = _predicts_to_replace(diagnosis, use, wishes)
    if predicts is not None:
        kept = kept_files(folder)
        return fix_predicts(script, predicts, current_texts(kept, kept), effort)
    if not isinstance(steps, Unavailable) and steps.own_call is not None:
        raise StoreError(OWN_BATCHES.format(call=steps.own_call))
    if recipe is None or use is None:
        raise StoreError(NO_RECIPE)
    run = Unavailable("") if isinstance(diagnosis, Unavailable) else measure_script(diagnosis, recipe)
    found = _find(folder, recipe, use, script, wishes, diagnosis, run, effort)
    otherwise = _if_reordered(found.left, run)
    return replace(found, note=found.note if found.changes else f"{found.note}{otherwise}", otherwise=otherwise)


def _predicts_to_replace(diagnosis: Diagnosis | Unavailable, use: DatasetUse | None, wishes: Wishes) -> Predicts | None:
    """Return the calls of ``predict`` to replace: on request, and unasked where no pipeline holds the training up more.

    Raises:
        OptionsError: They are asked for beside other changes, or there are none.
    """
    steps = diagnosis if isinstance(diagnosis, Unavailable) else diagnosis.job_steps
    found = None if isinstance(steps, Unavailable) else steps.predicts
    if PREDICT_ON_BATCH in wishes.changes:
        if len(wishes.changes) > 1:
            raise OptionsError(f"Ask for {PREDICT_ON_BATCH} alone, without another --change.")
        if found is None or not found.matter:
            raise OptionsError(f"{PREDICT_ON_BATCH!r}: {NO_PREDICTS}")
        return found
    if wishes.changes or found is None or not found.matter or isinstance(diagnosis, Unavailable):
        return None
    has_no_pipeline = use is None or (not isinstance(steps, Unavailable) and steps.own_call is not None)
    return found if has_no_pipeline or diagnosis.verdict.is_about_predicts else None


def may_be_held_up(
    verdict: Verdict | None, run: ScriptRun | Unavailable, calibration: Calibration | Unavailable | None = None
) -> bool:
    """Say whether a change of the input may help a script, so that more is tried than what the model expects a gain of.

    Whatever its largest loss is, free input has to save enough of the step, by the model or by what the step took alone, which tells
    more than the model where the input computes on the cores that the step needs. Where the model does not explain the run, for
    other programs or something else slowed it down, only a computation that is busy by itself speaks against it. Iterator
    setup and teardown, where it is the largest loss, hides what the next largest is.
    """
    if isinstance(calibration, Calibration) and 100.0 - calibration.utilisation_percent >= WORTH_PERCENT:
        return True
    if verdict is None or verdict.verdict_class in HELD_UP or verdict.cause == GapCause.ITERATOR_END.value:
        return True
    if isinstance(run, Unavailable):
        return verdict.verdict_class is not VerdictClass.DEVICE_BOUND or _lost_percent(verdict) >= WORTH_PERCENT
    return run.most_gain_percent >= WORTH_PERCENT


def _lost_percent(verdict: Verdict) -> float:
    """Return the share of the step that is lost to input; 0 where nothing tells."""
    lost = None if verdict.step is None else verdict.step.input_percent
    return 0.0 if lost is None or isinstance(lost, Unavailable) else lost


def _if_reordered(left: Sequence[LeftAlone], run: ScriptRun | Unavailable) -> str:
    """Say what would help if another order of the examples were allowed; empty where nothing would."""
    others = [each.change for each in left if each.reason == REORDERS and promises(each.change, run)]
    if not others or isinstance(run, Unavailable):
        return ""
    gain, best = max(((expected_gain(each, run), each) for each in others), key=lambda pair: pair[0])
    return f" With --may-reorder the model expects {format_percent(gain)} less time per step: {best.words}"


def _find(
    folder: RunFolder,
    recipe: Recipe,
    use: DatasetUse,
    script: Script,
    wishes: Wishes,
    diagnosis: Diagnosis | Unavailable,
    run: ScriptRun | Unavailable,
    effort: Effort,
) -> Fix:
    texts = current_texts(recipe.files, kept_files(folder))
    found, left = choose(recipe, use, wishes)
    if not wishes.changes:
        found, unfit = worth_a_look(found, diagnosis, run, use.length)
        left += unfit + _without_one_iterator(recipe, use, diagnosis)
        if not found and any(each.reason == NOT_HELD_UP for each in unfit):
            return Fix(
                (), None, None, tuple(left), note=f"Nothing is proposed: {NOT_HELD_UP[0].lower()}{NOT_HELD_UP[1:]}"
            )
    edited = edit_sources(recipe, found, texts, use)
    if not edited.written:
        left += [LeftAlone(each.change, each.reason) for each in edited.refused]
        return Fix((), None, None, tuple(left), note=NONE_IS_LEFT if left else NONE_APPLIES)
    watched = watched_places(recipe, use, found)
    with Prover(script, find_reading(recipe, use), folder.id, effort.how_far, watches=watched) as prover:
        effort.stop()
        before = prover.before()
        if not wishes.changes and use.role == LOOP and all(before.ended) and len(before.passes[0]) < FEWEST:
            return Fix((), None, None, tuple(left), note=f"Nothing is proposed: {_ONLY_LOOKED.format(place=use.place)}")
        beaten: list[tuple[Change, Change]] = []
        if not wishes.changes:
            found, unwritable = that_can_be_written(found, edited)
            found, needless = worth_proving(found, before, recipe, use, run)
            left += unwritable + [LeftAlone(*each) for each in needless]
            found, beaten = choose_rivals(found, run)
            edited = edit_sources(recipe, found, texts, use)
        left += [LeftAlone(each.change, each.reason) for each in edited.refused]
        proved = prove_changes(Proving(recipe, use, texts, prover, effort), edited.written, beaten)
    return Fix(
        proved.changes,
        proved.edited,
        proved.proof,
        (*left, *proved.left),
        predicted=_predict(diagnosis, recipe, proved.changes),
        note=proved.note,
    )


def that_can_be_written(found: Sequence[Change], edited: Edited) -> tuple[list[Change], list[LeftAlone]]:
    """Return the changes that can be written, if perhaps not beside another one, and those that cannot, which rival nothing."""
    left = [LeftAlone(each.change, each.reason) for each in edited.refused if each.reason != TOGETHER]
    return [each for each in found if each not in [one.change for one in left]], left


def worth_a_look(
    found: Sequence[Change], diagnosis: Diagnosis | Unavailable, run: ScriptRun | Unavailable, length: int | None
) -> tuple[list[Change], list[LeftAlone]]:
    """Return which changes may help a script, by where its time goes, and what is left alone for it.

    Args:
        found: The changes.
        diagnosis: Of the script.
        run: What the model knows of it.
        length: Elements of the dataset that is trained on; None where they have no end, or their number is not known.
    """
    if isinstance(diagnosis, Unavailable):
        is_held_up = may_be_held_up(None, run)
    else:
        is_held_up = may_be_held_up(diagnosis.verdict, run, diagnosis.calibration)

    def speaks_against(change: Change) -> str:
        if change.joins_epochs:
            return _against_one_iterator(diagnosis, length)
        if change.fills_step:
            return _against_smaller_copies(change, run)
        if change.stops_tuning:
            is_worth = not isinstance(diagnosis, Unavailable) and saved_by_quick_ends(diagnosis) >= WORTH_PERCENT
            return "" if is_worth else LITTLE_BETWEEN
        return "" if is_held_up or promises(change, run) else NOT_HELD_UP

    left = [LeftAlone(each, reason) for each in found if (reason := speaks_against(each))]
    return [each for each in found if not speaks_against(each)], left


def _without_one_iterator(recipe: Recipe, use: DatasetUse, diagnosis: Diagnosis | Unavailable) -> list[LeftAlone]:
    """Return why one iterator does not serve all epochs, where it would save something and cannot be written."""
    refused = refuse_one_iterator(recipe, use)
    if refused is None or isinstance(diagnosis, Unavailable) or saved_by_one_iterator(diagnosis) < WORTH_PERCENT:
        return []
    return [LeftAlone(*refused)]


def _against_one_iterator(diagnosis: Diagnosis | Unavailable, length: int | None) -> str:
    if isinstance(diagnosis, Unavailable):
        return LITTLE_BETWEEN
    if length != 1 and serve_one_step(diagnosis.iterator_starts, diagnosis.job_steps):
        return OTHER_BATCHES
    return "" if saved_by_one_iterator(diagnosis) >= WORTH_PERCENT else LITTLE_BETWEEN


def _against_smaller_copies(change: Change, run: ScriptRun | Unavailable) -> str:
    if isinstance(run, Unavailable) or run.copied_ns is None:
        return NO_DEVICE
    is_held_up = run.copied_ns >= WORTH_PERCENT / 100.0 * run.step_ns
    return "" if is_held_up or promises(change, run) else LITTLE_COPIED


def _predict(
    diagnosis: Diagnosis | Unavailable, recipe: Recipe, changes: Sequence[Change]
) -> ScriptPrediction | Unavailable:
    """Predict all changes together."""
    if isinstance(diagnosis, Unavailable) or not changes:
        return NOT_PREDICTED
    run = measure_script(diagnosis, recipe)
    if isinstance(run, Unavailable):
        return run
    return predict_change(run, [edit for change in changes for edit in change.edits])


def current_texts(files: Iterable[str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the user's files as they are.

    Raises:
        StoreError: One has changed since the run.
    """
    texts = {}
    for path in files:
        try:
            text = Path(path).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue  # what is in it is refused, with the reason
        if path in kept and _as_run(kept[path]) != _as_run(text):
            raise StoreError(f"{Path(path).name} has changed since the run was recorded; record the script again.")
        texts[path] = text
    return texts


def _as_run(text: str) -> str:
    """Return a text without what Python's reader of sources alters: ends of lines, and that of the last one."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def choose(recipe: Recipe, use: DatasetUse, wishes: Wishes) -> tuple[list[Change], list[LeftAlone]]:
    """Return what to try, the most important first, and what is left alone from the start."""
    if wishes.changes:
        asked = [parse_change(recipe, each) for each in wishes.changes]
        if not are_compatible(asked):
            raise OptionsError("These changes cannot be made together; ask for one of them at a time.")
        return asked, []
    found: list[Change] = []
    left: list[LeftAlone] = []
    for change in find_changes(recipe, use):
        if change.rewrite in ON_REQUEST:
            left.append(LeftAlone(change, f"Only on request: --change {change.rewrite}."))
        elif change.effect is Effect.ORDER and not wishes.may_reorder:
            left.append(LeftAlone(change, REORDERS))
        else:
            found.append(change)
    return found, left


def apply(files: Mapping[str, tuple[str, str]]) -> Iterator[tuple[Path, Path | None]]:
    """Write files, and yield each with its backup; None where version control keeps the old one.

    Args:
        files: Text before and after by path.

    Raises:
        StoreError: A file has changed meanwhile.
    """
    for path, (before, _) in files.items():
        file = Path(path)
        if not file.is_file() or file.read_bytes().decode() != before:
            raise StoreError(f"{file.name} has changed meanwhile; nothing was written to it.")
    for path, (_, text) in files.items():
        file = Path(path)
        backup = None if _is_versioned(file) else _back_up(file)
        file.write_bytes(text.encode())
        yield file, backup


def _is_versioned(file: Path) -> bool:
    """Say whether git holds the file as it is."""
    for words in (("ls-files", "--error-unmatch"), ("diff", "--quiet", "HEAD", "--")):
        try:
            done = subprocess.run(["git", "-C", str(file.parent), *words, file.name], capture_output=True, check=False)
        except OSError:
            return False
        if done.returncode:
            return False
    return True


def _back_up(file: Path) -> Path:
    names = (file.with_name(f"{file.name}.orig{number or ''}") for number in range(10_000))
    backup = next(name for name in names if not name.exists())
    backup.write_bytes(file.read_bytes())
    return backup
