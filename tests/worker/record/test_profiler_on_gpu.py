from pathlib import Path

from pipeline_lab.units import BYTES_PER_MB
from tests.conftest import AskGpu
from tests.pretend_gpu import PretendGpu


def test_the_memory_of_cupti_is_no_windows(ask_gpu: AskGpu, tmp_path: Path) -> None:
    growth = ask_gpu(
        "tests.worker.gpu_tasks:growth_of_first_window", gpu=PretendGpu(profiler_mb=500), folder=str(tmp_path)
    )
    assert growth < 200 * BYTES_PER_MB
