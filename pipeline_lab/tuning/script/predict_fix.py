"""Calls of Keras' ``predict`` with a batch at a time, written as ``predict_on_batch``.

The script runs as it is, and makes each of these calls both ways; where all arrays are equal, the changed script runs as well, and has to make as many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_lab.analysis.steps.job_steps import Predicts
from pipeline_lab.errors import RunFailedError
from pipeline_lab.pipeline.changes import Change, Effect, Risk
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, splice
from pipeline_lab.pipeline.predict_edits import edit_predict
from pipeline_lab.pipeline.predict_samples import ComparedCall, PredictRequest
from pipeline_lab.pipeline.samples import Proof, ProofOutcome
from pipeline_lab.pipeline.source_edits import Edited
from pipeline_lab.tuning.script.fix import CallTimes, Fix
from pipeline_lab.tuning.script.proof import HowFar
from pipeline_lab.tuning.script.proving import Effort, LeftAlone
from pipeline_lab.tuning.script.sample_process import SampleProcess, Script

PREDICT_ON_BATCH = "predict-on-batch"
EACH = 20
"""Calls of each place that are compared."""
ALSO = (
    "It takes no callbacks, and shows no progress.",
    "Only the first calls of each line were compared; a later one with more than a batch of examples is computed all at once.",
)
NOT_CALLED = "It was called too few times to compare anything."
NO_FASTER = "predict_on_batch is not faster there."
NOTHING = "Nothing is proposed: no call of predict can be replaced."
LEAST_RATIO = 0.9
"""Of the time of ``predict``, from which ``predict_on_batch`` is no faster."""


def fix_predicts(script: Script, predicts: Predicts, texts: Mapping[str, str], effort: Effort) -> Fix:
    """Find which of a script's calls of ``predict`` can be ``predict_on_batch``.

    Args:
        script: As it is started.
        predicts: The calls that were recorded.
        texts: Its files by path.
        effort: What the proof may take.

    Raises:
        RunFailedError: The script fails.
    """
    wanted = [line.call for line in predicts.lines]
    with SampleProcess(script) as process:
        found = [ComparedCall.from_json(each) for each in _ask(process, script, wanted, effort)["calls"]]
        reached = {each.words for each in found}
        left = [LeftAlone(_change([words]), NOT_CALLED) for words in wanted if words not in reached]
        left += [LeftAlone(_change([each.words]), _refuse(each)) for each in found if _refuse(each)]
        kept, edited, unwritten = _write([each for each in found if not _refuse(each)], texts)
        left += unwritten
        if not kept:
            return Fix((), None, None, tuple(left), note=NOTHING)
        effort.stop()
        change = _change([each.words for each in kept])
        compared = sum(each.count for each in kept)
        if (reason := _fails(process, script, wanted, effort, edited, compared)) is not None:
            return Fix((), None, None, (*left, LeftAlone(change, reason)), note=NOTHING)
    said = f"{compared} of the script's own calls return the same arrays both ways, bit for bit, and the changed script makes as many."
    written = Edited({path: texts[path] for path in edited}, edited, (change,), ())
    proof = Proof(ProofOutcome.EQUAL, said, (compared,))
    return Fix((change,), written, proof, tuple(left), gain=_measure(kept, predicts))


def _fails(
    process: SampleProcess,
    script: Script,
    wanted: Sequence[str],
    effort: Effort,
    edited: Mapping[str, str],
    compared: int,
) -> str | None:
    """Return why the changed script does not do what the script does; None where it makes as many calls."""
    try:
        counted = _ask(process, script, wanted, effort, texts=edited, counts=compared)["counted"]
    except RunFailedError as error:
        return str(error)
    return None if counted >= compared else f"The changed script makes {counted} of these {compared} calls."


def _measure(kept: Sequence[ComparedCall], predicts: Predicts) -> CallTimes:
    """Return what the calls take both ways; of two on one line, which the recording cannot tell apart, the slower one as changed."""
    times: dict[str, tuple[float, float]] = {}
    for each in kept:
        pair = each.before_ms or 0.0, each.after_ms or 0.0
        times[each.words] = max(times.get(each.words, pair), pair, key=lambda one: one[1] / one[0])
    lines = [line for line in predicts.lines if line.call in times]
    count = sum(line.count for line in lines)
    before_ms, after_ms = (sum(line.count * times[line.call][way] for line in lines) / count for way in (0, 1))
    return CallTimes(before_ms, after_ms, sum(map(predicts.percent_of, lines)))


def _ask(process: SampleProcess, script: Script, calls: Sequence[str], effort: Effort, **more: Any) -> dict[str, Any]:
    far, start = effort.how_far or HowFar(), (script.target, list(script.arguments), script.is_module)
    request = PredictRequest(*start, list(calls), EACH, far.seconds, far.patience_s, **more)
    answer = process.ask(asdict(request))
    if "error" in answer:
        raise RunFailedError(f"The {'changed ' if more else ''}script fails: {answer['error'].rstrip('.')}.")
    return answer


def _refuse(call: ComparedCall) -> str:
    """Return why a call stays; empty where it can be replaced."""
    if call.refusal or call.before_ms is None or call.after_ms is None:
        return call.refusal or NOT_CALLED
    return NO_FASTER if call.after_ms > LEAST_RATIO * call.before_ms else ""


def _write(
    calls: Sequence[ComparedCall], texts: Mapping[str, str]
) -> tuple[list[ComparedCall], dict[str, str], list[LeftAlone]]:
    """Return the calls that can be written, the files with them, and what cannot."""
    splices: dict[str, list[Splice]] = {}
    sources: dict[str, ParsedSource] = {}
    written, left = [], []
    for call in calls:
        file = call.place.file
        try:
            if file not in texts:
                raise RefusedError(f"The call at {call.place} is in no file that the run kept.")
            sources[file] = sources.get(file) or ParsedSource(file, texts[file])
            splices.setdefault(file, []).extend(edit_predict(sources[file], call.place))
            written.append(call)
        except RefusedError as error:
            left.append(LeftAlone(_change([call.words]), str(error)))
    return written, {file: _spliced(sources[file].raw, made) for file, made in splices.items() if made}, left


def _spliced(raw: bytes, made: Sequence[Splice]) -> str:
    return splice(raw, made, 0, len(raw)).decode()


def _change(calls: Sequence[str]) -> Change:
    words = f"Predict a batch at a time by predict_on_batch, in place of {', '.join(dict.fromkeys(calls))}."
    return Change(PREDICT_ON_BATCH, None, (), Effect.PREDICTIONS, Risk.LOW, words, ALSO)
