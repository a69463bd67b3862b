import os
import signal
import sys
from pathlib import Path

import pytest

from pipeline_lab.analysis.xprof import xprof
from pipeline_lab.analysis.xprof.xprof import XprofAnswer, XprofLimits, ask_xprof
from pipeline_lab.errors import Unavailable
from tests.support.xspace import XSpace

MS = 1_000_000


def write_cpu_trace(path: Path, steps: int = 4, *, first: int = 0, send_us: float = 0, loop: bool = False) -> Path:
    """Write steps of 1 ms on one thread: 300 µs of waiting, 600 µs of work, and transfers of ``send_us``."""
    space = XSpace()
    python = space.plane("/host:CPU").line("python")
    for step in range(steps):
        begin = step * 1000
        python.event("train", begin, 1000, step_num=first + step, _r=1)
        python.event("IteratorGetNextOp::DoCompute", begin, 300)
        python.event("MatMul:MatMul", begin + 300, 600)
        if send_us:
            python.event("IteratorGetNext/_3:_Send", begin + 900, send_us)
        if loop:
            python.event("WhileOp-StartBody", begin + 300, 600)
    return space.write(path)


def answer_of(*paths: Path) -> XprofAnswer:
    answer = ask_xprof(paths)
    assert isinstance(answer, XprofAnswer), answer
    return answer


def reason_of(answer: XprofAnswer | Unavailable) -> str:
    assert isinstance(answer, Unavailable)
    return answer.reason


@pytest.mark.slow
def test_a_cpu_trace_is_read_as_xprof_reads_it(tmp_path: Path) -> None:
    answer = answer_of(write_cpu_trace(tmp_path / "h.xplane.pb"))
    assert (answer.hardware, answer.steps, answer.step_ns, answer.input_ns) == ("CPU_ONLY", 4, MS, 300_000)
    assert answer.input_percent == pytest.approx(30.0)
    assert "HIGHLY input-bound because 30.0%" in answer.verdict
    assert answer.statement == answer.verdict
    assert answer.warnings == ()
    assert "input_pipeline_analyzer" in answer.offers
    assert "tf_data_bottleneck_analysis" not in answer.offers
    assert answer.peak_rss_bytes > 10_000_000
    assert 0 < answer.tool_seconds["overview_page"] < answer.seconds


@pytest.mark.slow
def test_xprof_counts_transfers_as_waiting(tmp_path: Path) -> None:
    answer = answer_of(write_cpu_trace(tmp_path / "h.xplane.pb", send_us=50))
    assert answer.input_percent == pytest.approx(35.0)


@pytest.mark.slow
def test_xprof_loses_the_steps_of_a_loop(tmp_path: Path) -> None:
    answer = answer_of(write_cpu_trace(tmp_path / "h.xplane.pb", loop=True))
    assert (answer.steps, answer.step_ns, answer.input_ns, answer.input_percent) == (0, None, None, None)
    assert "No step marker observed" in answer.warnings[0]


@pytest.mark.slow
def test_xprof_lays_the_steps_of_two_windows_over_each_other(tmp_path: Path) -> None:
    windows = [write_cpu_trace(tmp_path / f"w{k}" / "h.xplane.pb", 3 + 2 * k, first=100 * k) for k in range(2)]
    assert answer_of(*windows).steps < 3 + 5


@pytest.mark.slow
def test_nothing_is_left_beside_the_trace(tmp_path: Path) -> None:
    path = write_cpu_trace(tmp_path / "h.xplane.pb")
    (tmp_path / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"an old cache that says something else")
    assert answer_of(path).steps == 4
    assert sorted(found.name for found in tmp_path.iterdir()) == ["ALL_HOSTS.op_stats_v2.pb", "h.xplane.pb"]


@pytest.mark.reference_traces
@pytest.mark.slow
def test_xprof_reports_no_input_where_there_is_a_gpu(reference_traces: Path) -> None:
    (path,) = (reference_traces / "P1-gpu-multiworker-8gpu").rglob("*.xplane.pb")
    answer = answer_of(path)
    assert (answer.hardware, answer.steps, answer.input_ns) == ("GPU", 1, 0)
    assert answer.step_ns == 21_310_352
    assert "POTENTIALLY input-bound" in answer.verdict


@pytest.mark.slow
@pytest.mark.reference_traces
def test_a_tpu_trace_without_steps(reference_traces: Path) -> None:
    (path,) = (reference_traces / "P7-tpu-inference").rglob("*.xplane.pb")
    answer = answer_of(path)
    assert (answer.hardware, answer.steps, answer.input_percent) == ("TPU", 0, None)


@pytest.mark.slow
def test_a_damaged_file_gets_no_answer(tmp_path: Path) -> None:
    path = write_cpu_trace(tmp_path / "h.xplane.pb")
    path.write_bytes(path.read_bytes()[:-1])
    assert "XProf returned nothing for this trace" in reason_of(ask_xprof([path]))


def test_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xprof, "_command", lambda *_: [sys.executable, "-c", "import time; time.sleep(60)"])
    path = write_cpu_trace(tmp_path / "h.xplane.pb")
    assert "gave no answer within 0 s" in reason_of(ask_xprof([path], XprofLimits(seconds=0)))


@pytest.mark.slow
def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = "import time; kept = bytearray(200_000_000); time.sleep(60)"
    monkeypatch.setattr(xprof, "_command", lambda *_: [sys.executable, "-c", greedy])
    path = write_cpu_trace(tmp_path / "h.xplane.pb")
    reason = reason_of(ask_xprof([path], XprofLimits(memory_bytes=100_000_000)))
    assert "took more than 100 MB of memory" in reason


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("import sys; print('no such tool.'); sys.exit(3)", "failed (exit code 3) on this trace: no such tool."),
    ],
)
def test_a_crash_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, sentence: str) -> None:
    monkeypatch.setattr(xprof, "_command", lambda *_: [sys.executable, "-c", program])
    assert sentence in reason_of(ask_xprof([write_cpu_trace(tmp_path / "h.xplane.pb")]))


def test_no_process_outlives_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []

    def interrupt(process: "xprof.subprocess.Popen[bytes]", _: XprofLimits) -> str | None:
        pids.append(process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(xprof, "_watch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ask_xprof([write_cpu_trace(tmp_path / "h.xplane.pb")])
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], signal.SIGKILL)


def test_what_xprof_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no trace file" in reason_of(ask_xprof([]))
    assert "reads *.xplane.pb files only" in reason_of(ask_xprof([tmp_path / "trace.json.gz"]))
    assert "is gone" in reason_of(ask_xprof([tmp_path / "h.xplane.pb"]))
    monkeypatch.setattr(xprof.importlib.util, "find_spec", lambda _: None)
    assert "not installed" in reason_of(ask_xprof([write_cpu_trace(tmp_path / "h.xplane.pb")]))


def test_a_tpu_step_is_the_sum_of_its_columns() -> None:
    columns = [{"id": name} for name in ("stepnum", "tcComputeTimeMs", "tcInfeedTimeMs", "tcIdleTimeMs", "tooltip")]
    rows = [{"c": [{"v": value} for value in ("0", 6.0, 3.0, 1.0, "words")]}, {"c": [{"v": "1"}, {"v": 2.0}, None]}]
    tool = {"error": None, "seconds": 0.1}
    document = {
        "version": "2.24.2",
        "offers": [],
        "peak_rss_bytes": 1,
        "input_pipeline_analyzer": {**tool, "answer": [{"cols": columns, "rows": rows, "p": {"hardware_type": "TPU"}}]},
        "overview_page": {**tool, "answer": None},
    }
    answer = xprof._read_answer(document, 1.0)
    assert isinstance(answer, XprofAnswer)
    assert (answer.steps, answer.step_ns, answer.input_ns) == (2, 6 * MS, 1_500_000)
    assert answer.input_percent == pytest.approx(25.0)
    assert answer.statement == ""
