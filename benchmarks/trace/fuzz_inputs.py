"""What the fuzzer begins with: real captures in every wrapping that users bring, and archives that mean harm."""

import gzip
import io
import json
import random
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.recorded_run import write_run
from tests.support.xspace import XSpace, chunk, number
from tests.trace.mutations import mutate

DATA = Path(__file__).parents[2] / "tests" / "data"
LARGEST_BYTES = 600_000
"""A larger capture would take the time of many small ones."""
UNPACKED_BYTES = 100_000_000
"""The most that an input unpacks to before it is refused: that of `bomb`."""
SESSION = "log/plugins/profile/w"


@dataclass(frozen=True)
class Seed:
    """A sound file.

    Attributes:
        name: Which the reader goes by.
        data: Its bytes.
        rewrap: Puts damaged contents into the sound wrapping; without it the bytes themselves are damaged.
    """

    name: str
    data: bytes
    rewrap: Callable[[random.Random, int], bytes] | None = None

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
    files = [path for path in sorted(DATA.rglob("*.xplane.pb*")) if path.is_file()]
    if captures is not None:
        files += [path for path in sorted(captures.rglob("*")) if 0 < path.stat().st_size < LARGEST_BYTES]
    for path in files:
        if path.is_file() and path.suffix in (".pb", ".gz", ".json"):
            yield Seed(path.name, path.read_bytes())
    made = {
        "small.xplane.pb": small_space(),
        "small.xplane.pb.gz": gzip.compress(small_space()),
        "small.trace.json": chrome_trace(),
        "small.trace.json.gz": gzip.compress(chrome_trace()),
        "local.trace": legacy_trace(),
        "h.input_pipeline.pb": derived_file(),
    }
    for name, data in made.items():
        yield Seed(name, data)
    session = {f"{SESSION}/h.xplane.pb": small_space(), f"{SESSION}/i.trace.json": chrome_trace()}
    yield from _packed("log", session)
    hosts = sorted((DATA / "two_hosts").rglob("*.pb"))
    yield from _packed("hosts", {f"{SESSION}/{path.name}": path.read_bytes() for path in hosts})
    yield from _packed("run", run_folder())
    yield Seed("bomb.xplane.pb.gz", bomb())
    yield Seed("bomb.zip", zip_of({f"{SESSION}/h.xplane.pb.gz": bomb(), f"{SESSION}/i.xplane.pb.gz": bomb()}))


def _packed(name: str, members: Mapping[str, bytes]) -> Iterator[Seed]:
    for ending, pack in PACKERS.items():
        yield Seed(f"{name}.{ending}", pack(members), _damage_one(members, pack))


Pack = Callable[[Mapping[str, bytes]], bytes]


def _damage_one(members: Mapping[str, bytes], pack: Pack) -> Callable[[random.Random, int], bytes]:
    def rewrap(chance: random.Random, seed: int) -> bytes:
        name = chance.choice(sorted(members))
        if chance.random() < 0.05:
            return pack({other: data for other, data in members.items() if other != name})
        return pack({**members, name: mutate(members[name], seed)})

    return rewrap


def zip_of(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def tar_of(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


PACKERS: dict[str, Pack] = {
    "zip": zip_of,
    "tar": tar_of,
    "tar.gz": lambda members: gzip.compress(tar_of(members), 1),
}


def small_space() -> bytes:
    space = XSpace()
    for plane_name, line_name in (("/host:CPU", "python"), ("/device:GPU:0", "Stream #1")):
        plane = space.plane(plane_name).set("clock_rate", 5)
        for k in range(3):
            line = plane.line(f"{line_name}{k}", timestamp_ns=k)
            for n in range(12):
                line.event(f"Op::{n % 4}", n, 1, id=n, label="x", share=0.5)
    return space.environment(1_700_000_000 * 10**9, 1_700_000_001 * 10**9).encode()


def chrome_trace() -> bytes:
    names = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}}]
    events = [
        {"ph": "X", "pid": 1, "tid": n % 3, "ts": n, "dur": 1.5, "name": f"e{n % 4}", "args": {"id": str(n)}}
        for n in range(40)
    ]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *events, {}]}).encode()


def legacy_trace() -> bytes:
    resources = chunk(3, number(1, 7) + chunk(2, chunk(1, b"python") + number(2, 7)))
    device = chunk(1, number(1, 3) + chunk(2, chunk(1, b"/host:CPU") + number(2, 3) + resources))
    events = (
        number(1, 3) + number(2, 7) + chunk(3, b"IteratorGetNextSync") + number(9, n * 10**6) + number(10, 10**6)
        for n in range(40)
    )
    return device + b"".join(chunk(4, event) for event in events)


def derived_file() -> bytes:
    return chunk(1, number(1, 3)) + chunk(4, chunk(1, b"type.googleapis.com/x") + chunk(2, number(1, 4))) + number(6, 1)


def bomb() -> bytes:
    """Return 160 MB of nothing as gzip, made in blocks: the memory of the fuzzer itself is measured, too."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(bytes(1 << 20)) for _ in range(160)]) + packer.flush()


def run_folder() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = write_run(Path(name) / "run", windows=1)
        files = sorted(path for path in folder.path.rglob("*") if path.is_file())
        return {str(path.relative_to(name)): path.read_bytes() for path in files}


_HARMFUL_NAMES = (
    "../../outside.xplane.pb",
    "log/../../outside.xplane.pb",
    "/etc/outside.xplane.pb",
    "C:\\outside.xplane.pb",
    "..\\outside.xplane.pb",
    "\\\\server\\share\\h.xplane.pb",
    "log",
    "log/",
    "",
    ".",
    "./",
    "log/h.xplane.pb/inner.xplane.pb",
    f"{SESSION}/h.xplane.pb",
    "log/" + "x" * 300 + ".xplane.pb",
    "log/" + "d/" * 2000 + "h.xplane.pb",
    "log/new\nline\x1b[31m.xplane.pb",
    "log/\udcff\udcfe.xplane.pb",
    "log/\u202egnp.xplane.pb",
    "CON",
    "run.json",
    "inner.zip",
)
_TYPES = (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)


def hostile_archive(seed: int) -> tuple[str, bytes]:
    """Return name and bytes of an archive that no honest program writes."""
    chance = random.Random(seed)
    names = [chance.choice(_HARMFUL_NAMES) for _ in range(chance.randrange(1, 5))]
    contents = [_harmful_content(chance) for _ in names]
    if chance.random() < 0.5:
        return "hostile.zip", _hostile_zip(chance, names, contents)
    data = _hostile_tar(chance, names, contents)
    return ("hostile.tar.gz", gzip.compress(data, 1)) if chance.random() < 0.5 else ("hostile.tar", data)


def _harmful_content(chance: random.Random) -> bytes:
    kinds = (
        b"",
        bytes(100_000),
        small_space(),
        zip_of({"h.xplane.pb": small_space()}),
        gzip.compress(bytes(2_000_000)),
    )
    return chance.choice(kinds)


def _hostile_zip(chance: random.Random, names: list[str], contents: list[bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA))
    ) as archive:
        for name, content in zip(names, contents, strict=True):
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            info.compress_type = archive.compression
            if chance.random() < 0.2:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, content)
    data = bytearray(out.getvalue())
    if chance.random() < 0.2:  # a length, a flag or a method that is not true
        at = data.rfind(b"PK\x01\x02") + chance.randrange(4, 46)
        data[at : at + 2] = chance.choice((b"\xff\xff", b"\x01\x00", b"\x63\x00"))
    return bytes(data)


def _hostile_tar(chance: random.Random, names: list[str], contents: list[bytes]) -> bytes:
    out = io.BytesIO()
    form = chance.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as archive:
        for name, content in zip(names, contents, strict=True):
            info = tarfile.TarInfo(name)
            info.type = chance.choice(_TYPES) if chance.random() < 0.4 else tarfile.REGTYPE
            info.linkname = chance.choice(names) if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            info.size = len(content) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
