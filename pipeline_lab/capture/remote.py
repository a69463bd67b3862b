"""Record windows from a running job, through TensorFlow's profiler server in it.

``python -m pipeline_lab.capture.remote RUN_FOLDER HOST:PORT`` records into an existing run, and ends it.
"""

import argparse
import contextlib
import shutil
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from pipeline_lab.errors import CaptureError, PipelineLabError
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import CaptureProgressEvent, FailureEvent, NoteEvent, PhaseEvent, WindowEvent
from pipeline_lab.runs.run_folder import RunFolder, end_run
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.note.event_log import Clock, EventLog
from pipeline_lab.worker.record.window_recorder import publish

ELSEWHERE = "the job writes its traces itself, so it must see this store under the same path."
GONE = "The job at {address} ended, or stopped answering, after {windows}; what was recorded is kept."
EMPTY = "Window {number} is empty: the job answered, but TensorFlow ran nothing."
IDLE = (
    "A server listens at {address}, but all windows are empty: check that it is the job's profiler server and that the job "
    "trains."
)
NOBODY = (
    "Nothing answers at {address}; start TensorFlow's profiler server in the job "
    "(`tf.profiler.experimental.server.start(PORT)`), or check for a firewall in between."
)
CONNECT_S = 5.0
"""A machine that accepts no connection in this time counts as gone."""


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("address")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, required=True)
    parser.add_argument("--windows", type=int, required=True)
    chosen = parser.parse_args()
    folder = RunFolder(chosen.folder)
    log = EventLog(folder.events)
    try:
        state, reason = _Series(folder, log, chosen.address, chosen.seconds, chosen.every, chosen.windows).record()
        end_run(folder, state, reason)
    except PipelineLabError as error:
        end_run(folder, RunState.FAILED, str(error), 1)
        sys.exit(1)
    except BaseException as error:
        log.write(FailureEvent(f"The capture stopped with {type(error).__name__}: {error}.", traceback.format_exc()))
        end_run(folder, RunState.FAILED, f"The capture stopped with {type(error).__name__}.", 1)
        raise
    finally:
        shutil.rmtree(folder.scratch, ignore_errors=True)


class _Series:
    """A series of windows from one address."""

    def __init__(
        self, folder: RunFolder, log: EventLog, address: str, length_s: float, every_s: float, count: int
    ) -> None:
        self._folder, self._log, self._address = folder, log, address
        self._length_s, self._every_s, self._count = length_s, every_s, count
        self._clock = Clock()
        self._is_over = False
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def record(self) -> tuple[RunState, str]:
        """Record until the series is over; return how it ended.

        Raises:
            CaptureError: Nothing answers, or there was nothing to record.
        """
        self._log.write(PhaseEvent("importing"))
        import tensorflow as tf

        self._log.write(PhaseEvent("capturing"))
        recorded = 0
        for number in range(1, self._count + 1):
            begun_s = time.monotonic()
            if self._should_stop():
                return RunState.CANCELLED, f"Canceled after {_windows(recorded)}."
            try:
                self._record_window(number)
                recorded += 1
            except (tf.errors.OpError, RuntimeError) as error:  # depends on the TensorFlow version
                if _listens(self._address):  # TensorFlow reports an idle job in the same way
                    self._log.write(NoteEvent(EMPTY.format(number=number)))
                elif recorded:
                    return RunState.DONE, GONE.format(address=self._address, windows=_windows(recorded))
                else:
                    raise CaptureError(NOBODY.format(address=self._address)) from error
            self._log.write(CaptureProgressEvent(number, self._count))
            while number < self._count and time.monotonic() - begun_s < self._every_s and not self._should_stop():
                time.sleep(0.1)
        if not recorded:
            raise CaptureError(IDLE.format(address=self._address))
        return RunState.DONE, ""

    def _record_window(self, number: int) -> None:
        import tensorflow as tf

        scratch = self._folder.scratch / f"window-{number:04d}"
        scratch.mkdir(parents=True, exist_ok=True)
        started_ns = self._clock.now_ns()
        tf.profiler.experimental.client.trace(
            f"grpc://{self._address}", str(scratch), round(self._length_s * 1000), num_tracing_attempts=1
        )
        stopped_ns = started_ns + round(self._length_s * NS_PER_S)
        try:
            name = f"window-{number:04d}"
            size_bytes = publish(scratch, self._folder.window(name))
            flushed_ns = self._clock.now_ns()
            self._log.write(WindowEvent(name, None, None, started_ns, stopped_ns, flushed_ns, size_bytes))
        except (FileNotFoundError, ValueError) as error:
            self._log.write(NoteEvent(f"Window {number} is not here ({error}); {ELSEWHERE}"))
        with contextlib.suppress(OSError):
            shutil.rmtree(scratch)

    def _should_stop(self) -> bool:
        return self._is_over or self._folder.cancel_flag.exists() or not self._folder.record.exists()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._is_over = True


def _listens(address: str) -> bool:
    """Say whether ``HOST:PORT`` accepts connections."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError:
        return False
    return True


def _windows(count: int) -> str:
    return f"{count} window" if count == 1 else f"{count} windows"


if __name__ == "__main__":
    main()
