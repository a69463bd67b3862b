"""What to change about a run: every rule's proposals, predicted, ranked, and turned into suggestions.

The rules that improve how examples are mixed are here; those for speed and for caches have modules of their own.
"""

from collections.abc import Iterator

from pipeline_lab.advice.measured_run import Measured
from pipeline_lab.advice.option_changes import find_settings, source_diff, write_command
from pipeline_lab.advice.option_edits import edit_stages, set_stage
from pipeline_lab.advice.proposals import BOLD, CAREFUL, RISKS, SAFE, Case, Proposal, Rule
from pipeline_lab.advice.rules.cache_rules import CACHE_RULES
from pipeline_lab.advice.rules.speed_rules import SPEED_RULES, ragged
from pipeline_lab.advice.step_terms import example_bytes
from pipeline_lab.advice.what_if import Prediction, predict
from pipeline_lab.analysis.results import Results
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.analysis.verdict.verdict import LEAST_GAIN_PERCENT, Finding, Suggestion
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.functions import AugmentStage
from pipeline_lab.stages.order import ShuffleStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.units import format_bytes, format_count, format_percent

MUCH_OF_MEMORY = 0.25
"""Part of the memory for buffers beyond which a shuffle buffer is worth shrinking."""
COPY_SHARE = 0.05
"""Part of a step that copying a batch has to take before smaller types are worth a word."""
FLOAT_BYTES = 4


def sample_by_size(case: Case) -> Iterator[Proposal]:
    """Draw each record from a file with a chance that goes by its length."""
    read, found = case.options.pipeline.stages[0], _finding(case, "sampling-skew")
    if found is None or not isinstance(read, ReadStage) or read.mode == "sample" or read.num_shards > 1:
        return
    plain = ReadStage(mode="sample").model_dump(mode="json")
    yield Proposal(
        "Read with mode = sample, which draws each record from a file by the file's size.",
        found.sentence,
        set_stage(case.options, 0, **plain),
        ("All files are open at once.", "Records of each file keep their order; keep a shuffle stage."),
        CAREFUL,
        serves_sampling=True,
    )


def larger_shuffle(case: Case) -> Iterator[Proposal]:
    """Let the buffer cover the data, where it fits."""
    found, records = _finding(case, "weak-shuffle"), case.measured.records
    if found is None or records is None:
        return
    if case.options.pipeline.find("shuffle") is None:
        yield from _new_shuffle(case, found, records)
    for index, stage in enumerate(case.options.pipeline.stages):
        size = example_bytes(case.options, case.measured)[index]
        is_single = case.options.pipeline.batch_sizes[index] is None
        if not isinstance(stage, ShuffleStage) or not is_single or size is None or stage.buffer_size >= records:
            continue
        if case.ram_bytes is None or records * size > case.ram_bytes:
            continue
        yield Proposal(
            f"Let the shuffle buffer hold all {format_count(records)} examples.",
            found.sentence,
            set_stage(case.options, index, buffer_size=records),
            (
                f"The buffer takes {format_bytes(records * size)} of memory instead of "
                f"{format_bytes(stage.buffer_size * size)}, and the first batch waits until it is full.",
            ),
            CAREFUL,
            serves_sampling=True,
        )


def smaller_shuffle(case: Case) -> Iterator[Proposal]:
    """Give memory back that a shuffle buffer takes beyond what is there."""
    for index, stage in enumerate(case.options.pipeline.stages):
        size = example_bytes(case.options, case.measured)[index]
        if not isinstance(stage, ShuffleStage) or size is None or case.ram_bytes is None or stage.buffer_size < 2:
            continue
        held_bytes = stage.buffer_size * size * (case.options.pipeline.batch_sizes[index] or 1)
        if held_bytes <= MUCH_OF_MEMORY * case.ram_bytes:
            continue
        fewer = max(1, int(stage.buffer_size * MUCH_OF_MEMORY * case.ram_bytes / held_bytes))
        yield Proposal(
            f"Shrink the shuffle buffer to {format_count(fewer)} elements.",
            f"It takes {format_bytes(held_bytes)} of the {format_bytes(case.ram_bytes)} available to buffers; reading the "
            "files in a new order each epoch makes up for a smaller one.",
            set_stage(case.options, index, buffer_size=fewer),
            ("Examples that are close in the files stay closer together.",),
            BOLD,
            serves_sampling=True,
        )


def smaller_types(case: Case) -> Iterator[Proposal]:
    """Keep images as bytes until they are on the device; no option does that."""
    stages = case.options.pipeline.stages
    augment = next((index for index, stage in enumerate(stages) if isinstance(stage, AugmentStage)), None)
    batch = next((time for time in case.times if time.running.stage.stage == "batch"), None)
    if augment is None or batch is None or batch.running.index < augment:
        return
    size = example_bytes(case.options, case.measured)[augment]
    if size is None or batch.work_ns < COPY_SHARE * case.measured.step_ns:
        return
    whole = size * case.options.pipeline.batch_size
    yield Proposal(
        "Keep images as uint8 up to the batch, and convert them to float in the training step.",
        f"A batch is {format_bytes(whole)} of float32, and putting it together takes {100 * batch.work_ns / case.measured.step_ns:.0f} % "
        f"of a step; as bytes it would be {format_bytes(whole / FLOAT_BYTES)}.",
        None,
        ("Rotations and scaling must be done in the training step or rounded to bytes.",),
        SAFE,
        in_words=True,
    )


SAMPLING_RULES: tuple[Rule, ...] = (sample_by_size, larger_shuffle, smaller_shuffle, smaller_types)


def _new_shuffle(case: Case, found: Finding, records: int) -> Iterator[Proposal]:
    """Propose a shuffle stage after the reader, if all records fit into its buffer."""
    size = example_bytes(case.options, case.measured)[0]
    if size is None or case.ram_bytes is None or records * size > case.ram_bytes:
        return
    new = {"stage": "shuffle", "buffer_size": records}
    yield Proposal(
        f"Add a shuffle stage after the reader, with room for all {format_count(records)} examples.",
        found.sentence,
        edit_stages(case.options, lambda stages: [stages[0], new, *stages[1:]]),
        (f"Its buffer takes {format_bytes(records * size)} of memory, and the first batch waits until it is full.",),
        CAREFUL,
        serves_sampling=True,
    )


def _finding(case: Case, kind: str) -> Finding | None:
    return next((found for found in find_all_findings(case.results) if found.kind == kind), None)


RULES: tuple[Rule, ...] = (*SPEED_RULES, *CACHE_RULES, *SAMPLING_RULES, ragged)
MOST = 8
"""Suggestions that are handed out; a tired person reads no more."""
NO_OPTION = Unavailable("No option does this, so the gain is not predicted; measure it in your own code.")


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
