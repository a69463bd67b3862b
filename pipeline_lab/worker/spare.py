"""A worker that loads TensorFlow before its job is known, without getting in anybody's way."""

import importlib
import threading
import traceback

from pipeline_lab.worker.priority import lower_own_priority

READY = "ready"


def load_quietly() -> bool:
    """Import all that a job needs on a thread of low priority; say whether that worked.

    The priority belongs to the thread alone: the main thread, which runs the job later, keeps its own. No device is
    touched, so that a waiting worker holds none of a GPU's memory.
    """
    errors: list[BaseException] = []

    def load() -> None:
        try:
            lower_own_priority()
            importlib.import_module("pipeline_lab.worker.session")
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=load, name="import")
    thread.start()
    thread.join()
    for error in errors:
        traceback.print_exception(error)
    return not errors
