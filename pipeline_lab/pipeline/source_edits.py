"""Changes written into the user's files: the call at an exact range becomes a new call, every other byte stays.

Where the source does not say what the recipe says, a change is refused with the reason: a call under another name (a
``functools.partial``, an alias), an argument that comes from ``**options``, one expression that makes several datasets, a
file that changed since.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import assert_never

import libcst as cst

from pipeline_lab.data_classes import dataclass
from pipeline_lab.pipeline.change_words import BY_THE_BATCH, IN_BATCHES
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    KEEPING,
    OF_ANY_ELEMENTS,
    THREADS,
    Change,
    Edit,
    InBatches,
    Insert,
    IntoStep,
    MoveBefore,
    OneIterator,
    Remove,
    Rename,
    SetArgument,
    SetTraining,
    Split,
    TrainingEdit,
    Value,
    are_compatible,
    in_order,
    made_at_one_place,
    spread,
)
from pipeline_lab.pipeline.changing_state import find_changed_state
from pipeline_lab.pipeline.function_parts import FunctionParts, split_function
from pipeline_lab.pipeline.loop_edits import line_of_iterator
from pipeline_lab.pipeline.moved_calls import MoveBeforeBranch, MovedCall, is_inside
from pipeline_lab.pipeline.parsed_source import ParsedSource, RefusedError, Splice, splice
from pipeline_lab.pipeline.recipe import LOOP, TRAINING, DatasetCall, DatasetUse, Recipe, SourcePlace, is_installed
from pipeline_lab.pipeline.rewrites import PARAMETERS
from pipeline_lab.pipeline.stacked_functions import StackedFunction, find_stacked
from pipeline_lab.pipeline.statements import Branch, branch_between, check_adjacent
from pipeline_lab.pipeline.step_edits import move_into_step
from pipeline_lab.pipeline.training_edits import edit_training, is_in_loop, is_parameter

_NEWLINE = re.compile(r"\r\n|\r|\n")
"""What Python numbers lines by; ``str.splitlines`` knows more."""
KEPT_IN = frozenset({"filename", "path"})
"""Arguments that name files, which no two datasets share."""


@dataclass(frozen=True)
class Refused:
    """A change that was not written, and why."""

    change: Change
    reason: str


@dataclass(frozen=True)
class Edited:
    """Files after some changes.

    Attributes:
        before, texts: Those that changed, by path, as they were and as they are.
        written: Changes that are in them.
        refused: Those that are not.
        read: The files as their dataset is read for a proof, where they differ: what the training step does to its elements from then
            on is done where it is read.
    """

    before: Mapping[str, str]
    texts: Mapping[str, str]
    written: tuple[Change, ...]
    refused: tuple[Refused, ...]
    read: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_proof(self) -> "Edited":
        """The same, with the files as their dataset is read for a proof."""
        return replace(self, texts=self.read or self.texts)

    def line_of(self, path: str, line: int) -> int:
        """Return where a line of a file stands now, from 1; one that changes is the most similar of those in its place."""
        if path not in self.texts:
            return line
        before, after = (_NEWLINE.split(texts[path]) for texts in (self.before, self.texts))
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for kind, first, last, now_first, now_last in matcher.get_opcodes():
            if first < line <= last:
                if kind == "equal":
                    return line - first + now_first
                similar = difflib.SequenceMatcher(None, b=before[line - 1], autojunk=False)
                return 1 + max(
                    range(now_first, max(now_last, now_first + 1)), key=lambda now: _ratio(similar, after, now)
                )
        return line

    def line_that_reads(self, path: str, line: int) -> int:
        """Return where the dataset is read now that was read on a line: before the loops, where one iterator serves all passes."""
        now = self.line_of(path, line)
        return line_of_iterator(self.texts[path], now) if path in self.texts else now

    def diff(self, folder: Path | None = None) -> str:
        """Return what changed as a unified diff.

        Args:
            folder: To which paths are relative where they are below it.
        """
        return "".join(_diff(_shown(path, folder), self.before[path], text) for path, text in self.texts.items())


def _ratio(similar: "difflib.SequenceMatcher[str]", lines: Sequence[str], number: int) -> float:
    similar.set_seq1(lines[number] if number < len(lines) else "")
    return similar.ratio()


def _shown(path: str, folder: Path | None) -> str:
    below = folder is not None and Path(path).is_relative_to(folder)
    return Path(path).relative_to(folder).as_posix() if below and folder else path.lstrip("/")


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


TOGETHER = "It cannot be made together with a change above."


def edit_sources(
    recipe: Recipe, changes: Iterable[Change], texts: Mapping[str, str], use: DatasetUse | None = None
) -> Edited:
    """Write changes into the user's files, one after the other; what cannot be written is left out.

    Args:
        recipe: Of the script as the files have it.
        changes: What is wanted, the most important first.
        texts: The user's files by path, as the recipe names them.
        use: The reading that they are for; by default the training's.
    """
    use = use or recipe.trained
    written: list[Change] = []
    refused: list[Refused] = []
    after: Mapping[str, str] = {}
    read: Mapping[str, str] = {}
    for change in changes:
        try:
            together = [*written, change]
            if not are_compatible(together):
                raise RefusedError(TOGETHER)
            made = _Writer(recipe, texts, use).write(together)
            if any(each.fills_step for each in together):
                read = _Writer(recipe, texts, use, for_proof=True).write(together)
            after, written = made, together
        except RefusedError as error:
            refused.append(Refused(change, str(error)))
    return Edited({path: texts[path] for path in after}, after, tuple(written), tuple(refused), read)


class _Writer:
    """Collects what changes in the files of a recipe, and writes it.

    Args:
        recipe: Of the script.
        texts: The user's files by path.
        use: The reading that the changes are for.
        for_proof: As the dataset is read for a proof.
    """

    def __init__(
        self, recipe: Recipe, texts: Mapping[str, str], use: DatasetUse | None, *, for_proof: bool = False
    ) -> None:
        self._recipe, self._texts, self._use, self._for_proof = recipe, texts, use, for_proof
        self._parsed: dict[str, ParsedSource] = {}
        self._arguments: dict[tuple[str, cst.Call], tuple[str, dict[str, Value]]] = {}
        self._splices: dict[str, list[Splice]] = {}
        self._moves: list[MovedCall | MoveBeforeBranch] = []
        self._in_parts: set[cst.Call] = set()
        self._inserted: set[tuple[cst.Call, str]] = set()

    def write(self, changes: Iterable[Change]) -> dict[str, str]:
        """Return the files that change.

        Raises:
            RefusedError: A change cannot be written.
        """
        edits = [*in_order(edit for change in changes for edit in spread(self._recipe, change).edits)]
        for edit in edits:
            if (changed := find_changed_state(self._recipe, edit, self._texts)) is not None:
                raise RefusedError(f"{changed}; every epoch would get what was made before.")
        self._joins_passes = any(isinstance(edit, OneIterator) and edit.of_loop for edit in edits)
        for edit in edits:
            self._add(edit)
        for (path, node), (method, given) in self._arguments.items():
            self._splices.setdefault(path, []).extend(
                self._source(path).set_arguments(node, given, _order(self._source(path), node, method))
            )
        return {path: self._text(path) for path in {*self._splices, *(move.path for move in self._moves)}}

    def _text(self, path: str) -> str:
        raw, splices = self._source(path).raw, self._splices.get(path, [])
        moved: list[Splice] = []
        for move in (move for move in self._moves if move.path == path):
            moved += move.slots(raw, splices)
        kept = [each for each in splices if not any(is_inside(each, slot) for slot in moved)]
        text = splice(raw, [*kept, *moved], 0, len(raw) + 1).decode()
        try:
            compile(text, path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise RefusedError(f"{Path(path).name} would not be Python any more ({error.msg}).") from None
        return text

    def _source(self, path: str) -> ParsedSource:
        if path not in self._parsed:
            if is_installed(path):
                raise RefusedError(f"{Path(path).name} belongs to an installed package.")
            if path not in self._texts:
                raise RefusedError(f"The source of {Path(path).name} is not at hand.")
            self._parsed[path] = ParsedSource(path, self._texts[path])
        return self._parsed[path]

    def _find(self, number: int) -> tuple[ParsedSource, cst.Call, DatasetCall]:
        """Return the expression of a call.

        Raises:
            RefusedError: It is not written as the call of that method.
        """
        call = self._recipe.call(number)
        if call.place is None:
            raise RefusedError(f"{call.words} was not made by a line of the script.")
        if not call.is_direct:
            raise RefusedError(f"{call.method} is called inside of a library, by {call.text} ({call.place}).")
        source = self._source(call.place.file)
        node = source.node_at(call.place)
        if not isinstance(node, cst.Call):
            raise RefusedError(f"{call.place} is no call of {call.method} as it stands.")
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else getattr(node.func, "value", "")
        if name != call.method:
            said = source.code(node.func)
            raise RefusedError(
                f"{call.place} calls {call.method} by another name ({said}), which may be used elsewhere."
            )
        return source, node, call

    def _add(self, edit: Edit) -> None:
        match edit:
            case SetArgument(number, name, value):
                source, node, call = self._find(number)
                _check_given(source, node, call, name)
                self._arguments.setdefault((source.path, node), (call.method, {}))[1][name] = value
            case Rename(number, method):
                self._rename(number, method)
            case InBatches(number, size):
                self._hand_over(number, size)
            case Remove(number):
                source, node, _ = self._find(number)
                self._splice(source, *source.core(node), b"")
            case MoveBefore(number, before, then, stacked):
                self._move(number, before, then, stacked)
            case Insert(after, method, arguments):
                self._insert(after, method, arguments)
            case Split(number, parts, before_shuffle):
                self._split(number, parts, before_shuffle)
            case SetTraining() | OneIterator() | IntoStep():
                for path, one in self._changed_training(edit):
                    self._splice(self._source(path), one.start, one.end, one.text)
            case _:
                assert_never(edit)

    def _rename(self, number: int, method: str) -> None:
        source, node, call = self._find(number)
        if not isinstance(node.func, cst.Attribute):
            raise RefusedError(f"{call.place} calls {call.method} as a plain function.")
        self._splice(source, *source.span(node.func.attr), method.encode())

    def _changed_training(self, edit: TrainingEdit) -> Iterator[tuple[str, Splice]]:
        """Yield path and splice of each change of the source."""
        if not isinstance(edit, IntoStep):
            yield from edit_training(self._recipe, self._use, self._source, self._texts, edit)
            return
        source, node, call = self._find(edit.call)
        if len(made_at_one_place(self._recipe, edit.call)) > 1:
            raise RefusedError(f"{call.place} makes several datasets, which are not all trained on there.")
        moved = move_into_step(self._recipe, self._use, source, node, edit.call)
        yield from ((source.path, each) for each in (moved.compared if self._for_proof else moved.trained))

    def _hand_over(self, number: int, size: int) -> None:
        """Call a function that hands over a generator's elements by the batch, and write it before the statement."""
        source, node, _ = self._find(number)
        tensorflow = source.tensorflow(node)
        if not tensorflow:
            raise RefusedError(f"{source.name} does not import tensorflow above that line, which the change needs.")
        if any(each.star for each in node.args):
            raise RefusedError(f"What {IN_BATCHES} would be given in {source.name} is not known.")
        name = source.new_name(IN_BATCHES)
        self._splice(source, *source.span(node.func), name.encode())
        text = BY_THE_BATCH.format(name=name, size=size, tf=tensorflow)
        place = source.before_statement_of_module(node)
        helper = Splice(place, place, b"".join(line.encode() + source.newline for line in text.splitlines()))
        if helper not in self._splices[source.path]:
            self._splices[source.path].append(helper)

    def _splice(self, source: ParsedSource, start: int, end: int, text: bytes) -> None:
        new = Splice(start, end, text)
        if new not in self._splices.setdefault(source.path, []) or start == end:
            self._splices[source.path].append(new)

    def _insert(self, after: int, method: str, arguments: Mapping[str, Value]) -> None:
        try:
            source, node, call = self._find(after)
            self._check_shared(call, method, arguments)
        except RefusedError:
            inside = not self._recipe.call(after).is_direct
            if inside and method in KEEPING and (taken := self._consumer(after)) is not None:
                self._insert_at_consumer(taken, method, arguments)
                return
            is_end = self._use is not None and after == self._use.call
            if not is_end or (method not in OF_ANY_ELEMENTS and not (inside and method in KEEPING)):
                raise
            self._insert_at_use(method, arguments)  # where the dataset is read, it is this one dataset
            return
        if (node, method) in self._inserted:
            return  # behind another dataset that the same expression made
        self._inserted.add((node, method))
        text = self._call_text(source, node, method, arguments)
        dot, end = source.core(node) if isinstance(node.func, cst.Attribute) else (-1, source.span(node)[1])
        line_end, rest = source.rest_of_line(end)
        indent, is_first = source.start_of_line(dot) if dot >= 0 else (b"", False)
        if not is_first or source.is_continued(dot):
            self._splice(source, end, end, text)
        elif not rest or rest.startswith(b"#"):
            self._splice(source, line_end, line_end, source.newline + indent + text)
        else:
            self._splice(source, end, end, source.newline + indent + text)

    def _split(self, number: int, parts: FunctionParts, before: int | None) -> None:
        """End a function where its first part does, put the rest of it into another one, and map that as well."""
        source, node, call = self._find(number)
        if node in self._in_parts:
            return  # another dataset that the same expression made
        self._in_parts.add(node)
        self._check_shared(call, "cache", {})
        given = node.args[0] if node.args and node.args[0].keyword is None and not node.args[0].star else None
        if given is None or not isinstance(given.value, cst.Name) or given.value.value != parts.name:
            raise RefusedError(f"{call.place} names its function in another way than {parts.name}.")
        if split_function(source.raw.decode(), parts.name, parts.head) != parts:
            raise RefusedError(f"{parts.name} is not defined in {source.name}, or has changed since it was run.")
        if any(each.star for each in node.args):
            raise RefusedError(f"What {call.place} is given is not clear, for it takes * or **.")
        at: cst.Call | Branch = node
        if before is not None:
            (_, lower, _), (_, upper, above) = self._links(number, before)
            at = branch_between(source, upper, lower) or upper
            if at is upper:
                self._check_together(above, call)
                check_adjacent(source, upper, lower)
        name = source.raw.index(parts.name.encode(), source.raw.index(b"def", source.start_of(parts.head)) + len("def"))
        self._splice(source, name, name + len(parts.name.encode()), parts.kept_name.encode())
        between = parts.between.encode().replace(b"\n", source.newline)
        self._splice(source, source.start_of(parts.after + 1), source.start_of(parts.line), between)
        others = [source.code(each.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for each in node.args[1:]]
        by_place = sum(each.keyword is None for each in node.args)
        if by_place < 2 and not any(each.keyword and each.keyword.value == "num_parallel_calls" for each in node.args):
            others.append(f"num_parallel_calls={source.write_value('num_parallel_calls', AUTOTUNE, node)}")
        self._splice(source, *source.span(given.value), parts.rest_name.encode())
        first = f".map({', '.join([parts.kept_name, *others])})".encode()
        if isinstance(at, Branch):
            line = at.before(first + b".cache()")
            self._splice(source, line.start, line.end, line.text)
        else:
            self._prepend(source, at, first, b".cache()")

    def _stack_last(self, function: StackedFunction) -> None:
        source = self._source(function.file)
        if find_stacked(source.raw.decode(), function.file, function.name, function.line) != function:
            raise RefusedError(f"{function.name} is not defined in {source.name}, or has changed since it was run.")
        for line, column, end_line, end_column in function.calls:
            node = source.node_at(SourcePlace(function.file, line, end_line, column, end_column, line))
            assert isinstance(node, cst.Call)
            self._arguments.setdefault((source.path, node), ("stack", {}))[1]["axis"] = -1

    def _prepend(self, source: ParsedSource, node: cst.Call, *calls: bytes) -> None:
        """Write calls between a method's call and what it is called on, on lines of their own where it has one."""
        dot, _ = source.core(node)
        indent, is_first = source.start_of_line(dot)
        own_line = is_first and not source.is_continued(dot)
        text = (source.newline + indent).join(calls) + source.newline + indent if own_line else b"".join(calls)
        self._splice(source, dot, dot, text)

    def _check_shared(self, call: DatasetCall, method: str, arguments: Mapping[str, Value]) -> None:
        """Refuse to insert where one expression made several calls that must not all get it, or may make them in another run."""
        others = self._others(call)
        if not KEPT_IN.isdisjoint(arguments) and (others or self._may_be_made_again(call)):
            makes = "makes" if others else "may make"
            raise RefusedError(f"{call.place} {makes} several datasets, which cannot share a file.")
        if others and method not in ("prefetch", *KEEPING):
            raise RefusedError(f"{call.place} makes several datasets.")

    def _may_be_made_again(self, call: DatasetCall) -> bool:
        """Say whether a call stands in a loop, or in a function that its file names more than once besides defining it."""
        source, node, _ = self._find(call.number)
        functions = [each.name.value for each in source.around(node) if isinstance(each, cst.FunctionDef)]
        text = source.raw.decode()
        return is_in_loop(source, node) or any(len(re.findall(rf"\b{name}\b", text)) > 2 for name in functions)

    def _others(self, call: DatasetCall) -> list[DatasetCall]:
        """Return the other calls that the expression of one made.

        Raises:
            RefusedError: Some of them are behind one dataset.
        """
        others = [each for each in made_at_one_place(self._recipe, call.number) if each.number != call.number]
        upstream = {each.number for each in self._recipe.upstream(call.number)}
        for other in others:
            if other.number in upstream or call.number in {each.number for each in self._recipe.upstream(other.number)}:
                raise RefusedError(f"{call.place} makes several calls of this dataset, one after the other.")
        return others

    def _consumer(self, number: int) -> DatasetCall | None:
        """Return the call of the user's that takes a dataset on its way to where it is read."""
        upstream = () if self._use is None else self._recipe.upstream(self._use.call)
        return next((call for call in upstream if call.inputs == (number,) and call.is_direct), None)

    def _insert_at_consumer(self, taken: DatasetCall, method: str, arguments: Mapping[str, Value]) -> None:
        """Write a call of what a library's function returned where the user's next call takes it."""
        source, node, call = self._find(taken.number)
        self._check_shared(call, method, arguments)
        if self._others(call):
            raise RefusedError(f"{call.place} takes several datasets, and not all of them may be safe to keep.")
        if not isinstance(node.func, cst.Attribute) or _order(source, node, call.method)[:1] == ("self",):
            raise RefusedError(f"{call.place} takes the dataset through something else than its name.")
        self._prepend(source, node, self._call_text(source, node, method, arguments))

    def _insert_at_use(self, method: str, arguments: Mapping[str, Value]) -> None:
        use = self._use
        if use is None or use.place is None:
            raise RefusedError("Where the dataset is read is not known.")
        if self._joins_passes:
            raise RefusedError(
                f"One iterator serves all passes of {use.place}; assign the dataset with .{method} before."
            )
        source = self._source(use.place.file)
        node = source.node_at(use.place)
        given = _read_expression(node, is_fit=use.role == TRAINING)
        if not isinstance(given, (cst.Name, cst.Attribute)):
            raise RefusedError(f"{use.place} reads the dataset through something else than its name.")
        if method in KEEPING:
            self._check_kept_at(use.place, source, node, given, method)
        end = source.span(given)[1]
        self._splice(source, end, end, self._call_text(source, node, method, arguments))

    def _check_kept_at(
        self, place: SourcePlace, source: ParsedSource, node: cst.BaseExpression, given: cst.BaseExpression, method: str
    ) -> None:
        """Refuse to keep elements where a line reads a dataset that may be another one, or one that is made again, each time."""
        others = [each for each in self._recipe.uses if each.place == place and each.role in (TRAINING, LOOP)]
        if is_parameter(source, node, given) or len({each.call for each in others}) > 1:
            raise RefusedError(
                f"{place} may read a different dataset each time; add .{method} where the dataset is made."
            )
        if is_in_loop(source, node):
            raise RefusedError(
                f"{place} is in a loop, which would begin with an empty .{method} each time; add it where the dataset is made."
            )

    def _call_text(
        self, source: ParsedSource, node: cst.BaseExpression, method: str, arguments: Mapping[str, Value]
    ) -> bytes:
        """Return a method's call; of one that takes options, after writing those before the statement of a node."""
        if method == "with_options":
            return f".with_options({self._write_options(source, node, arguments)})".encode()
        order = PARAMETERS.get(method, ())
        written = [
            source.write_value(name, value, node)
            if order[:1] == (name,)
            else f"{name}={source.write_value(name, value, node)}"
            for name, value in arguments.items()
        ]
        return f".{method}({', '.join(written)})".encode()

    def _write_options(self, source: ParsedSource, node: cst.BaseExpression, arguments: Mapping[str, Value]) -> str:
        tensorflow = source.tensorflow(node)
        if not tensorflow:
            raise RefusedError(
                f"{source.name} does not import tensorflow above that line, whose options the change needs."
            )
        place, indent = source.line_before(node)
        name = source.new_name("pool_options" if THREADS in arguments else "data_options")
        lines = [f"{name} = {tensorflow}.data.Options()"]
        lines += [f"{name}.{option} = {source.write_value(option, value, node)}" for option, value in arguments.items()]
        self._splice(source, place, place, b"".join(indent + line.encode() + source.newline for line in lines))
        return name

    def _move(self, number: int, before: int, then: str, stacked: StackedFunction | None) -> None:
        if stacked is not None:
            self._stack_last(stacked)
        links = list(self._links(number, before))
        source, lower, moved = links[0]
        if any(each.star for each in lower.args):
            raise RefusedError(f"What {moved.place} is given is not clear, for it takes * or **.")
        if len(links) == 2 and (branch := branch_between(source, links[1][1], lower)) is not None:
            self._others(moved)
            added = f".{then}()".encode() if then else b""
            self._moves.append(MoveBeforeBranch(branch, lower, added))
            return
        for (_, below, call), (_, upper, above) in pairwise(links):
            self._check_together(above, call)
            check_adjacent(source, upper, below)
        cores = [source.core(node) for _, node, _ in reversed(links)]
        self._moves.append(MovedCall(source, cores, *self._added(source, links[-1][1], then)))

    def _check_together(self, above: DatasetCall, call: DatasetCall) -> None:
        """Refuse to exchange two calls unless each dataset that one of them makes goes through the other."""
        taken = {each.inputs for each in made_at_one_place(self._recipe, call.number)}
        if taken != {(each.number,) for each in made_at_one_place(self._recipe, above.number)}:
            raise RefusedError(f"{above.place} and {call.place} are not used together everywhere.")

    def _added(self, source: ParsedSource, first: cst.Call, then: str) -> tuple[bytes, bool]:
        """Return a call as it is written after one that moves, and whether it has a line of its own: as the one has in whose place that comes."""
        dot, _ = source.core(first)
        indent, is_first = source.start_of_line(dot)
        has_line = is_first and not source.is_continued(dot)
        text = f".{then}()".encode() if then else b""
        return source.newline + indent + text if text and has_line else text, has_line

    def _links(self, number: int, before: int) -> Iterator[tuple[ParsedSource, cst.Call, DatasetCall]]:
        """Yield the calls from one down to another that is upstream, which all stand in one file."""
        first, *_ = found = self._find(number)
        yield found
        while number != before:
            inputs = self._recipe.call(number).inputs
            if len(inputs) != 1:
                raise RefusedError(f"{self._recipe.call(number).words} is not downstream of what it moves before.")
            number = inputs[0]
            found = self._find(number)
            if found[0] is not first:
                raise RefusedError("The calls stand in different files.")
            yield found


def _check_given(source: ParsedSource, node: cst.Call, call: DatasetCall, name: str) -> None:
    """Refuse to set an argument where its place holds something that the call was not given for it.

    A method under a name of its own, or of a class under another name, may be given the dataset first.
    """
    if isinstance(node.func, cst.Name) and call.method[:1].islower():
        raise RefusedError(
            f"{call.place} calls {call.method} as a plain function, so which argument is the dataset is not clear."
        )
    found = source.find_argument(node, name, _order(source, node, call.method))
    if found is None:
        return
    if ":=" in source.code(found.value):
        raise RefusedError(f"{call.place} assigns a name inside its arguments (:=), which would be lost.")
    is_named = isinstance(found.value, (cst.Name, cst.Attribute, cst.Lambda)) and source.code(found.value) != "None"
    if found.keyword is None and is_named and call.arguments.get(name) is None:
        raise RefusedError(f"What {call.place} is given for {name} is not clear.")


def _order(source: ParsedSource, node: cst.Call, method: str) -> tuple[str, ...]:
    """Return the parameters that a call may give by position, the dataset itself first where it is called on the class."""
    order = PARAMETERS.get(method, ())
    is_unbound = (
        isinstance(node.func, cst.Attribute)
        and method[:1].islower()
        and method in _TAKES_DATASET
        and source.code(node.func.value).rpartition(".")[2] in ("Dataset", "DatasetV2")
    )
    return ("self", *order) if is_unbound else order


_TAKES_DATASET = frozenset(method for method in PARAMETERS if method[:1].islower())


_HAND_ON = frozenset({"enumerate", "iter", "tqdm"})
"""Functions of which a loop gets the elements of their first argument."""


def _read_expression(node: cst.BaseExpression, *, is_fit: bool) -> cst.BaseExpression:
    """Return what is read: what a loop goes through, or the data that ``fit`` is given; the call itself where that is not clear."""
    if not isinstance(node, cst.Call):
        return node
    owner = node.func.value if isinstance(node.func, cst.Attribute) else None
    name = getattr(node.func.attr if isinstance(node.func, cst.Attribute) else node.func, "value", "")
    if is_fit and isinstance(owner, (cst.Name, cst.Attribute)):
        kind = owner.attr.value if isinstance(owner, cst.Attribute) else owner.value
        if kind[:1].isupper():
            return node  # the class' own method, which is given a model first
    if not is_fit and name not in _HAND_ON:
        return node
    by_name = next((each.value for each in node.args if each.keyword and each.keyword.value == "x"), None)
    first = node.args[0].value if node.args and not node.args[0].star and node.args[0].keyword is None else None
    return by_name or first or node
