"""A call that changes its place in a file: what is written where it comes, and where it was."""

from collections.abc import Sequence

import libcst as cst

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, splice
from pipeline_lab.pipeline.statements import Branch


@dataclass(frozen=True)
class MovedCall:
    """A call that moves upstream in one file.

    Attributes:
        source: The file.
        cores: The calls from their dots, upstream first: the last one moves to the first place, the others one place on.
        added: What is written after it.
        has_line: On a line of its own, after the comments of the call's.
    """

    source: ParsedSource
    cores: list[tuple[int, int]]
    added: bytes
    has_line: bool

    @property
    def path(self) -> str:
        return self.source.path

    def slots(self, raw: bytes, splices: Sequence[Splice]) -> list[Splice]:
        """Return what comes to each place; comments go with their lines, unless something new would come behind one."""
        places, end = self.cores, self.cores[-1][1]
        lines = [self.source.rest_of_line(each) for _, each in self.cores]
        has_new = any(each.start == each.end == end for each in splices)
        if all(not rest or rest.startswith(b"#") for _, rest in lines) and not (
            has_new and any(rest for _, rest in lines)
        ):
            places = [(start, line_end) for (start, _), (line_end, _) in zip(self.cores, lines, strict=True)]
        starts = [start for start, _ in places]
        if any(each.start == each.end and each.start in starts[1:] for each in splices):
            raise RefusedError(f"Something new would come between calls of {self.source.name} that change places.")
        inside = [each for each in splices if not each.start == each.end == starts[0]]  # which is before them
        others = [splice(raw, inside, *place) for place in places[:-1]]
        if self.has_line or end == places[-1][1]:
            first = splice(raw, inside, *places[-1]) + self.added
        else:
            first = splice(raw, [*inside, Splice(end, end, self.added)], *places[-1])
        return [Splice(*place, content) for place, content in zip(places, [first, *others], strict=True)]


@dataclass(frozen=True)
class MoveBeforeBranch:
    """A call that moves before the ``if`` above its statement.

    Attributes:
        branch: Before which it comes.
        call: That moves.
        added: What is written after it.
    """

    branch: Branch
    call: cst.Call
    added: bytes

    @property
    def path(self) -> str:
        return self.branch.source.path

    def slots(self, raw: bytes, splices: Sequence[Splice]) -> list[Splice]:
        """Return the line before the branch, and delete what moved; what is inserted behind it stays."""
        source = self.branch.source
        place = source.core(self.call)
        behind, _ = source.rest_of_line(place[1])
        has_new = any(place[1] <= each.start == each.end <= behind for each in splices)
        taken = self.branch.take_out(self.call, has_new=has_new)
        moved = source.dedented(splice(raw, splices, *place), self.call, self.branch.start) + self.added
        return [self.branch.before(moved, taken.comment, taken.above), Splice(*taken.place, b"")]


def is_inside(each: Splice, slot: Splice) -> bool:
    """Say whether a splice lies in the stretch of another one, which then holds it already."""
    is_beside = each.start == each.end and each.start in (slot.start, slot.end)
    return slot.start <= each.start and each.end <= slot.end and not is_beside
