"""Run a script unchanged and record windows of it by the clock.

``python -m pipeline_lab.capture.watch_script [options] script.py args …`` stands in for ``python script.py args …``: same
process, same streams, same exit code. Nothing is imported that the script could notice: not even numpy is loaded before
the script itself loads TensorFlow.
"""

import argparse
import builtins
import contextlib
import importlib.machinery
import io
import os
import runpy
import shlex
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from pipeline_lab.capture.recording import Recording, find_process
from pipeline_lab.capture.script.at_import import after_import, is_imported
from pipeline_lab.capture.script.script_end import NO_TENSORFLOW, ScriptEnd
from pipeline_lab.errors import PipelineLabError
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import open_store
from pipeline_lab.units import BYTES_PER_MB, NS_PER_S, format_duration
from pipeline_lab.worker.note.failures import explain_user_error, first_line, place_of_frame, user_frames


def run_script(path: str, arguments: list[str]) -> None:
    """Run a file; its exceptions pass through.

    Raises:
        FileNotFoundError: There is no such file.
    """
    absolute = str(Path(path).absolute())
    with io.open_code(absolute) as file:
        text = file.read()
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=absolute,
        __builtins__=builtins,
        __spec__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", absolute),
    )
    sys.argv[:] = [path, *arguments]
    _look_first_in(Path(path).resolve().parent)
    sys.modules["__main__"] = main
    exec(compile(text, absolute, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 (requested by the user)


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module as ``python -m`` does, by the same function; its exceptions pass through.

    ``runpy.run_module`` removes ``__main__`` when the module ends, while its threads and exit handlers still run.
    """
    sys.argv[:] = [name, *arguments]
    _look_first_in(Path.cwd())
    sys.modules["__main__"] = types.ModuleType("__main__")
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # it has no public name


def _look_first_in(folder: Path) -> None:
    """Search a folder first, unless ``PYTHONSAFEPATH`` is set."""
    if not sys.flags.safe_path:
        sys.path[0] = str(folder)


def hide_own_frames() -> None:
    """Leave this package's frames out of the traceback of an error that ends the script."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown = user_frames(traceback)
        before(kind, error.with_traceback(shown), shown)

    sys.excepthook = show


LOOK_S = 1.0
STILL_S = 60.0
SURE_LOOKS = 5


class Standstill:
    """Checks once a second where the main thread is, and reports when it is stuck in one call, waiting for a batch say.

    The same instruction at every check may still be many calls, whose frames happen to have one address. Only then is the
    frame itself held for some checks, to prove that it is one call; holding it always would keep the script's variables
    alive.

    Args:
        home: The folder below which code is the user's.
        report: Takes the sentence, once per standstill.
    """

    def __init__(self, home: Path, report: Callable[[str], None]) -> None:
        self._home, self._report = home, report
        self._due_s = self._since_s = 0.0
        self._place: tuple[int, int] | None = None
        self._held: FrameType | None = None
        self._looks, self._is_reported = 0, False

    def look(self, now_s: float) -> None:
        """Check, if it is due; ``now_s`` comes from a monotonic clock."""
        if now_s < self._due_s:
            return
        self._due_s = now_s + LOOK_S
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        place = None if frame is None else (id(frame), frame.f_lasti)
        if place != self._place or (self._held is not None and frame is not self._held):
            self._place, self._since_s, self._held, self._looks, self._is_reported = place, now_s, None, 0, False
        elif not self._is_reported and now_s - self._since_s >= STILL_S:
            self._held, self._looks = frame, self._looks + 1
            if self._looks > SURE_LOOKS:
                self._say(now_s)

    def _say(self, now_s: float) -> None:
        self._is_reported = True
        place, self._held = place_of_frame(self._held, self._home), None
        if place:
            length = format_duration((now_s - self._since_s) * NS_PER_S)
            self._report(
                f"Python has been at {place} for {length}, in one call; if it requests a batch there, none arrived."
            )


TAG = "watched"
POLL_S = 0.05
MAY_CRASH = (
    "TensorFlow's profiler can crash a worker of MultiWorkerMirroredStrategy (seen with 2.21 on CPUs, without Pipeline Lab "
    "as well); a larger --every makes that less likely."
)


def main(arguments: list[str] | None = None) -> None:
    chosen = _parse(sys.argv[1:] if arguments is None else arguments)
    command = shlex.join(["-m", *chosen.target] if chosen.module else chosen.target)
    try:
        recording = Recording(
            open_store(chosen.store), chosen.name or command, tags=(TAG,), process=find_process(os.environ)
        )
    except PipelineLabError as error:
        sys.exit(f"pipeline-lab: {error}")
    recording.describe({"command": command})
    home = _home(chosen.target[0])
    afterwards = LookBack(recording, calibrates=chosen.calibrate, samples=chosen.samples)
    watcher = Watcher(recording, home, every_s=chosen.every, length_s=chosen.seconds, keep=afterwards.keep)
    after_import("tensorflow", _note_what_is_made)
    for package in ("keras", "tf_keras"):
        after_import(package, _hook_keras)
    ending = ScriptEnd(recording, watcher.finish, is_quiet=chosen.quiet)
    ending.greet()
    if recording.process.size > 1 and "TF_CONFIG" in os.environ:
        ending.warn(MAY_CRASH)

    def look_back() -> None:
        if watcher.finish() != NO_TENSORFLOW:
            with contextlib.suppress(Exception):  # must not affect the script's end
                afterwards.look(ending.say)

    _run(chosen, home, ending, look_back)


def _note_what_is_made() -> None:
    """Note every dataset, iterator and call of Keras from the first one on; TensorFlow may have imported Keras itself."""
    from pipeline_lab.capture.script.keras_hooks import hook_keras
    from pipeline_lab.capture.script.live_iterators import note_new_iterators
    from pipeline_lab.capture.script.noted_datasets import note_new_datasets

    note_new_iterators()
    note_new_datasets()
    hook_keras()


def _hook_keras() -> None:
    """Note what a Keras calls that is imported after TensorFlow; one on another backend loads none."""
    if is_imported("tensorflow"):
        from pipeline_lab.capture.script.keras_hooks import hook_keras

        hook_keras()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pipeline-lab watch", allow_abbrev=False)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--name")
    parser.add_argument("--every", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--calibrate", action=argparse.BooleanOptionalAction)
    parser.add_argument("--samples", action="store_true")
    parser.add_argument("--even-interrupted", action="store_true")
    parser.add_argument("-m", dest="module", action="store_true")
    parser.add_argument("target", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


UNASKED_SHARE = 0.05
"""Part of a script's time that timing step and input alone may take, each, where nobody asked for it."""


class LookBack:
    """What is done after the script's last line: time step and pipeline alone, find the file of each example.

    Args:
        recording: The run.
        calibrates: Whether to time them; None where that costs the training nothing: a step that ``fit`` took, whose model is
            small or the script still has, on data that a generator or unknown source does not give.
        samples: Whether to find the files.
    """

    def __init__(self, recording: Recording, *, calibrates: bool | None, samples: bool) -> None:
        self._recording, self._calibrates, self._samples = recording, calibrates, samples
        self._begun_s = time.monotonic()

    def keep(self) -> None:
        """Keep from now on what that needs; TensorFlow is loaded."""
        from pipeline_lab.capture.script.keras_hooks import keep_last_fit
        from pipeline_lab.capture.script.own_loops import keep_last_step

        is_wanted = bool(self._calibrates or self._samples)
        if is_wanted:
            keep_last_step()
        if is_wanted or self._calibrates is None:
            keep_last_fit(large_models=is_wanted)

    def look(self, say: Callable[[str], None]) -> None:
        """Do it, and say so first; Ctrl-C leaves it."""
        from pipeline_lab.capture.script.keras_hooks import last_fit
        from pipeline_lab.capture.watched_calibration import MOST_S, calibrate, may_be_timed
        from pipeline_lab.capture.watched_samples import sample_training

        most_s = MOST_S if self._calibrates else min(MOST_S, UNASKED_SHARE * (time.monotonic() - self._begun_s))
        may_time = self._recording.process.size == 1 and may_be_timed(last_fit())
        for is_wanted, doing, what, done in (
            (
                may_time if self._calibrates is None else self._calibrates,
                "timing the step and its input alone, a few seconds (--no-calibrate leaves that out)",
                "Nothing was timed alone",
                lambda recording: calibrate(recording, most_s),
            ),
            (
                self._samples,
                "looking for the file of each example",
                "Which file each example comes from was not found",
                sample_training,
            ),
        ):
            if is_wanted:
                say(doing)
                try:
                    done(self._recording)
                except Exception as error:  # must not affect the script's end
                    self._recording.note(f"{what} ({type(error).__name__}: {error}).")
                except KeyboardInterrupt:
                    self._recording.note(f"{what}: interrupted (Ctrl-C).")


class Watcher:
    """The side thread: waits for TensorFlow, then opens and closes windows until the script ends.

    Args:
        home: The folder below which code is the user's.
        every_s, length_s: See :class:`~pipeline_lab.capture.clock_windows.ClockWindows`.
        keep: Called once TensorFlow is there: keeps what is needed after the script's last line.
    """

    def __init__(
        self, recording: Recording, home: Path, *, every_s: float, length_s: float, keep: Callable[[], None]
    ) -> None:
        self._keep = keep
        self._recording, self._every_s, self._length_s = recording, every_s, length_s
        self._standstill = Standstill(home, recording.note)
        self._end = threading.Event()
        self._problem = NO_TENSORFLOW
        self._thread = threading.Thread(target=self._watch, name="pipeline-lab", daemon=True)
        self._thread.start()

    def finish(self) -> str:
        """Write the open window, if any; return what kept the script from being recorded to its end, or nothing."""
        self._end.set()
        self._thread.join()
        return self._problem

    def _watch(self) -> None:
        try:
            if self._wait_for_tensorflow():
                self._record()
        except Exception as error:  # must not affect the script
            stopped = f"Recording stopped ({type(error).__name__}: {error}); the script went on."
            self._recording.note(stopped)
            self._problem = stopped

    def _wait_for_tensorflow(self) -> bool:
        while not self._end.wait(POLL_S):
            if _is_loaded("tensorflow"):
                return True
        return False

    def _record(self) -> None:
        _note_what_is_made()  # first, because the script continues; has been done unless TensorFlow was loaded in an odd way
        from pipeline_lab.capture.device_use import UsedDevice, note_new_sessions
        from pipeline_lab.capture.script.keras_hooks import is_building, is_evaluating
        from pipeline_lab.capture.script.timed_steps import TimedSteps
        from pipeline_lab.capture.shared_profiler import SharedProfiler, make_room_for_others

        note_new_sessions()
        self._problem = ""
        recording = self._recording
        recorder = recording.windows(SharedProfiler(SETTLING_S))
        steps = TimedSteps(recording, recorder)
        self._keep()
        from pipeline_lab.capture.clock_windows import ClockWindows
        from pipeline_lab.capture.sampler import Sampler
        from pipeline_lab.worker.note.environment import describe_environment
        from pipeline_lab.worker.recipe.keeping import KeptRecipe
        from pipeline_lab.worker.recipe.wrapping import ledger

        recording.describe(describe_environment())
        recording.enter("training")
        windows = ClockWindows(
            recording,
            recorder,
            every_s=self._every_s,
            length_s=self._length_s,
            ceiling_bytes=CEILING_MB * BYTES_PER_MB,
            in_step=recording.process.size > 1,
            step_ns=lambda: steps.log.step_ns,
            in_first_step=lambda: is_building() or steps.log.is_in_first_step,
        )
        make_room_for_others(recorder.pause, recorder.resume)
        sampler = Sampler(recording.own, recording.clock, windows.watch_memory)
        recipe = KeptRecipe(recording.own, ledger)
        device, is_stopped = UsedDevice(recording.describe), False
        try:
            while not is_stopped and not self._end.wait(windows.pause_s):
                if device.look():  # the profiler would initialize devices before the script has chosen its own
                    windows.begin()
                if not is_evaluating():
                    windows.tick()
                elif is_evaluating(longer_than_ns=LONG_EVALUATION_NS):
                    windows.interrupt()
                recipe.write()
                self._standstill.look(time.monotonic())
                is_stopped = recording.folder.cancel_flag.exists()  # set by the app
        finally:
            windows.finish()
            steps.close()
            sampler.close()
            recipe.write(is_last=True)
        if is_stopped:  # last, because it deletes the folder that the last window is written to
            recording.end(RunState.CANCELLED, "Recording was stopped; the script went on.")


LONG_EVALUATION_NS = NS_PER_S // 2
"""Once the job evaluates for longer, the open window is closed; none opens while it evaluates."""
SETTLING_S = 1.0
"""Longest wait for the devices before a window opens or closes: the script gives them more work meanwhile."""
CEILING_MB = 200
"""Memory that one window may add to the script's process, MB."""


def _is_loaded(name: str) -> bool:
    """Say whether a module is completely imported."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _run(chosen: argparse.Namespace, home: Path, ending: ScriptEnd, look_back: Callable[[], None]) -> None:
    hide_own_frames()
    _record_hard_exits(ending)
    target, arguments = chosen.target[0], chosen.target[1:]
    try:
        _run_to_its_end(run_module if chosen.module else run_script, target, arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if not code:
            look_back()
        said = "" if code is error.code else first_line(error)
        words = f" after “{said}”" if said else ""
        ending.by_exit(code, f"The script ended with exit code {code}{words}." if code else "")
        raise
    except KeyboardInterrupt:
        if chosen.even_interrupted:
            look_back()
        ending.by_interrupt()
        raise
    except BaseException as error:
        ending.by_exit(1, explain_user_error(error, home, "The script"), traceback.format_exc())
        raise
    look_back()
    ending.by_exit(0)


def _run_to_its_end(run: Callable[[str, list[str]], None], target: str, arguments: list[str]) -> None:
    """Run the script, and wait for its remaining threads; after an error, don't wait."""
    try:
        run(target, arguments)
    except SystemExit as error:
        if not error.code:
            _wait_for_threads()
        raise
    _wait_for_threads()


def _home(target: str) -> Path:
    """Return the folder below which code is the user's."""
    return Path(target).resolve().parent if Path(target).is_file() else Path.cwd()


def _wait_for_threads() -> None:
    """Wait for the script's threads, as the interpreter does at its end; threads of pools end with it."""
    pooled = {*_threads_of("thread", "_threads_queues"), *_threads_of("process", "_threads_wakeups")}
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in pooled:
            thread.join()


def _threads_of(kind: str, table: str) -> list[Any]:
    """Return the threads of all pools of a kind, which the interpreter ends before it waits for others."""
    return list(getattr(sys.modules.get(f"concurrent.futures.{kind}"), table, ()))


def _record_hard_exits(ending: ScriptEnd) -> None:
    """End the recording before ``os._exit`` ends this process."""
    leave: Callable[[int], NoReturn] = os._exit

    def leave_in_order(status: int) -> NoReturn:
        frame = sys._getframe(1)
        place = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        with contextlib.suppress(Exception):
            ending.by_exit(status, f"The script called os._exit({status}) at {place}.")
        leave(status)

    os._exit = leave_in_order


if __name__ == "__main__":
    main()
