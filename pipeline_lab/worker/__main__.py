"""``python -m pipeline_lab.worker RUN_FOLDER``, or ``--wait`` to load everything and read the folder from stdin.

A waiting worker prints ``ready``, then reads one line; at the end of its input it exits.
"""

import argparse
import os
import sys
from pathlib import Path

from pipeline_lab.worker.job_process import READY, leave_process, load_quietly, run_job


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pipeline_lab.worker", description="Run one Pipeline Lab job.")
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("folder", nargs="?", type=Path, help="the run's folder")
    wanted.add_argument("--wait", action="store_true", help="load TensorFlow, then read the folder from standard input")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    folder = _wait_for_folder() if arguments.wait else arguments.folder
    exit_code = 1
    try:
        exit_code = 0 if folder is None else run_job(folder)
    finally:  # whatever failed: an orderly exit may wait for tf.data for ever
        leave_process(exit_code)


def _wait_for_folder() -> Path | None:
    if not load_quietly():
        leave_process(1)
    print(READY, flush=True)  # noqa: T201, read by the supervisor
    line = sys.stdin.readline().rstrip("\n")
    return Path(line) if line else None


if __name__ == "__main__":
    main()
