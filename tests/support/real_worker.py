"""The real worker, all of it at one priority: what it loads and writes on patient threads would have a turn in ten beside other tests."""

import runpy

from pipeline_lab.worker.record import own_process

if __name__ == "__main__":
    own_process.NICENESS = 1
    runpy.run_module("pipeline_lab.worker", run_name="__main__", alter_sys=True)
