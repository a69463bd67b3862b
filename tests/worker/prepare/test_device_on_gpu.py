from pathlib import Path

from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu, read_ledger

CHOOSE = "tests.worker.gpu_tasks:choose"


def test_a_job_knows_the_memory_of_its_gpu(ask_gpu: AskGpu) -> None:
    found = ask_gpu(CHOOSE, gpu=PretendGpu(memory_mb=3000), wish="auto", replicas=1)
    assert found["gpus"] == [{"name": "PRETEND_GPU", "memory_bytes": 3_000_000_000}]
    without = PretendGpu(nvml_errors={"nvmlDeviceGetMemoryInfo": 3})
    assert ask_gpu(CHOOSE, gpu=without, wish="auto", replicas=1)["gpus"][0]["memory_bytes"] is None


def test_a_job_leaves_the_gpus_alone_that_it_does_not_use(ask_gpu: AskGpu, tmp_path: Path) -> None:
    gpu = PretendGpu(count=3, ledger=tmp_path / "ledger")
    assert len(ask_gpu(CHOOSE, gpu=gpu, wish="gpu", replicas=1)["gpus"]) == 1
    (context,) = read_ledger(tmp_path / "ledger")
    assert context.device == 0
    assert context.peak_bytes < 100_000_000, "it takes memory as it needs it"


def test_a_gpu_that_is_divided_among_the_replicas_is_the_only_one(ask_gpu: AskGpu) -> None:
    found = ask_gpu(CHOOSE, gpu=PretendGpu(count=2), wish="gpu", replicas=4, is_used=False)  # it cannot be divided
    assert found["visible"] == ["/physical_device:GPU:0"]


def test_keras_does_not_compile_a_job_on_the_cpu_with_xla_because_there_is_a_gpu(ask_gpu: AskGpu) -> None:
    compiles = "tests.worker.gpu_tasks:compiles_with_xla"
    assert ask_gpu(compiles, wish="auto")
    assert not ask_gpu(compiles, wish="cpu")


def test_each_replica_has_a_gpu_where_there_are_enough_and_the_others_are_left_alone(
    ask_gpu: AskGpu, tmp_path: Path
) -> None:
    gpu = PretendGpu(count=3, visible="2,1,0", ledger=tmp_path / "ledger")
    found = ask_gpu(CHOOSE, gpu=gpu, wish="gpu", replicas=2)
    assert found["visible"] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
    assert len(found["gpus"]) == 2
    assert [context.device for context in read_ledger(tmp_path / "ledger")] == [2, 1]


def test_a_worker_that_waits_for_a_job_touches_no_gpu(ask_gpu: AskGpu, tmp_path: Path) -> None:
    """A job beside it has all of the memory."""
    gpu = PretendGpu(ledger=tmp_path / "ledger")
    assert ask_gpu("tests.worker.gpu_tasks:load_as_spare", gpu=gpu) == [True, False]
    assert read_ledger(tmp_path / "ledger") == []
