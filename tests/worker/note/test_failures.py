import errno
import re
import textwrap
from pathlib import Path

import pytest

import pipeline_lab
from pipeline_lab.errors import DataError, StoreError
from pipeline_lab.runs.run_events import FailureEvent, read_events
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.worker.note import failures
from pipeline_lab.worker.note.failures import (
    DISK_FULL,
    OUT_OF_MEMORY,
    below,
    explain_failure,
    explain_user_error,
    is_disk_full,
    report_failure,
)
from tests.support.presets import SYNTHETIC
from tests.worker.fakes import make_job

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


def _behind_another(error: Exception) -> Exception:
    try:
        try:
            raise error
        except OSError:
            raise StoreError("Cannot write run.json.") from None
    except StoreError as outer:
        return outer


class ResourceExhaustedError(Exception):
    """Has the name of TensorFlow's class, which is what counts."""


_BY_AUTOGRAPH = """in user code:

    File "/home/me/train.py", line 76, in load_data  *
        image = tf.io.read_file(image_path)

    ValueError: Shape must be rank 0 but is rank 1 for {{node ReadFile}}ReadFile
"""
_CALLING = """Exception encountered when calling Sequential.call().

\x1b[1mDimensions must be equal, but are 5 and 2.\x1b[0m

Arguments received by Sequential.call():
  • inputs=tf.Tensor(shape=(2, 5), dtype=float32)
  • training=None
"""
_CALLING_IN_MAP = _BY_AUTOGRAPH.partition("    ValueError")[0] + textwrap.indent(
    f"ValueError: {_CALLING}", "    ", lambda _: True
)
_IN_GRAPH = """Graph execution error:

Detected at node a/Assert defined at (most recent call last):
  File "/home/me/train.py", line 11, in <module>

  File "/home/me/train.py", line 9, in step
    tf.debugging.Assert(small, [loss])

Detected at node b/Assert defined at (most recent call last):
<stack traces unavailable>
Node: 'a/Assert'
2 root error(s) found.
  (0) INVALID_ARGUMENT: {}
\t [[{{{{node a/Assert}}}}]] [Op:__inference_step_42]"""
_IN_DATA = (
    "Error in user-defined function passed to MapDataset:1 transformation with iterator: Iterator::Root::Map: "
    "KeyError: 'label'"
)
_OOM = (
    "OOM when allocating tensor with shape[128,56] and type half on /job:localhost/device:GPU:1 by allocator GPU_1_bfc"
)
_LABEL = "Received a label value of {} which is outside the valid range of"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DataError("Part 3 is damaged."), "Part 3 is damaged."),
        (NO_SPACE, DISK_FULL),
        (_behind_another(NO_SPACE), DISK_FULL),
        (RuntimeError("; No space left on device [Op:IteratorGetNext]"), DISK_FULL),
        (MemoryError(), OUT_OF_MEMORY),
        (ResourceExhaustedError("OOM when allocating tensor"), failures.OUT_OF_DEVICE_MEMORY),
        (ValueError("\n first line.\nsecond"), "ValueError: first line; worker.log"),
        (ValueError(), "ValueError: no message; worker.log"),
        (ValueError(f"{_LABEL.format(12)} [0, 10)"), "holds the label 12, but the model has 10 classes"),
        (
            ValueError(f"{_LABEL.format(-1)} [0, 10)"),
            "holds the label -1, but labels are the numbers of classes, starting at 0",
        ),
        (RuntimeError("Graph execution error:\n\n{{node a}} broke."), "RuntimeError: broke; worker.log"),
        (
            RuntimeError(_IN_GRAPH.format("assertion failed: [too large]")),
            "RuntimeError: assertion failed: [too large];",
        ),
        (ValueError(_BY_AUTOGRAPH), "ValueError: Shape must be rank 0 but is rank 1 for ReadFile;"),
        (
            ValueError("Incompatible shapes: [2] vs. [3] [Op:AddV2] name: "),
            "ValueError: Incompatible shapes: [2] vs. [3];",
        ),
        (ValueError(_CALLING), "ValueError: Dimensions must be equal, but are 5 and 2;"),
        (ValueError(_CALLING_IN_MAP), "ValueError: Dimensions must be equal, but are 5 and 2;"),
        (RuntimeError(_IN_GRAPH.format(_IN_DATA)), "RuntimeError: KeyError: 'label';"),
        (ResourceExhaustedError(_IN_GRAPH.format(_OOM)), "GPU:1 ran out of memory at a tensor of half [128, 56]:"),
        (ResourceExhaustedError(_OOM.replace("GPU:1", "CPU:0")), OUT_OF_MEMORY),
    ],
)
def test_an_error_becomes_one_sentence(error: Exception, sentence: str) -> None:
    text = explain_failure(error)
    assert sentence in text
    assert text.endswith(".")
    assert "\n" not in text


def test_a_script_that_fills_its_gpu_is_told_so_with_its_line(tmp_path: Path) -> None:
    in_graph = _IN_GRAPH.replace("/home/me", str(tmp_path)).format(_OOM)
    assert explain_user_error(ResourceExhaustedError(in_graph), tmp_path, "The script") == (
        "The script stopped at train.py, line 9: GPU:1 ran out of memory at a tensor of half [128, 56]: use a smaller batch, "
        "smaller images or a lower precision."
    )


def test_a_full_disk_gives_up_the_reserve_so_that_the_reason_can_be_written(tmp_path: Path) -> None:
    job = make_job(tmp_path, SYNTHETIC.options)
    assert job.folder.reserve.exists()
    report_failure(job.folder, job.log, NO_SPACE)
    assert not job.folder.reserve.exists()
    (event,) = read_events(job.folder.events)
    assert isinstance(event, FailureEvent)
    assert event.sentence == DISK_FULL
    assert "OSError" in event.traceback


def test_other_errors_keep_the_reserve(tmp_path: Path) -> None:
    job = make_job(tmp_path, SYNTHETIC.options)
    report_failure(job.folder, job.log, ValueError("planted"))
    assert job.folder.reserve.exists()


def test_an_error_that_refers_to_itself_is_looked_at_once() -> None:
    error = ValueError("a")
    error.__context__ = other = ValueError("b")
    other.__context__ = error
    assert not is_disk_full(error)


PACKAGE = Path(pipeline_lab.__file__).parent


def test_code_beside_the_package_is_the_users_whatever_its_folder_is_called() -> None:
    home = PACKAGE.parent
    assert below(str(home / f"{PACKAGE.name}_jobs" / "train.py"), home) == f"{PACKAGE.name}_jobs/train.py"
    assert below(str(home / f"{PACKAGE.name}.py"), home) == f"{PACKAGE.name}.py"
    assert not below(str(PACKAGE / "app.py"), home)


def test_code_that_a_run_generated_is_nobodys_file(tmp_path: Path) -> None:
    generated = RunFolder(tmp_path / "profiles" / "run").scratch / "__autograph_generated_file1.py"
    assert not below(str(generated), tmp_path)


def test_frozen_modules_are_nobodys_file() -> None:
    assert not below("<frozen runpy>", Path.cwd())


def test_data_that_ended_are_said_to_have() -> None:
    try:
        next(iter(()))
    except StopIteration as error:
        told = explain_user_error(error, Path(__file__).parent, "The script")
    assert re.fullmatch(
        r"The script stopped at test_failures\.py, line \d+ with StopIteration: the data had ended\.", told
    )
