import math
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.legacy.derived import MAX_STAGES, is_derived, read_derived, read_session
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile, StoredSteps
from tests.support.xspace import chunk, double, number

MS = 1_000_000
PACKAGE = "type.googleapis.com/tensorflow.profiler."
PARTS = (
    "input_wait_ns",
    "host_to_device_ns",
    "device_compute_ns",
    "device_to_device_ns",
    "collective_ns",
    "output_ns",
    "host_compute_ns",
    "host_prepare_ns",
    "compile_ns",
    "unknown_ns",
)


def packed(kind: str, value: bytes) -> bytes:
    return chunk(1, (PACKAGE + kind).encode()) + chunk(2, value)


def generic_step(step: int, total: float, wait: float, **parts: float) -> bytes:
    """Encode a PerGenericStepDetails; times in ms."""
    numbers = {"unknown": 3, "infeed": 4, "device_compute": 6, "host_to_device": 12}
    body = number(1, step) + double(2, total) + double(11, wait)
    return body + b"".join(double(numbers[name], value) for name, value in parts.items())


def analysis(*steps: bytes, kind: str = "PerGenericStepDetails", extra: bytes = b"") -> bytes:
    return chunk(9, b"GPU") + b"".join(chunk(4, packed(kind, step)) for step in steps) + extra


def read(content: bytes, name: str = "worker.0.input_pipeline.pb") -> DerivedProfile:
    return read_derived(Path(name), content)


def parts_of(steps: StoredSteps) -> list[list[int]]:
    return [list(getattr(steps, name)) for name in PARTS]


def test_the_step_table_is_read_in_nanoseconds() -> None:
    profile = read(analysis(generic_step(7, 10.0, 4.0, device_compute=5.5, unknown=0.5), generic_step(8, 20.0, 1.0)))
    assert (profile.host, profile.hardware) == ("worker.0", "GPU")
    assert profile.steps.number.tolist() == [7, 8]
    assert profile.steps.total_ns.tolist() == [10 * MS, 20 * MS]
    assert profile.steps.input_wait_ns.tolist() == [4 * MS, 1 * MS]
    assert profile.steps.device_compute_ns.tolist() == [5_500_000, 0]
    assert profile.steps.unknown_ns.tolist() == [500_000, 0]


def test_the_share_of_the_total_and_the_mean_of_shares_are_told_apart() -> None:
    steps = read(analysis(generic_step(0, 10, 0), generic_step(1, 30, 24, host_to_device=3))).steps
    assert steps.input_percent == pytest.approx(100 * 27 / 40)
    assert steps.mean_step_input_percent == pytest.approx((0 + 90) / 2)


def test_without_steps_there_is_no_share_and_the_warning_remains() -> None:
    profile = read(analysis(extra=chunk(12, chunk(1, b"fine") + chunk(2, b"No step marker observed"))))
    assert profile.steps.count == 0
    assert profile.steps.input_percent is None
    assert profile.steps.mean_step_input_percent is None
    assert profile.warnings == ("No step marker observed",)


def test_the_single_infeed_field_of_the_first_releases_is_the_wait() -> None:
    body = number(1, 0) + double(2, 10.0) + double(4, 3.0)
    assert read(analysis(body)).steps.input_wait_ns.tolist() == [3 * MS]


def test_a_tpu_step_is_the_sum_of_its_parts() -> None:
    body = number(1, 5) + double(13, 6.0) + double(14, 1.0) + double(3, 2.0) + double(11, 0.5) + double(12, 0.5)
    steps = read(analysis(body, kind="PerTpuStepDetails")).steps
    assert steps.number.tolist() == [5]
    assert steps.total_ns.tolist() == [10 * MS]
    assert steps.input_wait_ns.tolist() == [2 * MS]
    assert steps.collective_ns.tolist() == [1 * MS]
    assert steps.unknown_ns.tolist() == [1 * MS]


def test_steps_of_unknown_kinds_are_left_out() -> None:
    assert read(analysis(generic_step(0, 1, 1), kind="PerQuantumStepDetails")).steps.count == 0


def test_the_verdict_is_kept_word_for_word() -> None:
    words = chunk(1, b"host") + chunk(2, b"HIGHLY input-bound") + chunk(4, b"launches") + chunk(6, b"others")
    recommendation = chunk(1, b"a detail") + chunk(2, packed("BottleneckAnalysis", words)) + chunk(3, b"Look.")
    verdict = read(analysis(extra=chunk(7, recommendation))).verdict
    assert (verdict.bottleneck, verdict.input_statement) == ("host", "HIGHLY input-bound")
    assert (verdict.launch_statement, verdict.other_statement, verdict.next_step) == ("launches", "others", "Look.")


def test_a_tpu_verdict_keeps_its_words_on_input_only() -> None:
    words = chunk(1, b"device") + chunk(2, b"NOT input-bound") + chunk(4, b"idle core")
    recommendation = chunk(2, packed("TpuBottleneckAnalysis", words))
    verdict = read(analysis(extra=chunk(7, recommendation))).verdict
    assert (verdict.input_statement, verdict.launch_statement) == ("NOT input-bound", "")


def test_the_overview_page_adds_hosts_and_devices() -> None:
    hosts = chunk(3, chunk(1, b"vm-1") + number(2, 1)) + chunk(3, chunk(1, b"vm-2") + number(2, 1))
    environment = number(1, 2) + hosts + chunk(4, b"Nvidia GPU (Volta)") + number(5, 8)
    advice = (
        chunk(1, b"both") + chunk(2, b"MODERATELY") + chunk(6, packed("GenericRecommendation", chunk(2, b"launch")))
    )
    page = chunk(2, analysis(generic_step(0, 10, 1))) + chunk(4, advice) + chunk(6, environment)
    profile = read(page, "vm-1.overview_page.pb")
    assert (profile.hosts, profile.device_type, profile.device_count) == (("vm-1", "vm-2"), "Nvidia GPU (Volta)", 8)
    assert (profile.verdict.bottleneck, profile.verdict.launch_statement) == ("both", "launch")
    assert profile.steps.count == 1


@pytest.mark.slow
def test_stages_are_bounded() -> None:
    stage = chunk(1, b"Iterator::Map") + number(2, 3) + double(3, 2.0) + double(5, 1.5) + chunk(7, b"Preprocessing")
    stages = read(analysis(extra=chunk(6, stage) * (MAX_STAGES + 1))).stages
    assert len(stages) == MAX_STAGES
    first = stages[0]
    assert (first.path, first.calls, first.total_ns, first.self_ns) == ("Iterator::Map", 3, 2 * MS, 1_500_000)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 1e300])
def test_a_time_that_is_none_is_damage_not_zero(value: float) -> None:
    with pytest.raises(TraceReadError, match="damaged at byte"):
        read(analysis(generic_step(0, value, 0)))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.input_pipeline.pb", b"", "is empty"),
        ("a.input_pipeline.pb", number(1, 1), "holds no input pipeline analysis"),
        ("a.overview_page.pb", chunk(4, b""), "holds no input pipeline analysis"),
        ("a.xplane.pb", b"x", "is not a derived profile"),
        ("a.input_pipeline.pb", analysis(generic_step(0, 1, 1))[:-1], "damaged at byte"),
        ("a.input_pipeline.pb", b"\xff" * 20, "damaged at byte 0 of 20"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(name: str, content: bytes, sentence: str) -> None:
    with pytest.raises(TraceReadError, match=sentence):
        read(content, name)


def test_names_of_derived_files() -> None:
    assert is_derived("10.0.0.1_6009.input_pipeline.pb")
    assert is_derived("overview_page.pb")
    assert not is_derived("host.xplane.pb")
    assert not is_derived("host.input_pipeline.pb.gz")


def test_a_session_gives_one_profile_per_host_from_the_page_that_says_more(tmp_path: Path) -> None:
    table = analysis(generic_step(0, 10, 4))
    for host in ("a", "b"):
        (tmp_path / f"{host}.input_pipeline.pb").write_bytes(table)
    (tmp_path / "a.overview_page.pb").write_bytes(chunk(2, table))
    (tmp_path / "a.kernel_stats.pb").write_bytes(b"")
    profiles = read_session(sorted(tmp_path.iterdir()))
    assert [profile.path.name for profile in profiles] == ["a.overview_page.pb", "b.input_pipeline.pb"]


def test_a_damaged_page_leaves_the_input_pipeline(tmp_path: Path) -> None:
    (tmp_path / "a.overview_page.pb").write_bytes(b"")
    (tmp_path / "a.input_pipeline.pb").write_bytes(analysis(generic_step(0, 10, 4)))
    (profile,) = read_session(list(tmp_path.iterdir()))
    assert profile.steps.count == 1


def test_a_session_without_readable_files_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match=r"no \*\.input_pipeline\.pb"):
        read_session([])
    with pytest.raises(TraceReadError, match="cannot be read"):
        read_session([tmp_path / "gone.input_pipeline.pb"])


def test_the_layout_is_that_of_the_published_classes() -> None:
    """Every field that is read sits where xprof's generated classes have it."""
    from xprof.protobuf import input_pipeline_pb2 as protos

    details = protos.PerGenericStepDetails(step_number=3, step_name="train 3", step_time_ms=55)
    columns = {
        "host_wait_input": "input_wait_ns",
        "host_to_device": "host_to_device_ns",
        "output": "output_ns",
        "device_compute": "device_compute_ns",
        "device_to_device": "device_to_device_ns",
        "device_collectives": "collective_ns",
        "host_compute": "host_compute_ns",
        "host_prepare": "host_prepare_ns",
        "host_compile": "compile_ns",
    }
    for value, name in enumerate(columns, 1):
        setattr(details, f"{name}_ms", value)
    details.unknown_time_ms = 10
    result = protos.InputPipelineAnalysisResult(hardware_type="GPU")
    result.step_details.add().Pack(details)
    result.step_time_summary.average = 55
    result.input_percent_summary.average = 12.5
    result.input_op_details.add(op_name="Iterator::Map", count=2, time_in_ms=4, self_time_in_ms=3, category="Enqueue")
    result.recommendation.bottleneck_analysis.Pack(
        protos.BottleneckAnalysis(
            input_classification="host",
            input_statement="input",
            kernel_launch_statement="launch",
            all_other_statement="other",
        )
    )
    result.recommendation.summary_next_step = "next"
    result.diagnostics.warnings.append("careful")
    profile = read(result.SerializeToString())
    steps = profile.steps
    assert (steps.number.tolist(), steps.names, steps.total_ns.tolist()) == ([3], ("train 3",), [55 * MS])
    for value, column in enumerate(columns.values(), 1):
        assert getattr(steps, column).tolist() == [value * MS], column
    assert steps.unknown_ns.tolist() == [10 * MS]
    assert (profile.summary.mean_step_ns, profile.summary.mean_step_input_percent) == (55 * MS, 12.5)
    (stage,) = profile.stages
    assert (stage.path, stage.calls, stage.total_ns, stage.category) == ("Iterator::Map", 2, 4 * MS, "Enqueue")
    assert profile.verdict.other_statement == "other"
    assert (profile.verdict.next_step, profile.warnings) == ("next", ("careful",))


def test_the_overview_layout_is_that_of_the_published_classes() -> None:
    from xprof.protobuf import overview_page_pb2 as protos

    page = protos.OverviewPage()
    page.input_analysis.hardware_type = "TPU"
    page.recommendation.bottleneck = "host"
    page.recommendation.statement = "statement"
    page.recommendation.recommendation.Pack(protos.GenericRecommendation(all_other_statement="other"))
    page.run_environment.hostnames["vm"] = True
    page.run_environment.device_type = "TPU v3"
    page.run_environment.device_core_count = 8
    page.diagnostics.errors.append("dropped")
    profile = read(page.SerializeToString(), "overview_page.pb")
    assert (profile.host, profile.hosts, profile.hardware) == ("", ("vm",), "TPU")
    assert (profile.device_type, profile.device_count, profile.warnings) == ("TPU v3", 8, ("dropped",))
    assert (profile.verdict.input_statement, profile.verdict.other_statement) == ("statement", "other")


SOUND = chunk(2, analysis(generic_step(1, 10, 4), generic_step(2, 12, 5), extra=chunk(7, chunk(3, b"next"))))


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_damage_gives_a_profile_or_a_sentence(data: st.DataObject) -> None:
    content = bytearray(SOUND[: data.draw(st.integers(0, len(SOUND)))])
    for _ in range(data.draw(st.integers(0, 4)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        profile = read(bytes(content), data.draw(st.sampled_from(["a.overview_page.pb", "a.input_pipeline.pb"])))
    except TraceReadError:
        return
    assert all((getattr(profile.steps, name) >= 0).all() for name in (*PARTS, "total_ns"))


def test_no_length_in_the_file_is_trusted() -> None:
    with pytest.raises(TraceReadError, match="damaged at byte 0"):
        read(b"\x22" + b"\xff" * 9 + b"\x01")
    with pytest.raises(TraceReadError, match="damaged"):
        read(b"\x22" + struct.pack("<Q", 2**63)[:5])


def derived(folder: Path, name: str) -> tuple[DerivedProfile, DerivedProfile]:
    """Read both derived files of a reference capture: the overview page and the input pipeline."""
    found = sorted((folder / name / "plugins" / "profile" / "run").iterdir())
    (profile,) = read_session(found)
    return profile, read_derived(next(path for path in found if path.name.endswith("input_pipeline.pb")))


@pytest.mark.reference_traces
@pytest.mark.parametrize(
    ("name", "count", "mean_ms", "mean_of_shares", "share_of_total"),
    [
        ("P2-derived-only-demo", 9, 652.32, 43.38, 68.93),
        ("P3-derived-gpu-input-bound", 11, 1114.50, 81.37, 81.40),
        ("P3-derived-gpu-compute-bound", 11, 1805.14, 0.02, 0.02),
        ("P5-tf22-cpu-run", 1, 84.553, 60.97, 60.97),
    ],
)
def test_reference_captures(
    reference_traces: Path, name: str, count: int, mean_ms: float, mean_of_shares: float, share_of_total: float
) -> None:
    page, table = derived(reference_traces, name)
    assert page.path.name.endswith("overview_page.pb")
    for profile in (page, table):
        steps = profile.steps
        assert steps.count == count
        assert steps.total_ns.mean() / MS == pytest.approx(mean_ms, abs=0.01)
        assert steps.mean_step_input_percent == pytest.approx(mean_of_shares, abs=0.01)
        assert steps.input_percent == pytest.approx(share_of_total, abs=0.01)
        assert profile.summary.mean_step_input_percent == pytest.approx(steps.mean_step_input_percent)
        assert "input-bound" in profile.verdict.input_statement
    assert parts_of(page.steps) == parts_of(table.steps)
    total = sum(getattr(page.steps, part) for part in PARTS)
    assert (abs(total - page.steps.total_ns) <= len(PARTS)).all()


@pytest.mark.reference_traces
def test_the_demo_turns_input_bound_in_its_fifth_step(reference_traces: Path) -> None:
    steps = derived(reference_traces, "P2-derived-only-demo")[0].steps
    wait_ms = (steps.input_wait_ns / MS).round().tolist()
    assert wait_ms == [1, 0, 0, 0, 301, 914, 993, 883, 955]


@pytest.mark.reference_traces
def test_the_stored_wait_of_a_cpu_run_is_its_own(reference_traces: Path) -> None:
    """51.555 ms: IteratorGetNextOp::DoCompute (51.522) and 0.033 of IteratorGetNext transfers."""
    profile = derived(reference_traces, "P5-tf22-cpu-run")[0]
    assert profile.hardware == "CPU_ONLY"
    assert profile.steps.input_wait_ns.tolist() == [51_555_000]
    assert profile.steps.total_ns.tolist() == [84_553_000]
