"""What many visitors of a run in progress cost: how long a click takes, and the memory of each.

    python -m benchmarks.sessions --sessions 50 --seconds 60

The run grows by a hundred steps a second and has some profile windows. The visitors speak Streamlit's own protocol, as its
page in a browser does: they refresh what refreshes itself, and each of them makes the page again now and then, which is
what a click comes to. Nothing is drawn, so that the figures are the app's.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.run_tables import STEPS as STEPS_TABLE
from pipeline_lab.runs.run_tables import TableWriter
from tests.browser.conftest import Server, serve
from tests.support.long_run import CAPTURE
from tests.support.run_folders import START_NS, STEP_NS, WAIT_NS, make_run

BUDGET_S = 1.0
BETWEEN_CLICKS_S = 10.0
STEPS = 2000
WINDOWS = 3
GROWS_S, STEPS_A_TIME = 0.5, 50


@dataclass
class Visitor:
    """One page that shows a run.

    Attributes:
        run_id: The run.
        clicks: How long each took, s.
    """

    run_id: str
    clicks: list[float] = field(default_factory=list)
    refreshed: int = 0
    _begun_s: float = 0.0
    _whole: bool = False
    _loops: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def stay(self, server: Server, until_s: float, chance: random.Random) -> None:
        """Look at the run until some moment of the monotonic clock."""
        address = urlsplit(server.url).netloc
        origin = {"Origin": f"http://{address}"}
        async with connect(
            f"ws://{address}/_stcore/stream", additional_headers=origin, subprotocols=["streamlit"], max_size=None
        ) as page:
            listening = asyncio.create_task(self._listen(page))
            try:
                while time.monotonic() < until_s:
                    await self._click(page)
                    await asyncio.sleep(chance.uniform(0.5, 1.5) * BETWEEN_CLICKS_S)
            finally:
                for task in (listening, *self._loops.values()):
                    task.cancel()
                with suppress(asyncio.CancelledError):
                    await listening  # says what it could not read

    async def _click(self, page: ClientConnection) -> None:
        if not self._whole:
            self._begun_s, self._whole = time.monotonic(), True
            await page.send(self._ask())

    def _ask(self, fragment: str = "") -> bytes:
        state = ClientState(query_string=f"run={self.run_id}", page_name="run", fragment_id=fragment)
        state.is_auto_rerun = bool(fragment)
        return BackMsg(rerun_script=state).SerializeToString()

    async def _listen(self, page: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            async for data in page:
                message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
                kind = message.WhichOneof("type")
                if kind == "new_session" and not message.metadata.run.fragment_ids:
                    self._forget_loops()
                elif kind == "auto_rerun":
                    await self._repeat(page, message.auto_rerun.fragment_id, message.auto_rerun.interval)
                elif kind == "script_finished":
                    self._finish(message.script_finished)

    def _forget_loops(self) -> None:
        for task in self._loops.values():
            task.cancel()
        self._loops.clear()

    async def _repeat(self, page: ClientConnection, fragment: str, every_s: float) -> None:
        async def refresh() -> None:
            with suppress(ConnectionClosed):
                while True:
                    await asyncio.sleep(every_s)
                    await page.send(self._ask(fragment))

        if fragment not in self._loops:
            self._loops[fragment] = asyncio.create_task(refresh())

    def _finish(self, how: int) -> None:
        if how == ForwardMsg.FINISHED_SUCCESSFULLY and self._whole:
            self.clicks.append(time.monotonic() - self._begun_s)
            self._whole = False
        elif how == ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
            self.refreshed += 1


async def visit(server: Server, run: RunFolder, count: int, seconds: float) -> list[Visitor]:
    visitors = [Visitor(run.id) for _ in range(count)]
    until_s = time.monotonic() + seconds
    chances = [random.Random(number) for number in range(count)]

    async def one(visitor: Visitor, chance: random.Random) -> None:
        await asyncio.sleep(chance.uniform(0.0, BETWEEN_CLICKS_S))
        await visitor.stay(server, until_s, chance)

    await asyncio.gather(*map(one, visitors, chances))
    return visitors


@contextmanager
def growing(run: RunFolder) -> Iterator[None]:
    """Let a run record windows, then step after step until the block ends."""
    for number in range(WINDOWS):
        path = run.window(f"window-{number}") / "trainer.xplane.pb"
        path.parent.mkdir(parents=True)
        path.write_bytes(CAPTURE.read_bytes())
    ends = threading.Event()

    def grow() -> None:
        table, step = TableWriter(run.steps, STEPS_TABLE), 0
        while not ends.wait(GROWS_S if step else 0.0):
            for _ in range(STEPS_A_TIME if step else STEPS):
                begun_ns = START_NS + step * STEP_NS
                table.append(step, step < 5, begun_ns, WAIT_NS, begun_ns + STEP_NS, 1.0, 0.5, -1, 900_000_000, 0)
                step += 1
            table.flush()
        table.close()

    worker = threading.Thread(target=grow)
    worker.start()
    try:
        yield
    finally:
        ends.set()
        worker.join()


def rss_mb(server: psutil.Process) -> float:
    return float(server.memory_info().rss) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gone", type=float, default=0.0, help="look at the memory again so long after they left, s")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        serve(Path(name), PIPELINE_LAB_WORKER=f"{sys.executable} -c pass") as server,
        ExitStack() as inside,
    ):
        run = make_run(server.store, state=RunState.RUNNING, steps=STEPS)
        process = next(each for each in psutil.Process().children() if "streamlit" in " ".join(each.cmdline()))
        inside.enter_context(growing(run))
        asyncio.run(visit(server, run, 1, 10.0))
        before_mb, cpu_s = rss_mb(process), sum(process.cpu_times()[:2])
        visitors = asyncio.run(visit(server, run, options.sessions, options.seconds))
        took_s = sum(process.cpu_times()[:2]) - cpu_s
        clicks = sorted(click for visitor in visitors for click in visitor.clicks)
        refreshed = sum(visitor.refreshed for visitor in visitors)
        assert clicks, "no click was answered; give it more time or fewer sessions"
        p95_s = clicks[int(0.95 * len(clicks))]
        print(
            f"{options.sessions} sessions: {len(clicks)} clicks, median {statistics.median(clicks):.2f} s, p95 {p95_s:.2f} s, longest {clicks[-1]:.2f} s"
        )
        print(f"{refreshed} refreshes; the app took {took_s:.0f} CPU s of {options.seconds:.0f} s")
        print(
            f"memory {before_mb:.0f} → {rss_mb(process):.0f} MB, {(rss_mb(process) - before_mb) / options.sessions:.1f} MB a session"
        )
        if options.gone:
            time.sleep(options.gone)
            print(f"{rss_mb(process):.0f} MB {options.gone:.0f} s after they left")
    return int(p95_s > BUDGET_S)


if __name__ == "__main__":
    sys.exit(main())
