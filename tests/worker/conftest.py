import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def ask_tensorflow(_own_folders: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Call a function of :mod:`tests.worker.tensorflow_tasks` in the one process that has TensorFlow loaded."""
    log = tmp_path_factory.mktemp("tensorflow") / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.worker.tensorflow_tasks"],
            cwd=ROOT,
            env=os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"},  # its allocator tells of itself; old processors do without
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(task: str, **arguments: Any) -> Any:
            stdin.write(json.dumps({"task": task, "arguments": arguments}) + "\n")
            stdin.flush()
            answer = stdout.readline()
            assert answer, f"the TensorFlow process died:\n{log.read_text()[-4000:]}"
            document = json.loads(answer)
            assert "error" not in document, document["error"]
            return document["result"]

        try:
            yield ask
        finally:
            stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
