"""Calls of Keras' ``predict`` with a batch at a time, written as ``predict_on_batch``.

The script runs as it is, and makes each of these calls both ways; where all arrays are equal, the changed script runs as far.
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
ALSO = "It takes no callbacks, and shows no progress."
NOT_CALLED = "It was called too few times to compare anything."
NO_FASTER = "predict_on_batch takes as long there."
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
    wanted = (predicts.call, *predicts.others)
    process = SampleProcess(script)
    try:
        found = [ComparedCall.from_json(each) for each in _ask(process, script, wanted, effort)["calls"]]
        left = [LeftAlone(_change([each]), _refuse(each)) for each in found if _refuse(each)]
        kept, edited, unwritten = _write([each for each in found if not _refuse(each)], texts)
        left += unwritten
        if not kept:
            return Fix((), None, None, tuple(left), note="Nothing is proposed: no call of predict can be replaced.")
        effort.stop()
        compared = sum(each.count for each in kept)
        again = _ask(process, script, wanted, effort, texts=edited, counts=compared)
    finally:
        process.end()
    if again["counted"] < compared:
        left += [LeftAlone(_change(kept), f"The changed script makes {again['counted']} of these {compared} calls.")]
        return Fix((), None, None, tuple(left), note="Nothing is proposed: no call of predict can be replaced.")
    change = _change(kept)
    said = f"{compared} of the script's own calls return the same arrays both ways, bit for bit, and the changed script runs as far."
    proof = Proof(ProofOutcome.EQUAL, said, (compared,))
    written = Edited({path: texts[path] for path in edited}, edited, (change,), ())
    share = predicts.percent * _total_ms(kept, "before_ms") / _total_ms(found, "before_ms")
    before_ms, after_ms = (_total_ms(kept, each) / compared for each in ("before_ms", "after_ms"))
    times = CallTimes(before_ms, after_ms, share)
    return Fix((change,), written, proof, tuple(left), gain=times)


def _ask(process: SampleProcess, script: Script, calls: Sequence[str], effort: Effort, **more: Any) -> dict[str, Any]:
    far, start = effort.how_far or HowFar(), (script.target, list(script.arguments), script.is_module)
    request = PredictRequest(*start, list(calls), EACH, far.seconds, far.patience_s, **more)
    answer = process.ask(asdict(request))
    if "error" in answer:
        raise RunFailedError(f"The {'changed ' if more else ''}script fails: {answer['error'].rstrip('.')}.")
    return answer


def _refuse(call: ComparedCall) -> str:
    """Return why a call stays; empty where it can be exchanged."""
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
            left.append(LeftAlone(_change([call]), str(error)))
    return written, {file: _spliced(sources[file].raw, made) for file, made in splices.items() if made}, left


def _spliced(raw: bytes, made: Sequence[Splice]) -> str:
    return splice(raw, made, 0, len(raw)).decode()


def _change(calls: Sequence[ComparedCall]) -> Change:
    words = f"Predict a batch at a time by predict_on_batch, in place of {', '.join(each.words for each in calls)}."
    return Change(PREDICT_ON_BATCH, None, (), Effect.PREDICTIONS, Risk.LOW, words, (ALSO,), calls[0].place)


def _total_ms(calls: Sequence[ComparedCall], name: str) -> float:
    return sum(each.count * (getattr(each, name) or 0.0) for each in calls)
