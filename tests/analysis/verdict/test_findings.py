from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pipeline_lab.advice.advising import advise
from pipeline_lab.analysis.declaring import tables
from pipeline_lab.analysis.machine.profiler_cost import WINDOW_TABLE
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.analysis.sampling import file_sampling
from pipeline_lab.analysis.sampling.evaluation import PASS_TABLE, Evaluation
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.sampling.file_sampling import FileSampling
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.checkpoints import Checkpoints
from pipeline_lab.analysis.steps.iterator_ends import IteratorEnds
from pipeline_lab.analysis.steps.job_steps import JobSteps, Predicts
from pipeline_lab.analysis.steps.retracing import RETRACE_TABLE, Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown, count_training_steps
from pipeline_lab.analysis.steps.stragglers import compare_hosts
from pipeline_lab.analysis.verdict.findings import evaluation_percent, find_all_findings
from pipeline_lab.analysis.verdict.recording_effects import why_no_device
from pipeline_lab.analysis.verdict.verdict_rules import reach_verdict
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.runs.run_events import PredictEvent
from pipeline_lab.runs.run_tables import SAMPLES
from pipeline_lab.trace.schema import Salvage
from tests.analysis.steps.test_stragglers import breakdown, side_by_side
from tests.analysis.verdict.test_recording_effects import slower_while_recorded
from tests.analysis.verdict.test_verdict_rules import divided
from tests.support import results


def kinds(**changes: object) -> list[str]:
    clean = {
        "file_sampling": sampled([500, 500], [(n % 2, n // 2) for n in range(1000)]),
        "outlier_steps": results.outlier_steps(0),
        "hosts": Unavailable("One host."),
    }
    return [finding.kind for finding in find_all_findings(results.diagnosis(**{**clean, **changes}))]


def sampled(records: list[int], used: list[tuple[int, int]]) -> FileSampling:
    """Return the sampling of files of the given sizes by (file, record), one per step."""
    rows = [(step, file, record) for step, (file, record) in enumerate(used)]
    table = pa.table(dict(zip(SAMPLES.schema.names, zip(*rows, strict=True), strict=True)), schema=SAMPLES.schema)
    files = [DataFile(f"f{index}", count, 1) for index, count in enumerate(records)]
    return file_sampling.measure_sampling(files, table, FileReads({}, {}))


def test_a_sound_run_has_no_findings():
    assert kinds() == []


def sentence(sampling: FileSampling) -> str:
    (found,) = find_all_findings(results.diagnosis(file_sampling=sampling))
    return found.sentence


def test_files_that_are_not_sampled_by_size():
    skewed = sampled([100, 300], [(n % 2, n // 2 % (100, 300)[n % 2]) for n in range(400)])
    assert kinds(file_sampling=skewed)[0] == "sampling-skew"
    # what chance alone gives is not taken for nothing where it was not simulated
    assert "sampling-skew" not in kinds(file_sampling=replace(skewed, total_variation_ideal=None))


def test_skew_among_the_files_that_a_part_of_an_epoch_reads_side_by_side():
    skewed = sampled([1000, 3000], [(n % 2, n // 2) for n in range(400)])
    assert kinds(file_sampling=skewed) == ["sampling-skew"]
    assert sentence(skewed).startswith("This run saw only 10 % of an epoch, but the files that it read were not")


def test_a_mix_that_is_right_only_in_the_end():
    thirds_then_halves = [(n % 2, n // 2) for n in range(400)] + [(1, 200 + n) for n in range(400)]
    assert kinds(file_sampling=sampled([200, 600], thirds_then_halves)) == ["sampling-skew"]


def test_files_one_after_another():
    in_turn = sampled([500, 500], [(n // 500, n % 500) for n in range(1000)])
    assert kinds(file_sampling=in_turn) == ["weak-shuffle"]


def test_the_start_of_an_epoch_is_not_blamed_for_the_files_to_come():
    two_of_three = sampled([300, 300, 300], [(n // 300, n % 300) for n in range(500)])
    assert kinds(file_sampling=two_of_three) == ["weak-shuffle", "low-coverage"]
    found = find_all_findings(results.diagnosis(file_sampling=two_of_three))
    assert all(one.sentence.startswith("This run saw only 55.6 % of an epoch") for one in found)


def test_a_handful_of_samples_proves_nothing():
    assert kinds(file_sampling=sampled([1000, 1000, 1000], [(0, 0), (0, 1), (1, 0)])) == []


def test_one_file_in_its_stored_order():
    assert kinds(file_sampling=sampled([400], [(0, n) for n in range(400)])) == ["weak-shuffle"]


def test_files_that_are_never_reached():
    first_of_three = sampled([100, 100, 100], [(0, n % 100) for n in range(90)])
    assert "low-coverage" in kinds(file_sampling=first_of_three)


def test_an_epochs_worth_that_uses_half_of_the_records():
    half = sampled([100, 100], [(n % 2, n // 2 % 50) for n in range(200)])
    assert kinds(file_sampling=half) == ["low-coverage", "duplicates"]


def test_what_stages_leave_out_for_good_is_not_held_against_the_run():
    half = replace(sampled([100, 100], [(0, n % 100) for n in range(200)]), visible_percent=50.0)
    assert kinds(file_sampling=half) == ["low-coverage"]
    assert sentence(half) == (
        "This run could see only 50 % of the data, because stages of its pipeline (take, skip, shards) leave out the "
        "rest; it used 50 %."
    )


def test_damage_is_said_with_what_was_lost():
    source = replace(results.diagnosis().source, salvaged=Salvage(1200, 77, "The file ends too early."))
    found = find_all_findings(results.diagnosis(source=source, file_sampling=sampled([1], [(0, 0)])))[0]
    assert found.kind == "salvaged"
    assert "The file ends too early." in found.sentence
    assert [item.value for item in found.evidence] == ["1.2 kB", "77"]


def test_a_damaged_file_gets_no_advice_about_permissions():
    source = replace(results.diagnosis().source, unseen_device=True)
    whole, cut = (
        next(one for one in find_all_findings(results.diagnosis(source=found)) if one.kind == "device-plane-missing")
        for found in (source, replace(source, salvaged=Salvage(1200, 77, "The file is cut off.")))
    )
    assert "CUPTI" in whole.sentence
    assert "CUPTI" not in cut.sentence
    assert "copy the whole file" in cut.sentence
    assert "CUPTI" not in why_no_device(replace(source, salvaged=Salvage(1200, 77, "The file is cut off.")))


def test_every_file_that_was_left_out_is_named():
    source = replace(results.diagnosis().source, unreadable=("a.pb is empty.", "b.pb is of another tool."))
    found = next(one for one in find_all_findings(results.diagnosis(source=source)) if one.kind == "unreadable")
    assert "a.pb" in found.sentence
    assert [one.value for one in found.evidence] == ["b.pb is of another tool."]


def test_other_conditions_of_the_capture():
    source = results.diagnosis().source
    assert kinds(source=replace(source, unseen_device=True)) == ["device-plane-missing"]
    assert kinds(source=replace(source, kept_apart=True)) == ["kept-apart"]
    assert kinds(source=replace(source, unreadable=("x.pb is empty.",))) == ["unreadable"]
    assert kinds(source=replace(source, kind="derived")) == ["stored-analysis"]
    assert kinds(other_cpu_percent=60.0) == ["busy-machine"]
    assert kinds(other_cpu_percent=40.0) == []


def test_captures_of_a_single_step():
    one = replace(results.steps(), table=results.steps().table.slice(0, 1))
    assert kinds(steps=replace(one, first_step_only=True)) == ["first-step-only"]
    assert kinds(steps=one) == ["one-step"]


def test_compiling_after_the_first_step():
    breakdown = results.diagnosis().step_breakdown
    compiling = replace(breakdown, compile_ns=10**9)
    assert kinds(step_breakdown=compiling) == ["retracing"]
    traced = tables.build(
        RETRACE_TABLE, 1, host="h", window=0, step=[0], start_ns=[0], duration_ns=9, function=["f"], dataset=None
    )
    assert kinds(step_breakdown=compiling, retraces=Retraces(traced)) == [], "in one step, as the first one"


def test_checkpoints_that_hold_the_steps_up():
    breakdown = results.step_breakdown()
    saving = replace(breakdown, checkpoint_ns=breakdown.total_ns)
    assert kinds(step_breakdown=saving, checkpoints=Unavailable("not noted")) == ["checkpoint-stall"]


def test_checkpoints_are_judged_over_the_whole_job_where_they_were_noted():
    breakdown = results.step_breakdown()
    in_windows = replace(breakdown, checkpoint_ns=breakdown.total_ns)
    rare, often = (Checkpoints(4, total, total // 2, 100 * total_ns) for total, total_ns in ((40, 40), (60, 6)))
    assert kinds(step_breakdown=in_windows, checkpoints=rare) == []
    assert kinds(checkpoints=often) == ["checkpoint-stall"]


def test_checkpoints_that_take_much_of_the_training_are_named_and_advised_against_whatever_else_holds_it_back():
    little, much = (Checkpoints(4, total, total // 2, 100) for total in (15, 40))
    found = results.diagnosis(
        step_breakdown=divided(python=60, host_compute=40),
        job_steps=Unavailable("A log."),
        calibration=Unavailable("A log."),
    )
    for noted, is_told in ((little, False), (much, True)):
        whole = replace(found, checkpoints=noted)
        whole = replace(whole, verdict=reach_verdict(whole))
        assert whole.verdict.sentence.endswith("Writing checkpoints takes 40 % of the training.") == is_told
        assert advise(whole).verdict.suggestions[0].change.startswith("Write checkpoints less often") == is_told


def test_ends_of_iterators_are_told_where_they_take_a_part_of_the_training():
    little, much = (IteratorEnds(3, total, total // 2, 1000) for total in (10, 300))
    assert kinds(iterator_ends=little) == []
    assert kinds(iterator_ends=much) == ["iterator-ends"]


def test_collectives_of_a_host_whose_partners_were_not_recorded():
    breakdown = results.step_breakdown()
    waiting = replace(breakdown, collective_ns=breakdown.total_ns)
    assert kinds(step_breakdown=waiting) == ["collectives"]
    assert kinds(step_breakdown=waiting, hosts=results.hosts()) == ["stragglers"]


def test_a_slow_host_among_hosts_without_collectives_holds_nobody_back():
    fast, slow = {"device_compute": 10}, {"device_compute": 10, "input_wait": 30}
    apart = results.diagnosis(hosts=side_by_side(a=[fast] * 4, b=[slow] * 4))
    (told,) = [finding.sentence for finding in find_all_findings(apart) if finding.kind == "stragglers"]
    assert told.startswith("b is slower than the other hosts")
    assert "none waits for another" in told


def test_hosts_that_exchange_values_in_few_of_their_steps_wait_for_each_other_there():
    fast, slow = {"device_compute": 10}, {"device_compute": 10, "input_wait": 30}
    parts = breakdown(a=[*[fast] * 3, {**fast, "collective": 120}], b=[slow] * 4)
    told = [
        one.sentence for one in find_all_findings(results.diagnosis(step_breakdown=parts, hosts=compare_hosts(parts)))
    ]
    (stragglers,) = [sentence for sentence in told if sentence.startswith("b ")]
    assert stragglers.startswith("b holds the other hosts back")


def test_outliers_that_cost_time():
    # 2 x 100 of 195 x 150 ms are too little, of 5 s they are 4 %
    assert kinds(outlier_steps=results.outlier_steps(2)) == []
    assert kinds(outlier_steps=replace(results.outlier_steps(2), steps_ns=5 * 10**9)) == ["outlier-steps"]


def test_outliers_are_laid_to_what_costs_most_not_to_what_happens_most():
    """Three flushes take 20 ms more each, one checkpoint 100."""
    found = results.outlier_steps(4)
    causes, excess_ms = ["flush", "checkpoint", "flush", "flush"], (20, 100, 20, 20)
    table = tables.replace_column(found.table, "cause", causes)
    table = tables.replace_column(table, "excess_ns", np.array(excess_ms) * 10**6)
    costly = replace(found, table=table, steps_ns=5 * 10**9)
    [finding] = [
        one for one in find_all_findings(results.diagnosis(outlier_steps=costly)) if one.kind == "outlier-steps"
    ]
    assert finding.sentence.endswith("mainly because of checkpoints.")
    assert [evidence.value for evidence in finding.evidence[:2]] == ["1 step, 100 ms more", "3 steps, 60 ms more"]


def test_hidden_contention_is_work_beyond_the_held_batch_that_no_wait_shows():
    # the steps wait 30 ms on average; of 60 ms they work 30, the compute-only step takes 16; the pipeline needs 60
    crowded = Calibration(16e6, 60e6, 60e6)
    assert kinds(calibration=crowded) == ["hidden-contention"]
    assert kinds(calibration=crowded, other_cpu_percent=70.0) == ["busy-machine"]
    assert kinds(calibration=replace(crowded, pipeline_only_ns=32e6)) == []  # it cannot take 14 ms with 2
    # epochs begin with long waits, so most steps wait less than 30 ms: once its batch is there one takes 21 of them, or 26
    assert kinds(calibration=replace(crowded, busy_ns=21e6)) == []
    assert kinds(calibration=replace(crowded, busy_ns=26e6)) == ["hidden-contention"]


def test_the_copy_of_a_batch_to_the_device_is_no_contention():
    """Of 60 ms the steps wait 30; alone on a batch that the device holds they take 16. The device waits 14 for each copy."""
    crowded, breakdown = Calibration(16e6, 60e6, 60e6), results.diagnosis().step_breakdown
    assert not isinstance(breakdown, Unavailable)
    copies_ns = round(14e6 * count_training_steps(breakdown, results.steps()))
    assert kinds(calibration=crowded, step_breakdown=replace(breakdown, host_to_device_ns=copies_ns)) == []


def test_the_profilers_own_price():
    cost = results.profiler_cost()
    assert kinds(profiler_cost=replace(cost, profiled_step_ns=57e6, plain_step_ns=50e6)) == ["profiler-overhead"]
    columns = cost.windows.to_pydict()
    columns["shortened"][0] = True
    shortened = replace(cost, windows=pa.table(columns, schema=WINDOW_TABLE))
    assert kinds(profiler_cost=shortened) == ["shortened-windows"]


def test_what_recording_adds_is_called_left_out_where_the_verdict_leaves_it_out():
    cost = replace(results.profiler_cost(), profiled_step_ns=50e6, plain_step_ns=33e6)

    def said(parts: StepBreakdown, job: JobSteps) -> str:
        found = find_all_findings(results.diagnosis(profiler_cost=cost, step_breakdown=parts, job_steps=job))
        return next(each.sentence for each in found if each.kind == "profiler-overhead")

    job, launching = slower_while_recorded(50, 33), divided(dispatch=40, device_compute=60)
    recorded = np.flatnonzero(tables.bools(job.table, "profiled"))
    few = np.isin(np.arange(job.table.num_rows), recorded[:5])
    for parts in (launching, divided(host_compute=100)):
        assert said(parts, job).endswith("; the verdict leaves that out.")
    for parts, steps in (
        (launching, replace(job, table=tables.replace_column(job.table, "profiled", few))),
        (divided(device_compute=100), job),
    ):
        assert said(parts, steps).endswith("somewhat more time than the job normally needs.")


def test_views_of_an_image_that_meet_in_batches():
    rows = pa.table(
        {"step": [n // 10 for n in range(100)], "file": [0] * 100, "record": range(100)}, schema=SAMPLES.schema
    )
    together = file_sampling.measure_sampling([DataFile("f", 100, 1)], rows, FileReads({}, {}), views=5)
    assert "In a batch of 10, 10 examples share their image" in sentence(replace(together, mixing=None))


def test_all_lines_that_call_predict_are_summed_up_and_named() -> None:
    lines = [
        PredictEvent(f"q.predict at train.py:{line}", 20, ms * 10**6, 10**9) for line, ms in ((40, 300), (34, 200))
    ]
    predicts = Predicts(tuple(lines))
    assert predicts is not None
    job = replace(results.job_steps(), predicts=predicts)
    (found,) = [each for each in find_all_findings(results.diagnosis(job_steps=job)) if each.kind == "small-predicts"]
    assert found.sentence.startswith(
        "50 % of the training passed in q.predict at train.py:40, q.predict at train.py:34,"
    )
    assert found.sentence.endswith("it returns the same array. Do the same with q.predict at train.py:34.")
    assert Predicts.of([]) is None


def test_many_calls_of_predict_are_told_with_what_to_call_instead() -> None:
    job = replace(
        results.job_steps(),
        predicts=Predicts((PredictEvent("model.predict at train.py:4", 20, 60_000_000, 100_000_000),)),
    )
    (found,) = [each for each in find_all_findings(results.diagnosis(job_steps=job)) if each.kind == "small-predicts"]
    assert found.sentence.startswith("60 % of the training passed in model.predict at train.py:4")
    assert found.sentence.endswith("it returns the same array.")
    assert [evidence.value for evidence in found.evidence] == ["20", "3 ms"]


def _evaluated(percent: int, call: str | None = None, from_ns: int = 0) -> Diagnosis:
    """Return a job of which four evaluations take that part of the time, by a call of the script, from some time after its warm-up."""
    job = results.job_steps()
    begun_ns = int(tables.ints(job.table, "start_ns")[~tables.bools(job.table, "warmup")][0])
    passes = tables.build(
        PASS_TABLE,
        4,
        **{"pass": np.arange(4), "step": np.arange(4), "batches": 8, "call": [call] * 4, "first_batch_ns": 1000},
        start_ns=begun_ns + from_ns + np.arange(4),
        duration_ns=job.total_ns * percent // (100 - percent) // 4,
        loss=None,
        accuracy=None,
    )
    whole = results.diagnosis(job_steps=job, evaluation=Evaluation(passes, None, 0, Unavailable("none")))
    return replace(whole, verdict=reach_verdict(whole))


def test_evaluations_that_take_little_of_the_time_are_not_told():
    few = _evaluated(10)
    assert "Evaluations" not in few.verdict.sentence
    assert not [each for each in find_all_findings(few) if each.kind == "evaluations"]
    assert not [one for one in advise(few).verdict.suggestions if one.change.startswith("Evaluate less often")]


def test_evaluations_that_take_much_of_the_time_are_told_after_the_steps():
    much = _evaluated(40)
    assert much.verdict.sentence.endswith(" Evaluations take 40 % of the whole time.")
    (found,) = [each for each in find_all_findings(much) if each.kind == "evaluations"]
    assert found.sentence.startswith("40 % of the time passed in evaluations")
    assert [one.change[:19] for one in advise(much).verdict.suggestions].index("Evaluate less often") == 1


def test_evaluations_that_take_most_of_the_time_come_first_with_the_line_that_calls_them():
    most = _evaluated(60, "model.evaluate at train.py:40")
    first = "Evaluations take 60 % of the whole time, most of it in model.evaluate at train.py:40. "
    assert most.verdict.sentence.startswith(first)
    change = "Call model.evaluate at train.py:40 less often, or on fewer batches."
    assert advise(most).verdict.suggestions[0].change == change
    (found,) = [each for each in find_all_findings(most) if each.kind == "evaluations"]
    assert found.sentence.endswith(change)


def test_evaluations_before_the_steps_that_are_judged_are_not_counted_either():
    assert evaluation_percent(_evaluated(40, from_ns=-9)) is None, "in the first of several epochs, say"


def test_what_a_script_evaluates_once_it_has_trained_holds_no_step_up():
    later_ns = results.job_steps().total_ns + 10**12
    assert evaluation_percent(_evaluated(40, "model.predict at test.py:4", from_ns=later_ns)) is None
    assert evaluation_percent(_evaluated(40, from_ns=later_ns)) == pytest.approx(40), "as fit validates its last epoch"
