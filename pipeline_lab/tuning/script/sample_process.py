"""The process that runs a script for a proof and answers what was asked of it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import RunFailedError
from pipeline_lab.runs.launch.runtime import KERAS_2, child_environment, die_with_parent, module_command


@dataclass(frozen=True)
class Script:
    """A script as it is started.

    Attributes:
        target: Its path, or the name of a module.
        arguments: Its own.
        is_module: Whether the target is a module.
        is_of_keras_2: Whether it makes ``tf.keras`` Keras 2 before it imports TensorFlow.
    """

    target: str
    arguments: Sequence[str] = ()
    is_module: bool = False
    is_of_keras_2: bool = False


class SampleProcess:
    """Runs one script as often as it is asked, each time in a copy of itself; a context manager that ends it.

    Attributes:
        folder: For what it writes; gone after the end.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.folder = Path(tempfile.mkdtemp(prefix="pipeline-lab-proof-"))
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, as JSON.

        Raises:
            RunFailedError: The process has ended.
        """
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            found: dict[str, Any] = json.loads(line)
        except (OSError, ValueError):
            last = (self.folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
            raise RunFailedError(
                f"The process that reads the script's data ended: {last or 'it said nothing'}."
            ) from None
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> "subprocess.Popen[str]":
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                module_command("pipeline_lab.capture.script_sample", str(self.folder / "generated")),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=child_environment() | {"PYTHONHASHSEED": "0"} | (KERAS_2 if self._script.is_of_keras_2 else {}),
                preexec_fn=die_with_parent(),
            )
