"""Python processes that load what takes long once and then answer questions, a line of JSON each.

``{"task": name, "arguments": {…}}`` is answered by ``{"result": …}`` or ``{"error": …}``. Everything else that the process
prints goes to standard error.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Ask = Callable[..., Any]
"""Called with the name of a task and its arguments."""


@contextmanager
def warm_worker(module: str, environment: Mapping[str, str], log: Path) -> Iterator[Ask]:
    """Start a process that serves tasks, and end it with the block, and what it leaves in its temporary folder.

    Args:
        module: Calls :func:`serve` when it is run.
        environment: What it needs beside this process' own.
        log: Takes what it prints.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary,
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=os.environ | environment | {"TMPDIR": temporary},
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
            assert answer, f"the process died:\n{log.read_text()[-4000:]}"
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


def find_task(name: str, own: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function by module and name, with a colon between; without a module it is among the process' own."""
    module, _, function = name.rpartition(":")
    return getattr(importlib.import_module(module), function) if module else own[function]


def serve(find: Callable[[str], Callable[..., Any]]) -> None:
    """Answer the questions of standard input until it ends, then leave at once."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gc.freeze()  # what was imported stays: no collection has to look at it
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": find(request["task"])(**request["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        gc.collect()  # an iterator of tf.data that dies later may wait for its autotuner then, up to a minute
        gc.freeze()
    os._exit(0)
