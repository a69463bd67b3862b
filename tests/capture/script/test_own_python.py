"""Where a script's own Python is seen."""

import threading
import time
from collections.abc import Callable
from typing import Any

from pipeline_lab.capture.script.own_python import OwnPython

IN_KERAS = "def wait(thread, call=None):\n    while thread.is_alive():\n        call() if call else None\n"


def seen_while(run: Callable[[threading.Thread], None]) -> Any:
    """Look twenty times while the main thread runs something; return what was seen most."""
    places = OwnPython()

    def look() -> None:
        for _ in range(20):
            time.sleep(0.002)
            places.look()

    thread = threading.Thread(target=look)
    thread.start()
    run(thread)
    thread.join()
    return places.most


def in_keras() -> Callable[..., None]:
    made: dict[str, Any] = {}
    exec(compile(IN_KERAS, "/usr/lib/site-packages/keras/src/trainer.py", "exec"), made)
    return made["wait"]


class Monitor:
    def on_train_batch_end(self) -> None:
        time.sleep(0.02)


def busy(thread: threading.Thread) -> None:
    while thread.is_alive():
        sorted(range(1000))


def test_the_function_that_runs_is_named_by_its_line() -> None:
    found = seen_while(busy)
    first = busy.__code__.co_firstlineno
    assert (found.function, found.file) == ("busy", __file__)
    assert found.line in (first + 1, first + 2)
    assert 5 <= found.seen <= found.of <= 20


def test_a_callback_that_keras_calls_is_named_and_what_keras_does_itself_counts_beside_it() -> None:
    wait = in_keras()
    called = seen_while(lambda thread: wait(thread, Monitor().on_train_batch_end))
    assert called.function == "Monitor.on_train_batch_end"
    assert called.line == Monitor.on_train_batch_end.__code__.co_firstlineno + 1
    alone = seen_while(wait)
    assert alone is None or 2 * alone.seen < alone.of, "but for a moment before and after it"


def test_without_a_look_there_is_nothing_to_name() -> None:
    assert OwnPython().most is None
