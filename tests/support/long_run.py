"""A run of as many windows as one likes, each the small recorded capture, moved in time."""

from pathlib import Path

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import WindowEvent, format_event
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import STEPS, TableWriter
from pipeline_lab.trace.legacy.message import read_fields
from tests.support.recorded_run import EPOCH, set_state
from tests.support.xspace import XSpace, chunk

CAPTURE = Path(__file__).parents[1] / "data" / "small_pipeline.xplane.pb"
S = 1_000_000_000
EVERY_S, LENGTH_S, STEPS_PER_WINDOW = 300, 1, 10


class LongRun:
    """A run that grows window by window; to be closed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        path.mkdir(parents=True)
        set_state(self.folder, RunState.DONE)
        data = CAPTURE.read_bytes()
        planes = [data[field.begin : field.end] for field in read_fields(data, 0, len(data)) if field.number == 1]
        self._planes = b"".join(chunk(1, plane) for plane in planes if b"Task Environment" not in plane)
        self._steps = TableWriter(self.folder.steps, STEPS)
        self.windows = 0

    def grow(self, windows: int) -> None:
        """Record windows until there are that many."""
        with self.folder.events.open("a") as events:
            for number in range(self.windows, windows):
                start_ns = EPOCH + number * EVERY_S * S
                stop_ns = start_ns + LENGTH_S * S
                name = f"window-{number + 1:05d}"
                path = self.folder.window(name) / "trainer.xplane.pb"
                path.parent.mkdir(parents=True)
                path.write_bytes(self._planes + XSpace().environment(start_ns, stop_ns).encode("trainer"))
                first = number * STEPS_PER_WINDOW
                event = WindowEvent(
                    name,
                    first,
                    first + STEPS_PER_WINDOW - 1,
                    start_ns,
                    stop_ns,
                    stop_ns,
                    0,
                    0,
                    999,
                    10**8,
                    10**8,
                    False,
                )
                events.write(format_event(event))
                for step in range(STEPS_PER_WINDOW):
                    at = start_ns + step * 30 * S
                    self._steps.append(first + step, False, at, 4 * S, at + 30 * S, 1.0, 0.5, number, 10**8, 0)
        self._steps.flush()
        self.windows = windows

    def close(self) -> None:
        self._steps.close()
