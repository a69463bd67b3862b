"""What to try next, by rules with evidence: each a change of options, predicted, the best gain per risk first."""

from pipeline_lab.advice.cache_rules import CACHE_RULES
from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import find_settings, source_diff, write_command
from pipeline_lab.advice.proposals import RISKS, Case, Proposal, Rule
from pipeline_lab.advice.sampling_rules import SAMPLING_RULES
from pipeline_lab.advice.speed_rules import PADDING_RULES, SPEED_RULES
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.verdict.verdict import LEAST_GAIN_PERCENT, Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.units import format_percent

RULES: tuple[Rule, ...] = (*SPEED_RULES, *CACHE_RULES, *SAMPLING_RULES, *PADDING_RULES)
MOST = 8
"""Suggestions that are handed out; a tired person reads no more."""
NO_OPTION = Unavailable("No option of the lab does this, so it cannot be predicted; measure it in your own code.")


def suggest(results: Results, measured: Measured, run: str) -> tuple[Suggestion, ...]:
    """Return what to try, the best gain per risk first.

    Args:
        results: A run's diagnosis.
        measured: The same run, ready to be asked.
        run: What names it on the command line.
    """
    case = Case(measured, results)
    found: dict[str, tuple[float, Suggestion]] = {}
    for proposal in (proposal for rule in RULES for proposal in rule(case)):
        if proposal.in_words:
            found.setdefault(
                proposal.change, (0.0, Suggestion(proposal.change, proposal.why, NO_OPTION, proposal.side_effects))
            )
        elif proposal.options is not None:
            gain = _gain(predict(measured, proposal.options), measured)
            if proposal.serves_sampling or (isinstance(gain, float) and gain >= LEAST_GAIN_PERCENT):
                rank = 0.0 if isinstance(gain, Unavailable) else gain / proposal.risk
                found.setdefault(
                    _key(proposal.options), (rank, _word(proposal, proposal.options, measured.options, gain, run))
                )
    ordered = sorted(found.values(), key=lambda pair: -pair[0])
    return tuple(suggestion for _, suggestion in ordered[:MOST])


def _gain(prediction: Prediction | Unavailable, measured: Measured) -> float | Unavailable:
    return prediction if isinstance(prediction, Unavailable) else round(prediction.gain_percent(measured), 1)


def _cost(gain: float | Unavailable) -> tuple[str, ...]:
    """Say that a change that serves something else makes the step longer, where it does."""
    if isinstance(gain, Unavailable) or gain > -LEAST_GAIN_PERCENT:
        return ()
    return (f"Predicted: a step takes {format_percent(-gain)} longer.",)


def _key(options: RunOptions) -> str:
    return options.pipeline.model_dump_json() + options.workload.model_dump_json()


def _word(
    proposal: Proposal, options: RunOptions, before: RunOptions, gain: float | Unavailable, run: str
) -> Suggestion:
    settings = find_settings(before, options)
    return Suggestion(
        change=proposal.change,
        why=proposal.why,
        predicted_gain_percent=gain,
        side_effects=(*proposal.side_effects, *_cost(gain)),
        settings=settings,
        command=write_command(run, settings),
        source_diff=source_diff(before, options),
        options=options.model_dump(mode="json"),
        risk=RISKS[proposal.risk],
    )
