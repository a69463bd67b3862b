"""What the fuzzer begins with: real captures and hand-made ones, alone and in every wrapping that users bring.

The captures are cut down to their middle, so that thousands a minute can be read.
"""

import gzip
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trace.archives import PACKERS, SESSION, Pack, bomb, zip_of
from benchmarks.trace.cut import cut_json, cut_space
from benchmarks.trace.made_files import (
    as_legacy,
    chrome_trace,
    derived_file,
    events_file,
    legacy_trace,
    run_folder,
    small_space,
    unusual_space,
)
from tests.trace.mutations import mutate

DATA = Path(__file__).parents[2] / "tests" / "data"
UNPACKED_BYTES = 100_000_000
"""The most that an input unpacks to before it is refused: that of `bomb`."""
EVENTS_FILE = "events.out.tfevents.1700000000.h.profile-empty"
DERIVED = (".input_pipeline.pb", ".overview_page.pb")
SPACE_WEIGHT, LEGACY_WEIGHT, PACKED_WEIGHT, BOMB_WEIGHT = 0.25, 0.15, 0.2, 0.005


@dataclass(frozen=True)
class Seed:
    """A sound file.

    Attributes:
        name: Which the reader goes by.
        data: Its bytes.
        rewrap: Puts damaged contents into the sound wrapping; without it the bytes themselves are damaged.
        weight: How often it is taken, against others; what takes long to read is taken seldom.
    """

    name: str
    data: bytes
    rewrap: Callable[[random.Random, int], bytes] | None = None
    weight: float = 1.0

    @property
    def unpacked_bytes(self) -> int:
        """The most that it may unpack to, damaged or not; its own size where nothing is packed."""
        packed = self.name.endswith((".gz", ".zip"))
        return UNPACKED_BYTES if packed else len(self.data)

    def damaged(self, seed: int) -> bytes:
        """Return the file damaged; the same seed damages alike."""
        chance = random.Random(seed)
        if self.rewrap and chance.random() < 0.7:
            return self.rewrap(chance, seed)
        data = mutate(self.data, seed)
        wrapping = chance.random()
        if wrapping < 0.04:
            return gzip.compress(gzip.compress(data, 1), 1)
        return data if wrapping < 0.98 else gzip.compress(data, 1)


def sound_files(captures: Path | None) -> Iterator[Seed]:
    """Yield recorded and hand-made captures, alone and packed.

    Args:
        captures: A folder with more captures, or None.
    """
    paths = sorted(DATA.rglob("*.pb*")) + (sorted(captures.rglob("*")) if captures else [])
    for path in paths:
        yield from _of_capture(path)
    made = {
        "small.xplane.pb": small_space(),
        "small.xplane.pb.gz": gzip.compress(small_space()),
        "unusual.xplane.pb": unusual_space(),
        "small.trace.json": chrome_trace(),
        "small.trace.json.gz": gzip.compress(chrome_trace()),
        "gpu.trace": legacy_trace(),
        "h.input_pipeline.pb": derived_file(),
        EVENTS_FILE: events_file(),
    }
    for name, data in made.items():
        yield Seed(name, data)
    session = {f"{SESSION}/h.xplane.pb": small_space(), f"{SESSION}/i.trace.json": chrome_trace()}
    yield from _packed("log", session)
    old = {f"{SESSION}/local.trace": legacy_trace(), EVENTS_FILE: events_file()}
    yield from _packed("old", old)
    derived = {f"{SESSION}/h.input_pipeline.pb": derived_file(), f"{SESSION}/h.kernel_stats.pb": b""}
    yield from _packed("derived", derived)
    hosts = sorted((DATA / "two_hosts").rglob("*.pb"))
    yield from _packed("hosts", {f"{SESSION}/{path.name}": cut_space(path.read_bytes()) for path in hosts})
    yield from _packed("run", run_folder())
    yield Seed("bomb.xplane.pb.gz", bomb(), weight=BOMB_WEIGHT)
    bombs = {f"{SESSION}/h.xplane.pb.gz": bomb(), f"{SESSION}/i.xplane.pb.gz": bomb()}
    yield Seed("bomb.zip", zip_of(bombs), weight=BOMB_WEIGHT)


def _of_capture(path: Path) -> Iterator[Seed]:
    """Yield what a capture gives; an XSpace also as TensorFlow 2.1 would have written it."""
    name = path.name.removesuffix(".gz")
    if not name.endswith((".xplane.pb", ".trace.json", *DERIVED)) or ".pt." in name or not path.stat().st_size:
        return
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if name.endswith(".xplane.pb"):
        data = cut_space(data)
        yield Seed(f"{name.removesuffix('.xplane.pb')}.trace", as_legacy(data), weight=LEGACY_WEIGHT)
    elif name.endswith(".trace.json"):
        data = cut_json(data)
    yield Seed(name, data, weight=1.0 if name.endswith(DERIVED) else SPACE_WEIGHT)


def _packed(name: str, members: Mapping[str, bytes]) -> Iterator[Seed]:
    for ending, pack in PACKERS.items():
        yield Seed(f"{name}.{ending}", pack(members), _damage_one(members, pack), PACKED_WEIGHT)


def _damage_one(members: Mapping[str, bytes], pack: Pack) -> Callable[[random.Random, int], bytes]:
    def rewrap(chance: random.Random, seed: int) -> bytes:
        name = chance.choice(sorted(members))
        if chance.random() < 0.05:
            return pack({other: data for other, data in members.items() if other != name})
        return pack({**members, name: mutate(members[name], seed)})

    return rewrap
