import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab import analyze
from pipeline_lab.analysis.causes import GapCause
from pipeline_lab.analysis.sampling.file_sampling import FileSampling, SameSource
from pipeline_lab.comparison.race_arms import ArmIdle, ArmResult
from pipeline_lab.comparison.race_result import Race, describe_answer, find_warnings, read_race
from pipeline_lab.errors import StoreError, TraceIncompleteError, Unavailable
from pipeline_lab.figures.comparing.race_charts import race_intervals, race_steps
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import set_options
from pipeline_lab.runs.run_documents import DataFile, write_files
from pipeline_lab.runs.run_tables import SAMPLES, TableWriter
from pipeline_lab.runs.store import RunStore
from pipeline_lab.statistics.outcome import GateAnswer, Outcome
from pipeline_lab.statistics.sequential import SequentialResult
from tests.support.presets import BASELINE, OPTIMISED
from tests.support.races import WORDS, PlantedArm, make_race
from tests.support.run_folders import make_run

TRACE = Path(__file__).parents[1] / "data" / "python_between_steps.xplane.pb"
PAIRS = 30
WOBBLE = np.random.default_rng(1).normal(1, 0.01, (2, PAIRS))


def _race(root: Path, ratio: float, rounds: int = PAIRS, **options: float) -> Race:
    arms = (PlantedArm(20 * WOBBLE[0, :rounds]), PlantedArm(20 * ratio * WOBBLE[1, :rounds]))
    return read_race(make_race(RunStore(root), *arms, options=WORDS.model_copy(update=options)))


@pytest.mark.parametrize(
    ("ratio", "outcome", "sentence"),
    [
        (0.8, Outcome.FASTER, "optimised is faster than baseline: its step takes "),
        (1.25, Outcome.SLOWER, "optimised is slower than baseline: its step takes "),
        (1.0, Outcome.EQUIVALENT, "optimised takes as long as baseline"),
    ],
)
def test_a_planted_ratio_is_found_and_worded(tmp_path: Path, ratio: float, outcome: Outcome, sentence: str) -> None:
    (candidate,) = _race(tmp_path, ratio).candidates
    result = candidate.standing.result
    assert result is not None
    assert candidate.standing.outcome is outcome
    assert result.low < ratio < result.high
    assert candidate.sentence.startswith(sentence)
    assert candidate.paired is not None
    assert candidate.paired.ratio == pytest.approx(ratio, rel=0.01)


@pytest.mark.slow
def test_arms_of_different_batch_sizes_are_compared_per_example(tmp_path: Path) -> None:
    """Steps of 30 ms for 256 examples against 20 ms for 128: an example takes three quarters of the time."""
    twice = set_options(OPTIMISED.options, [("pipeline.batch.size", "256")])
    options = RaceOptions(arms=(BASELINE.options, twice), fail_if_slower_percent=5.0, predicted_ratios=(0.75,))
    arms = PlantedArm(20 * WOBBLE[0]), PlantedArm(30 * WOBBLE[1])
    race = read_race(make_race(RunStore(tmp_path), *arms, options=options))
    (candidate,) = race.candidates
    assert candidate.standing.outcome is Outcome.FASTER
    assert candidate.standing.result is not None
    assert candidate.standing.result.ratio == pytest.approx(0.75, rel=0.01)
    assert candidate.paired is not None
    assert candidate.paired.ratio == pytest.approx(0.75, rel=0.01)
    assert candidate.sentence.startswith("optimised is faster than baseline: an example takes it 2")
    assert candidate.sentence.endswith("Predicted: 25 % less time.")
    assert race.gate is not None
    assert race.gate.answer is GateAnswer.PASSED
    assert race.gate.sentence == "No candidate is slower than baseline by more than 5 % per example."
    assert race.to_json()["per"] == "example"
    assert "per example" in race_intervals(race).layout.title.text
    steps = race_steps(race)
    assert steps.layout.xaxis.title.text == "Mean time per example (µs)"
    total = [sum(bar.x[arm] for bar in steps.data) for arm in range(2)]
    assert total == pytest.approx([20_000 / 128, 30_000 / 256], rel=0.02)


@pytest.mark.slow
def test_each_arm_has_its_time_wait_and_cost(tmp_path: Path) -> None:
    baseline, candidate = _race(tmp_path, 0.5).arms
    assert (baseline.steps, candidate.steps) == (300, 300)
    assert baseline.step_ns == pytest.approx(20e6, rel=0.01)
    assert candidate.step_ns == pytest.approx(10e6, rel=0.01)
    assert baseline.wait_ns == pytest.approx(baseline.step_ns / 2, rel=1e-6)
    assert baseline.cpu_s_per_1000 == pytest.approx(0.005 / 128 * 1000)
    assert isinstance(baseline.sampling, FileSampling)
    assert baseline.loss == pytest.approx(1.0, abs=0.02)
    assert isinstance(baseline.idle, Unavailable)


@pytest.mark.slow
def test_an_arms_idle_time_is_that_of_the_window_recorded_after_its_blocks(tmp_path: Path) -> None:
    folder = make_race(RunStore(tmp_path), *[PlantedArm(20 * WOBBLE[arm]) for arm in range(2)])
    window = folder.arm(1).window("window-0001")
    window.mkdir(parents=True)
    shutil.copy(TRACE, window / "host.xplane.pb")
    baseline, candidate = read_race(folder).arms
    assert isinstance(baseline.idle, Unavailable)
    assert isinstance(candidate.idle, ArmIdle)
    gaps = analyze(TRACE).idle_gaps
    assert not isinstance(gaps, Unavailable)
    assert candidate.idle.idle_percent == pytest.approx(100 * gaps.idle_ns / (gaps.idle_ns + gaps.busy_ns))
    assert (candidate.idle.device, candidate.idle.cause) == ("host compute", GapCause.PYTHON)


def test_too_few_rounds_say_so(tmp_path: Path) -> None:
    (candidate,) = _race(tmp_path, 0.5, rounds=3).candidates
    assert candidate.standing.outcome is Outcome.UNDECIDED
    assert candidate.smallest_effect is None
    assert "Too few rounds" in candidate.sentence


def test_an_interval_that_excludes_nothing_is_not_written_out() -> None:
    known = SequentialResult(4, 0.911, 0.0, math.inf, 1.0, 0.05)
    told = describe_answer("new", "old", known, Outcome.UNDECIDED, None, "step")
    assert told == "new and old cannot be distinguished (ratio 0.911; too few pairs for an interval)."


def test_a_race_whose_rounds_were_all_disturbed_is_undecided_and_says_why(tmp_path: Path) -> None:
    hot = dict.fromkeys(range(PAIRS), np.inf)
    arms = (PlantedArm(20 * WOBBLE[0], load_percent=hot), PlantedArm(10 * WOBBLE[1]))
    options = WORDS.model_copy(update={"fail_if_slower_percent": 5.0})
    race = read_race(make_race(RunStore(tmp_path), *arms, options=options))
    (candidate,) = race.candidates
    assert (race.rounds, race.kept_rounds, candidate.standing.outcome) == (PAIRS, 0, Outcome.UNDECIDED)
    assert candidate.sentence.startswith("Nothing can be said about optimised and baseline: 0 of 30 rounds count, for")
    assert "heat or power" in candidate.sentence
    assert race.gate is not None
    assert race.gate.answer is GateAnswer.UNDECIDED
    assert race.arms[0].step_ns == pytest.approx(20e6, rel=0.01), "what was measured is shown all the same"
    assert json.dumps(race.to_json(), allow_nan=False)


def test_rounds_that_other_programs_disturbed_are_blamed_on_them(tmp_path: Path) -> None:
    busy = dict.fromkeys(range(4, PAIRS), 90.0)
    arms = (PlantedArm([20.0] * 7, load_percent=busy), PlantedArm([10.0] * 7))
    (candidate,) = read_race(make_race(RunStore(tmp_path), *arms)).candidates
    assert "4 of 7 rounds count, for other programs" in candidate.sentence


def test_what_could_not_be_decided_names_the_effect_that_would_have_shown(tmp_path: Path) -> None:
    noise = np.exp(np.random.default_rng(2).normal(0, 0.2, (2, PAIRS)))
    race = read_race(make_race(RunStore(tmp_path), PlantedArm(20 * noise[0]), PlantedArm(20 * noise[1])))
    (candidate,) = race.candidates
    assert candidate.standing.outcome is Outcome.UNDECIDED
    assert candidate.smallest_effect is not None
    assert 1.1 < candidate.smallest_effect < 1.4
    assert "would have shown" in candidate.sentence


def test_a_disturbed_round_counts_for_no_arm(tmp_path: Path) -> None:
    slow = np.where(np.arange(PAIRS) == 10, 200.0, 20.0)
    arms = (PlantedArm([20.0] * PAIRS), PlantedArm(slow, load_percent={10: 90.0}))
    race = read_race(make_race(RunStore(tmp_path), *arms))
    assert (race.rounds, race.kept_rounds) == (30, 29)
    assert [arm.steps for arm in race.arms] == [290, 290]
    assert race.candidates[0].standing.outcome is Outcome.EQUIVALENT


def test_a_faster_arm_that_learns_worse_is_flagged(tmp_path: Path) -> None:
    arms = (PlantedArm([20.0] * PAIRS, loss=1.0), PlantedArm([10.0] * PAIRS, loss=1.2))
    (candidate,) = read_race(make_race(RunStore(tmp_path), *arms)).candidates
    assert candidate.standing.outcome is Outcome.FASTER
    (warning,) = candidate.warnings
    assert "learns worse" in warning


def test_a_faster_arm_that_samples_worse_is_flagged(tmp_path: Path) -> None:
    arms = (PlantedArm([20.0] * PAIRS), PlantedArm([10.0] * PAIRS, files=(0, 0, 0, 1)))
    (candidate,) = read_race(make_race(RunStore(tmp_path), *arms)).candidates
    (warning,) = candidate.warnings
    assert "samples its files less evenly: 25 % of its examples" in warning


def test_an_arm_without_the_sample_probe_hides_no_other_arms_sampling(tmp_path: Path) -> None:
    folder = make_race(RunStore(tmp_path), *[PlantedArm([20.0] * PAIRS) for _ in range(2)])
    folder.arm(1).samples.unlink()
    first, second = read_race(folder).arms
    assert isinstance(first.sampling, FileSampling)
    assert second.sampling == Unavailable("The arm noted no samples; switch profiling.sample_probe on.")


def test_an_arm_whose_samples_contradict_its_files_says_so(tmp_path: Path) -> None:
    folder = make_race(RunStore(tmp_path), *[PlantedArm([20.0] * PAIRS) for _ in range(2)])
    write_files(folder.arm(1).files, [DataFile(f"/data/{index}.tfrecord", 10, 10_000) for index in range(2)])
    first, second = read_race(folder).arms
    assert isinstance(first.sampling, FileSampling)
    assert isinstance(second.sampling, Unavailable)
    assert "holds 10 records, but the job used its record 11" in second.sampling.reason


def test_the_sampling_of_arms_is_held_against_each_other_over_as_many_examples(tmp_path: Path) -> None:
    """One arm has noted 300 examples, one in each batch; the other 600, two in each."""
    folder = make_race(RunStore(tmp_path), *[PlantedArm([20.0] * PAIRS) for _ in range(2)])
    samples = TableWriter(folder.arm(1).samples, SAMPLES)
    for number in range(600):
        samples.append(number // 2, number % 2, number)
    samples.close()
    for arm in read_race(folder).arms:
        assert isinstance(arm.sampling, FileSampling)
        assert sum(arm.sampling.table.column("samples").to_pylist()) == 300


def test_alike_arms_are_not_flagged(tmp_path: Path) -> None:
    assert _race(tmp_path, 0.5).candidates[0].warnings == ()


@pytest.mark.parametrize(("ratio", "answer"), [(1.0, GateAnswer.PASSED), (1.2, GateAnswer.CROSSED)])
def test_the_gate_answers_for_the_limit(tmp_path: Path, ratio: float, answer: GateAnswer) -> None:
    gate = _race(tmp_path, ratio, fail_if_slower_percent=5.0).gate
    assert gate is not None
    assert gate.answer is answer
    assert "baseline by more than 5 %" in gate.sentence


def test_the_gate_is_undecided_while_too_little_is_known(tmp_path: Path) -> None:
    gate = _race(tmp_path, 1.2, rounds=4, fail_if_slower_percent=5.0).gate
    assert gate is not None
    assert gate.answer is GateAnswer.UNDECIDED


def test_without_a_limit_there_is_no_gate(tmp_path: Path) -> None:
    assert _race(tmp_path, 1.2).gate is None


@pytest.mark.parametrize("rounds", [3, PAIRS])
def test_json_holds_no_infinity(tmp_path: Path, rounds: int) -> None:
    document = json.loads(json.dumps(_race(tmp_path, 0.8, rounds).to_json(), allow_nan=False))
    assert document["schema_version"] == 2
    assert [arm["name"] for arm in document["arms"]] == ["baseline", "optimised"]
    assert set(document["candidates"][0]) >= {"ratio", "low", "high", "p_value", "outcome", "sentence"}


def test_a_plain_run_is_no_race(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a race"):
        read_race(make_run(RunStore(tmp_path)))


def test_a_race_without_a_round_says_so(tmp_path: Path) -> None:
    folder = make_race(RunStore(tmp_path), PlantedArm([]), PlantedArm([]))
    with pytest.raises(TraceIncompleteError, match="before its first round"):
        read_race(folder)


def test_a_faster_arm_that_puts_views_together_is_flagged(tmp_path: Path) -> None:
    baseline, candidate = _race(tmp_path, 0.5).arms
    apart, together = SameSource(10, 128, 5.0, 3.5), SameSource(10, 128, 128.0, 3.5)
    pair = [_with_views(baseline, apart), _with_views(candidate, together)]
    (warning,) = find_warnings(*pair)
    assert "128 of the 128 examples of a batch share their image with another one, 5 of baseline's." in warning
    assert find_warnings(*reversed(pair)) == ()


def _with_views(arm: ArmResult, views: SameSource) -> ArmResult:
    assert not isinstance(arm.sampling, Unavailable)
    return replace(arm, sampling=replace(arm.sampling, same_source=views))
