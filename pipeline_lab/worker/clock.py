"""One clock for a job: steady like a stopwatch, reading in time of day."""

import time


class Clock:
    """Nanoseconds since the epoch that never jump, even when the system's time is set during the job."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.perf_counter_ns()

    def now_ns(self) -> int:
        return self._offset_ns + time.perf_counter_ns()
