"""Runs the jobs whose folders come line by line on standard input, in one process that loads TensorFlow once."""

import os
import sys
from pathlib import Path

from pipeline_lab.worker.job_process import leave_process, run_job


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")  # a job sends what it prints to its own log
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    for line in sys.stdin:
        answers.write(f"{run_job(Path(line.rstrip()))}\n")
        answers.flush()
    leave_process(0)


if __name__ == "__main__":
    main()
