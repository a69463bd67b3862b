"""Compile loops over events once and keep the machine code on disk, where later processes load it without Numba.

Importing Numba takes longer than reading a usual trace. So only the first process of a machine does: it compiles a loop for
the kinds of arguments that it is called with, and writes the machine code. Later ones put that into memory and call it.
"""

import contextlib
import ctypes
import hashlib
import os
import re
import threading
import weakref
from array import array
from collections.abc import Callable, Iterator
from functools import cache, cached_property, update_wrapper
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_args

import numpy as np
import platformdirs
from numpy.typing import NDArray

from pipeline_lab.trace.instructions import Instruction
from pipeline_lab.trace.machine_code import can_place_code, place_code

P = ParamSpec("P")
R = TypeVar("R")

SOURCES = (
    "trace/compiled.py",
    "trace/instructions.py",
    "trace/wire.py",
    "trace/line_columns.py",
    "trace/xplane/plane_wire.py",
    "trace/xplane/salvage.py",
    "trace/chrome_trace.py",
    "trace/legacy/local_scan.py",
    "analysis/activity/intervals.py",
    "analysis/activity/event_sets.py",
    "analysis/steps/local_level.py",
    "analysis/tf_data/kernels.py",
)
"""The files of the package that hold compiled functions."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on its first call, without the GIL; later processes load the machine code.

    Its arguments are arrays, contiguous if it writes into them, whole numbers, and tuples of these; it returns a number, a truth value, a tuple of
    them, or None, as its annotation says. The code lies in the user's cache folder (or ``NUMBA_CACHE_DIR``), in a folder of
    its own per version of `SOURCES`. Where nothing can be written it is compiled in every process, which costs some seconds
    and changes no result.
    """
    return CompiledFunction(function)


def is_compiled() -> bool:
    """Say whether machine code from an earlier process is there; without it a first reading takes seconds longer."""
    return any(_folder(os.environ.get("NUMBA_CACHE_DIR", "")).glob(f"*{_ENDING}"))


_ENDING = ".o"
_LOCK = threading.RLock()


def _renew_lock() -> None:
    """Let a forked process find no lock that a thread of the other one held."""
    global _LOCK
    _LOCK = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
AnyArray = NDArray[Any]
Entry = Callable[..., int]
Shape = tuple[Any, ...] | str
"""Of an argument: ``-`` for a number, the kind of an array's numbers once for each dimension, as ``dd``, or those of a tuple."""


_SCRATCH = (ctypes.c_int64 * 2)()
_NOWHERE = ctypes.addressof(_SCRATCH)
"""Where compiled code writes that it returns None, and what error it raised."""


class CompiledFunction(Generic[P, R]):
    """A function and its machine code, by the kinds of its arguments."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = cast(FunctionType, function)
        self._entries: dict[tuple[Shape, ...], Entry] = {}
        returned = function.__annotations__["return"]
        self.results = () if returned is None else get_args(returned) or (returned,)
        self.is_tuple = bool(get_args(returned))
        self._room = [0] * len(self.results)
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        assert not named, "compiled functions take no names"
        numbers: list[int] = []
        copies: list[AnyArray] = []  # kept until the call is over
        kinds = tuple([_flatten(argument, numbers, copies) for argument in arguments])
        try:
            entry = self._entries.get(kinds) or self._find(kinds)
        except (AttributeError, ImportError):  # another version of Numba, whose inside differs
            return cast(R, self.plain(*arguments))
        taken = array("q", self._room + numbers)
        place = taken.buffer_info()[0]
        if entry(_NOWHERE, _NOWHERE, place, place):  # a call takes as long as an argument more than these
            raise RuntimeError(f"{self.function.__name__} raised an error")
        if not self.results:
            return cast(R, None)
        values = [bool(value) if kind is bool else value for kind, value in zip(self.results, taken, strict=False)]
        return cast(R, tuple(values) if self.is_tuple else values[0])

    @cached_property
    def dispatcher(self) -> Any:
        """The function as other compiled ones call it."""
        import numba

        own = self.function
        known = {
            name: value.dispatcher if isinstance(value, CompiledFunction | Instruction) else value
            for name, value in own.__globals__.items()
            if name in own.__code__.co_names
        }
        copy = FunctionType(own.__code__, {**known, "__name__": own.__module__}, own.__name__)
        return numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(copy)

    def _find(self, kinds: tuple[Shape, ...]) -> Entry:
        """Load the machine code for arguments of these kinds, or compile it."""
        with _LOCK:
            if kinds in self._entries:
                return self._entries[kinds]
            path = _folder(os.environ.get("NUMBA_CACHE_DIR", "")) / (self._digest(kinds) + _ENDING)
            code = _read(path)
            if code is None:
                code = _compile(self, kinds)
                _write(path, code)
            self._entries[kinds] = _link(code)
            return self._entries[kinds]

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as Numba itself calls it: slow to start, and the same in every version of Numba."""
        import numba

        return cast(Callable[..., Any], numba.njit(nogil=True)(self.dispatcher.py_func))

    def _digest(self, kinds: tuple[Shape, ...]) -> str:
        """Name the machine code after what it was made of and for."""
        code = self.function.__code__
        made_of = (code.co_code, code.co_consts, code.co_names, kinds, _processor())
        digest = hashlib.blake2b(repr(made_of).encode(), digest_size=12)
        return f"{self.function.__name__}-{digest.hexdigest()}"


@cache
def _processor() -> str:
    """Name this processor and all that it can do: machine code for another one may not run here."""
    if can_place_code():
        with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            first, _, _ = file.read(_ONE_PROCESSOR).partition("\n\n")
            told = [line for line in first.splitlines() if line.startswith(("model name", "flags"))]
            if len(told) == 2:
                return "\n".join(told)
    from llvmlite import binding

    return f"{binding.get_host_cpu_name()}\n{binding.get_host_cpu_features().flatten()}"


_ONE_PROCESSOR = 16_384
"""Bytes in which Linux tells all of a processor, which takes time for each one more."""


def _flatten(argument: Any, numbers: list[int], copies: list[AnyArray]) -> Shape:
    """Append the numbers that stand for an argument, and return its kind; of scattered arrays a copy is read."""
    if isinstance(argument, np.ndarray):
        kind = argument.dtype
        if not (argument.flags.c_contiguous and kind.isnative):
            argument = np.ascontiguousarray(argument, kind.newbyteorder("="))
            copies.append(argument)
        numbers.append(_address(argument))
        numbers += argument.shape
        code: str = kind.char * argument.ndim
        return code
    if isinstance(argument, tuple):
        return tuple([_flatten(part, numbers, copies) for part in argument])
    numbers.append(int(argument))
    return _NUMBER


def _address(array: AnyArray) -> int:
    """Return where an array lies; ``array.ctypes`` takes longer than many a call. Of the last one that is read only it is kept."""
    global _read_only
    if array.flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast(Any, array)))
    known, address = _read_only
    if known() is array:
        return address
    address = array.ctypes.data
    _read_only = weakref.ref(array), address
    return address


_read_only: tuple[Callable[[], AnyArray | None], int] = (lambda: None, 0)
_NUMBER = "-"


def _compile(function: "CompiledFunction[Any, Any]", kinds: tuple[Shape, ...]) -> bytes:
    """Return the machine code of a function that takes where numbers lie: room for its results, then what stands for its arguments."""
    import numba
    from llvmlite import binding
    from numba.core import compiler, registry
    from numba.core.compiler_lock import global_compiler_lock

    places = count(len(function.results))
    results = [f"result[{number}]" for number in range(len(function.results))] if function.is_tuple else ["result"]
    body = [f"result = function({', '.join([_written(kind, places) for kind in kinds])})"]
    body += [f"numbers[{number}] = {result}" for number, result in enumerate(results) if function.results]
    scope: dict[str, Any] = {"function": function.dispatcher, "carray": numba.carray}
    scope |= {f"kind{code}": np.dtype(chr(int(code))) for code in re.findall(r"\bkind(\d+)", body[0])}
    exec("\n    ".join(["def entry(numbers, pointers):", *body]), scope)  # noqa: S102 (all of it is written here)
    flags = compiler.Flags()
    flags.nrt = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    typing, target = registry.cpu_target.typing_context, registry.cpu_target.target_context
    typing.refresh()
    target.refresh()
    taken = (numba.types.CPointer(numba.int64), numba.types.CPointer(numba.types.voidptr))
    with global_compiler_lock, _without_machine_code():
        made = compiler.compile_extra(typing, target, scope["entry"], taken, numba.types.none, flags, {})
        made.library._ensure_finalized()  # takes in what it calls
    text = made.library.get_llvm_str().replace(made.fndesc.llvm_func_name, _ENTRY)
    alone = _COUNTING.sub("", text).replace(
        "define linkonce_odr ", "define internal "
    )  # what nobody else calls is taken in
    module = binding.parse_assembly(alone)
    codegen = made.library.codegen
    optimize, how = codegen._module_pass_manager()
    optimize.run(module, how)
    return cast(bytes, codegen._tm.emit_object(module))


_COUNTING = re.compile(r"^ *(?:tail )?call void @NRT_(?:incref|decref)\(.*\n", re.MULTILINE)
"""How LLVM is told to count who uses an array; nobody makes or frees one here, and the count would take most of the time."""


@contextlib.contextmanager
def _without_machine_code() -> Iterator[None]:
    """Let Numba optimize functions lightly and make no machine code of them: what calls them takes them in and is optimized whole."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.cpu import CPUContext

    def optimize_lightly(library: Any) -> None:
        optimize, how = library.codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        optimize.run(library._final_module, how)

    instead: tuple[tuple[Any, str, Any], ...] = (
        (JITCodeLibrary, "_optimize_final_module", optimize_lightly),
        (JITCodeLibrary, "_finalize_specific", lambda _: None),
        (CPUContext, "get_executable", lambda *_: [].append),  # a key of its own for each, which nobody calls
    )
    before = [getattr(owner, name) for owner, name, _ in instead]
    try:
        for owner, name, function in instead:
            setattr(owner, name, function)
        yield
    finally:
        for (owner, name, _), function in zip(instead, before, strict=True):
            setattr(owner, name, function)


def _written(kind: Shape, places: Iterator[int]) -> str:
    """Write an argument of the function in terms of the numbers that stand for it: of an array where it lies, then its lengths."""
    if isinstance(kind, tuple):
        return f"({', '.join([_written(part, places) for part in kind])},)"
    if kind == _NUMBER:
        return f"numbers[{next(places)}]"
    pointer, lengths = next(places), [f"numbers[{next(places)}]" for _ in kind]
    return f"carray(pointers[{pointer}], ({', '.join(lengths)},), kind{ord(kind[0])})"


_ENTRY = "pipeline_lab_entry"
_linked: list[Any] = []
"""What LLVM made of machine code, kept while the process lasts."""


def _link(code: bytes) -> Entry:
    """Return machine code as a function of where its numbers lie, once as numbers and once as pointers; it holds no GIL."""
    address = place_code(code, _ENTRY) or _place_by_llvm(code)
    return ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)(address)


def _place_by_llvm(code: bytes) -> int:
    from llvmlite import binding

    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _linked.append(engine)
    return int(engine.get_function_address(_ENTRY))


def _machine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(jit=True)


_SEAL = 16
"""Bytes before the code that tell whether it is whole: damaged code would end the process."""


def _read(path: Path) -> bytes | None:
    """Return kept machine code, or None where there is none that is whole."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    return kept[_SEAL:] if len(kept) > _SEAL and kept[:_SEAL] == _seal(kept[_SEAL:]) else None


def _seal(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=_SEAL).digest()


def _write(path: Path, code: bytes) -> None:
    """Keep machine code for later processes, where that is possible."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(f".{path.name}-{os.getpid()}")
        scratch.write_bytes(_seal(code) + code)
        scratch.replace(path)


@cache
def _folder(chosen: str) -> Path:
    root = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("pipeline-lab")) / "compiled"
    package = Path(os.path.realpath(__file__)).parents[1]
    digest = hashlib.blake2b(b"".join((package / name).read_bytes() for name in SOURCES), digest_size=8)
    return root / digest.hexdigest()
