"""The functions of the generator workload: Python makes examples, and ``from_generator`` hands them to tf.data.

Several generators stand in the place of files, so that reading modes visit them in the same ways. Each example's id is
the generator's number × 2⁴⁰ + its own.
"""

from pipeline_lab.options.pipeline import ReadStage
from pipeline_lab.options.workload import GeneratorWorkload
from pipeline_lab.pipeline.code import Code, assign_call, wanted
from pipeline_lab.pipeline.read_code import PerFile, read_lines
from pipeline_lab.pipeline.workload_source import WorkloadSource

_MAKE = '''
def make_example(number: int) -> np.ndarray:
    """Take EXAMPLE_SECONDS to make one example in Python; no other Python thread runs meanwhile."""
    due = time.perf_counter() + EXAMPLE_SECONDS
    while time.perf_counter() < due:
        pass
    return np.full(ELEMENT_BYTES, number % 256, np.uint8)
'''

_MAKE_QUICKLY = '''
def make_example(number: int) -> np.ndarray:
    """Make one example."""
    return np.full(ELEMENT_BYTES, number % 256, np.uint8)
'''

_ONE = '''
def generate(generator: int = 0) -> Iterator[dict[str, np.ndarray | int]]:
    """Yield one example after the other."""
    for number in range(EXAMPLES[generator]):
        yield {"payload": make_example(number), "id": generator * 2**40 + number}
'''

_BATCHES = '''
def generate(generator: int = 0) -> Iterator[dict[str, np.ndarray]]:
    """Yield EXAMPLES_AT_ONCE examples after the other; the last ones may be fewer."""
    for first in range(0, EXAMPLES[generator], EXAMPLES_AT_ONCE):
        numbers = range(first, min(first + EXAMPLES_AT_ONCE, EXAMPLES[generator]))
        payloads = np.stack([make_example(number) for number in numbers])
        yield {"payload": payloads, "id": generator * 2**40 + np.array(numbers, np.int64)}
'''

_SIGNATURE = """
SIGNATURE = {
    "payload": tf.TensorSpec([ELEMENT_BYTES], tf.uint8),
    "id": tf.TensorSpec([], tf.int64),
}
"""

_BATCH_SIGNATURE = """
SIGNATURE = {
    "payload": tf.TensorSpec([None, ELEMENT_BYTES], tf.uint8),
    "id": tf.TensorSpec([None], tf.int64),
}
"""

_OPEN = '''
def open_generator(generator: tf.Tensor) -> tf.data.Dataset:
    """Start one of the generators."""
    return tf.data.Dataset.from_generator(generate, args=(generator,), output_signature=SIGNATURE)
'''


def generator_source(workload: GeneratorWorkload, read: ReadStage) -> WorkloadSource:
    """Write the generator, and what opens one of several."""
    is_several = len(workload.examples_per_generator) > 1
    single = assign_call("tf.data.Dataset.from_generator", ["generate", "output_signature=SIGNATURE"])
    return WorkloadSource(
        about=('Elements are batches of {"payload": uint8, "id": int64}, made by Python; no file is read.',),
        code=_code(workload, is_several=is_several),
        read=tuple(read_lines(read, PerFile.GENERATED)) if is_several else (single,),
        over="over generators, not files",
    )


def _code(workload: GeneratorWorkload, *, is_several: bool) -> Code:
    takes_time, at_once = workload.example_ms > 0, workload.examples_at_once > 1
    sizes = ", ".join(str(size) for size in workload.examples_per_generator)
    constants = {
        f"EXAMPLES = [{sizes}]": True,
        f"EXAMPLES_AT_ONCE = {workload.examples_at_once}": at_once,
        f"EXAMPLE_SECONDS = {workload.example_ms / 1e3!r}": takes_time,
        f"ELEMENT_BYTES = {workload.element_bytes}": True,
        (_BATCH_SIGNATURE if at_once else _SIGNATURE).strip(): True,
    }
    functions = {
        _MAKE if takes_time else _MAKE_QUICKLY: True,
        _BATCHES if at_once else _ONE: True,
        _OPEN: is_several,
    }
    imports = {"import time": takes_time, "from collections.abc import Iterator": True, "import numpy as np": True}
    return Code(wanted(imports), wanted(constants), tuple(text.strip() for text in wanted(functions)))
