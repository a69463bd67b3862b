"""``python -m pipeline_lab.capture.script_sample FOLDER``: say what a dataset of a script holds, what its calls of ``predict`` return,
or what its first steps log.

Requests come on standard input, a line of JSON each; a line of JSON answers each. TensorFlow is imported once, and each request is
answered in a forked copy of this process, so that scripts share nothing. The same seeds are set before each script begins; what
the script sets itself stays. The folder takes what AutoGraph writes: copies end without a tidy exit.
"""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pipeline_lab.capture.script_sample.stopped_script import Request, answer, read_request
from pipeline_lab.runs.launch.runtime import die_with_parent


def _in_copy(request: Request, files: Path) -> dict[str, Any]:
    """Answer in a forked process, killed when the time is up."""
    reading, writing = os.pipe()
    die = die_with_parent()
    child = os.fork()
    if not child:
        die()
        os.close(reading)
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer(request, files), pipe)
        os._exit(0)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: _end(child))
    signal.setitimer(signal.ITIMER_REAL, request.patience_s)
    try:
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end(child)
    if text:
        found: dict[str, Any] = json.loads(text)
        return found
    ended = (
        "killed by the system"
        if os.WIFSIGNALED(status)
        else f"ended with exit code {os.waitstatus_to_exitcode(status)}"
    )
    return {"error": f"the script's process was {ended}, or took longer than {request.patience_s:g} s", "details": ""}


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main() -> None:
    import keras  # noqa: F401 (so that copies need not import it)
    import tensorflow  # noqa: F401

    from pipeline_lab.worker.job_process import keep_generated_code_in

    keep_generated_code_in(Path(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(_in_copy(read_request(json.loads(line)), Path(sys.argv[1]) / "files")) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
