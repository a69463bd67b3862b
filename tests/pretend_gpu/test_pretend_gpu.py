"""The pretend GPU itself behaves as a GPU does."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import AskGpu
from tests.pretend_gpu import SOURCES, PretendGpu, read_ledger
from tests.support.patience import unless_late

TASKS = "tests.pretend_gpu.tasks"
SECOND = PretendGpu(op_us={"MatMul": 1e6})
Events = list[dict[str, Any]]


def named(events: Events, name: str) -> dict[str, Any]:
    (found,) = (event for event in events if event["name"] == name)
    return found


def on_device(events: Events) -> Events:
    return [event for event in events if event["plane"].startswith("/device")]


@unless_late
def test_a_call_returns_at_once_and_its_result_arrives_when_the_device_is_done(ask_gpu: AskGpu) -> None:
    took_s = ask_gpu(f"{TASKS}:time_product", gpu=SECOND)
    assert took_s["called"] < 1 <= took_s["read"]


def test_a_device_that_blocks_makes_the_call_wait(ask_gpu: AskGpu) -> None:
    gpu = PretendGpu(op_us={"MatMul": 1e6}, waits_for_kernels=True)
    assert ask_gpu(f"{TASKS}:time_product", gpu=gpu)["called"] >= 1


def test_the_trace_shows_each_stream_in_its_order(ask_gpu: AskGpu) -> None:
    gpu = PretendGpu(op_us={"MatMul": 20_000}, copy_gbps=0.001, kernel_us=4)
    events = ask_gpu(f"{TASKS}:trace_product", gpu=gpu)["events"]
    to_device, product, to_host = (
        named(on_device(events), name) for name in ("MemcpyH2D", "MatMul_kernel", "MemcpyD2H")
    )
    assert {event["plane"] for event in (to_device, product, to_host)} == {"/device:GPU:0"}
    assert product["line"] == "Stream #13(Compute)"
    assert {to_device["line"], to_host["line"]} == {"Stream #14(MemcpyH2D)", "Stream #15(MemcpyD2H)"}
    assert to_device["end_ns"] <= product["start_ns"] < product["end_ns"] <= to_host["start_ns"]
    assert product["end_ns"] - product["start_ns"] == pytest.approx(20e6)
    assert to_device["end_ns"] - to_device["start_ns"] == pytest.approx(64 * 64 * 4 / 0.001 + 2000)
    assert product["tf_op"] == "MatMul:MatMul"
    assert "size:16384 " in to_device["memcpy_details"]


@unless_late
def test_each_launch_is_known_by_its_correlation_id(ask_gpu: AskGpu) -> None:
    events = ask_gpu(f"{TASKS}:trace_product", gpu=PretendGpu(op_us={"MatMul": 20_000}))["events"]
    product = named(on_device(events), "MatMul_kernel")
    launches = [event for event in events if event["name"] == "cuLaunchKernel"]
    (launch,) = (event for event in launches if event["correlation_id"] == product["correlation_id"])
    assert launch["end_ns"] < product["end_ns"]
    assert named(events, "cuMemcpyHtoDAsync_v2")["correlation_id"] == named(events, "MemcpyH2D")["correlation_id"]


@unless_late
def test_of_work_that_still_runs_when_the_profiler_stops_there_is_only_its_launch(ask_gpu: AskGpu) -> None:
    events = ask_gpu(f"{TASKS}:trace_product", gpu=SECOND, is_read=False)["events"]
    names = [event["name"] for event in events]
    assert "MatMul_kernel" not in names
    assert "cuLaunchKernel" in names


def test_memory_is_told_under_the_name_of_cudas_allocator(ask_gpu: AskGpu) -> None:
    events = ask_gpu(f"{TASKS}:trace_product")["events"]
    assert "GPU_0_bfc" in {event.get("allocator_name") for event in events}
    message = ask_gpu(f"{TASKS}:overfill")
    assert "OOM when allocating tensor with shape[1000000000]" in message
    assert "by allocator GPU_0_bfc" in message


def test_without_cupti_there_is_no_plane_but_its_words(ask_gpu: AskGpu) -> None:
    gpu = PretendGpu(has_trace=False, profiler_error="Insufficient privilege", profiler_warning="GPU events dropped")
    found = ask_gpu(f"{TASKS}:trace_product", gpu=gpu)
    assert on_device(found["events"]) == []
    assert (found["errors"], found["warnings"]) == (["Insufficient privilege"], ["GPU events dropped"])


NVML = """
import json, os, pynvml
pynvml.nvmlInit()
def describe(gpu):
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
    return {
        "uuid": pynvml.nvmlDeviceGetUUID(gpu),
        "total": memory.total,
        "used": memory.used,
        "by": {each.pid: each.usedGpuMemory for each in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)},
        "clock": pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM),
        "reasons": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
    }
gpus = [describe(pynvml.nvmlDeviceGetHandleByIndex(index)) for index in range(pynvml.nvmlDeviceGetCount())]
try:
    pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByIndex(0))
except pynvml.NVMLError as error:
    gpus.append(error.value)
print(json.dumps(gpus))
"""


def test_nvml_tells_what_the_processes_use(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(
        count=2, ledger=tmp_path / "ledger", clock_reasons=4, nvml_errors={"nvmlDeviceGetUtilizationRates": 3}
    )
    first, second, error = json.loads(ask_gpu(f"{TASKS}:call_on_gpu", gpu=gpu, script=NVML))
    (context,) = read_ledger(tmp_path / "ledger")
    assert context.used_bytes > 0
    assert (first["used"], first["by"]) == (context.used_bytes, {str(context.pid): context.used_bytes})
    assert (first["total"], first["reasons"]) == (4_096_000_000, 4)
    assert (second["used"], second["by"], second["clock"]) == (0, {}, 1001)
    assert first["uuid"] != second["uuid"]
    assert error == 3


@pytest.mark.parametrize(("visible", "devices"), [("1", [1]), ("GPU-b", [1]), ("1,0", [1, 0]), ("", []), ("-1", [])])
def test_cuda_shows_the_gpus_that_the_user_chose(
    ask_gpu: AskGpu, tmp_path: Path, visible: str, devices: list[int]
) -> None:
    gpu = PretendGpu(count=2, ledger=tmp_path / "ledger", visible=visible)
    assert len(ask_gpu(f"{TASKS}:use_each", gpu=gpu)) == len(devices)
    assert [context.device for context in read_ledger(tmp_path / "ledger")] == devices


def test_every_setting_is_one_of_the_class() -> None:
    sources = "".join(path.read_text() for path in SOURCES.glob("*.[ch]*"))
    read = set(re.findall(r'Setting\("(\w+)"', sources))
    assert read == {each.name.upper() for each in fields(PretendGpu)} - {"VISIBLE"}
