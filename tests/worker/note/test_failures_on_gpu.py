from pathlib import Path

from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu, enter_other

EXPLAIN = "tests.worker.gpu_tasks:explain_error"


def test_the_cause_of_a_graphs_error_is_told(ask_gpu: AskGpu) -> None:
    told = ask_gpu(EXPLAIN, kind="label")
    assert told.startswith("The data holds the label 12, but the model has 10 classes")


def test_a_full_gpu_is_told_with_the_tensor_that_had_no_room(ask_gpu: AskGpu) -> None:
    told = ask_gpu(EXPLAIN, gpu=PretendGpu(memory_mb=1000), kind="memory")
    assert told == (
        "GPU:0 ran out of memory at a tensor of float [2000, 1000, 1000]: use a smaller batch, smaller images or a lower "
        "precision."
    )


def test_a_gpu_that_others_fill_is_told_with_what_they_hold(ask_gpu: AskGpu, tmp_path: Path) -> None:
    enter_other(tmp_path / "ledger", 7_000_000_000)
    told = ask_gpu(EXPLAIN, gpu=PretendGpu(memory_mb=10_000, ledger=tmp_path / "ledger"), kind="memory")
    assert told == (
        "GPU:0 ran out of memory at a tensor of float [2000, 1000, 1000]: other processes hold 7 GB of its 10 GB; end them, "
        "or use a smaller batch, smaller images or a lower precision."
    )
