"""Times the steps of loops inside of ``tf.function``, such as ``for batch in dataset:``, which Python never sees.

AutoGraph makes such a loop an op that goes through the dataset by itself. Where it is traced, clocks are put into the graph:
one before the loop, one where a step begins, and one where all is done that the step does. None of the script's own
operations waits for a step's clocks. What they show goes into a staging area of TensorFlow's, which a side thread empties (:func:`tell_steps`):
Python's lock is not needed while the loop runs.
"""

import contextlib
import functools
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.data.ops.dataset_ops import DatasetV2
from tensorflow.python.framework.auto_control_deps import op_is_stateful
from tensorflow.python.framework.auto_control_deps_utils import RESOURCE_READ_OPS
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
from tensorflow.python.saved_model import save
from tensorflow.python.saved_model.save_context import in_save_context
from tensorflow.python.util.tf_stack import CurrentModuleFilter

from pipeline_lab.capture.script.gradient_hooks import tracing
from pipeline_lab.capture.script.job_threads import (
    MARK,
    here,
    listeners,
    now_ns,
    place_of_loop,
    replace_method,
    tell,
    trained,
)
from pipeline_lab.capture.script.saved_models import SCOPE, keep_clocks_out
from pipeline_lab.capture.script.step_hooks import examples_of
from pipeline_lab.capture.script.step_notes import Ended, Pass, Took
from pipeline_lab.data_classes import dataclass
from pipeline_lab.units import NS_PER_S
from pipeline_lab.worker.recipe.wrapping import stack

BEGUN, STEP, ENDED = range(3)
COLUMNS = 5
"""Of a row: the loop's number, what happened, two times in s since the epoch, examples of the batch or -1."""
CPU = "/device:CPU:0"
AREA = "steps of pipeline_lab"
_emptying, _dropping = threading.Lock(), threading.Lock()
DROPPING = "pipeline-lab drops"
DROP_S = 5.0
"""Seconds between drops of rows that nobody reads any more."""


@dataclass(eq=False)
class _Loop:
    """A loop that was traced.

    Attributes:
        of: What is known of each of its passes.
        current: The pass that runs; None before the first and after each.
        asked_ns: When it asked for its next batch, by ``perf_counter``.
    """

    of: Pass
    current: Pass | None = None
    asked_ns: int = 0

    def read(self, kind: int, first_ns: int, second_ns: int, examples: int) -> None:
        """Turn a row into a note."""
        if kind == BEGUN or self.current is None:
            self.current, self.asked_ns = self._begin(), first_ns
        if kind == STEP:
            asked_ns = min(self.asked_ns, first_ns)
            tell(Took(self.current, asked_ns, first_ns, self.of.examples if examples < 0 else examples))
            self.asked_ns = second_ns
        elif kind == ENDED:
            tell(Ended(self.current, self.asked_ns, first_ns))
            self.current = None

    def _begin(self) -> Pass:
        of = self.of
        trains = of.has_gradients or of.stream in trained
        return Pass(of.stream, examples=of.examples, has_gradients=trains, knows_gradients=True, dataset=of.dataset)


_loops: dict[int, _Loop] = {}
_numbers = itertools.count()


def hook_graph_loops() -> None:
    """Time the loops of functions that are traced from now on; a second call only forgets what nobody read."""
    registry = control_flow.for_loop_registry._registry
    original = registry.get(DatasetV2)
    if original is not None and not hasattr(original, MARK):
        registry[DatasetV2] = _timing(original)
        setattr(registry[DatasetV2], MARK, True)
    replace_method(control_flow, "_tf_distributed_iterable_for_stmt", _timing)
    replace_method(save, "_build_meta_graph", keep_clocks_out)
    _clear()


def tell_steps() -> bool:
    """Note the steps that loops have taken since the last call; say whether there were any."""
    rows: Sequence[Sequence[float]] = ()
    with contextlib.suppress(Exception):  # must not end the timing of other loops
        rows = _take() if _loops else ()
    shift_ns = time.time_ns() - now_ns()
    for number, kind, first_s, second_s, examples in rows:
        loop = _loops.get(int(number))
        if loop is not None:
            first_ns, second_ns = (int(time_s * NS_PER_S) - shift_ns for time_s in (first_s, second_s))
            loop.read(int(kind), first_ns, second_ns, int(examples))
    return bool(rows)


def drop_steps() -> None:
    """Drop what loops say from now on, as long as nobody listens."""
    if _loops and not listeners and _dropping.acquire(blocking=False):  # else that of an earlier recording still does
        threading.Thread(target=_drop, name=DROPPING, daemon=True).start()


def _drop() -> None:
    try:
        time.sleep(DROP_S)
        while not listeners:
            _clear()
            time.sleep(DROP_S)
    finally:
        _dropping.release()


def _clear() -> None:
    if _loops:
        with _emptying, contextlib.suppress(Exception), tf.device(CPU):
            tf.raw_ops.StageClear(dtypes=[tf.float64], shared_name=AREA)


def _take() -> list[list[float]]:
    with _emptying, tf.device(CPU):
        count = tf.raw_ops.StageSize(dtypes=[tf.float64], shared_name=AREA)
        return _unstage()(count).numpy().tolist() if int(count) else []


@functools.cache
def _unstage() -> Any:
    def unstage(count: Any) -> Any:
        return tf.map_fn(
            lambda _: tf.ensure_shape(tf.raw_ops.Unstage(dtypes=[tf.float64], shared_name=AREA)[0], [COLUMNS]),
            tf.range(count),
            fn_output_signature=tf.TensorSpec([COLUMNS], tf.float64),
            parallel_iterations=1,
        )

    return tf.function(unstage, input_signature=[tf.TensorSpec([], tf.int32)], autograph=False)


# what is put into graphs


def _timing(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def loop(
        iterated: Any, extra_test: Any, body: Callable[..., None], get_state: Callable[[], Any], *rest: Any
    ) -> None:
        with CurrentModuleFilter():  # errors quote the lines that made an op: none of them is ours
            clocks = _Clocks(iterated, get_state) if _can_be_timed() else None
            if clocks is None:
                original(iterated, extra_test, body, get_state, *rest)
                return
            with tracing(clocks.loop.of), tf.control_dependencies(clocks.begin()):
                original(iterated, extra_test, functools.partial(clocks.run, body), get_state, *rest)
            clocks.end()

    return loop


def _can_be_timed() -> bool:
    """Say whether a loop of the script's own training is being traced, on this machine."""
    if not listeners or here.role is not None or stack.notes or in_save_context():
        return False
    graph = tf.compat.v1.get_default_graph()
    is_of_a_replica = tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    if is_of_a_replica or not tf.inside_function() or GraphOrParentsInXlaContext(graph):
        return False
    return bool(tf.compat.v1.executing_eagerly_outside_functions())


class _Clocks:
    """The clocks of one loop; each failure leaves the graph as the script has it.

    Args:
        iterated: What it goes through.
        get_state: Returns the values that a step hands to the next one.
    """

    def __init__(self, iterated: Any, get_state: Callable[[], Any]) -> None:
        self._get_state, self._first = get_state, _count_operations()
        self.loop = _Loop(Pass(place_of_loop(), examples=examples_of(iterated)))
        with contextlib.suppress(TypeError):
            self.loop.of.dataset = weakref.ref(iterated)
        self._number = next(_numbers)
        _loops[self._number] = self.loop

    def begin(self) -> list[Any]:
        """Read the clock before the loop; return what the loop waits for."""
        with contextlib.suppress(Exception):
            return [self._lay(BEGUN)]
        return []

    def run(self, body: Callable[[Any], None], batch: Any) -> None:
        """Let a step be traced between two clocks."""
        first, arrived, examples = _count_operations(), None, -1
        with contextlib.suppress(Exception):
            examples = -1 if self.loop.of.examples else _examples(batch)
            arrived = _read_clock()
        body(batch)
        if arrived is not None:
            with contextlib.suppress(Exception):
                self._lay(STEP, arrived, examples, self._effects(first))

    def end(self) -> None:
        """Read the clock after the loop."""
        with contextlib.suppress(Exception):
            self._lay(ENDED, after=self._effects(self._first))

    def _lay(self, kind: int, first: Any = None, examples: Any = -1, after: Sequence[Any] = ()) -> Any:
        with tf.name_scope(SCOPE), tf.device(CPU), tf.control_dependencies(after):
            now = _read_clock()
            numbers = [tf.constant(float(each), tf.float64) for each in (self._number, kind)]
            row = tf.stack([*numbers, now if first is None else first, now, tf.cast(examples, tf.float64)])
            return tf.raw_ops.Stage(values=[row], shared_name=AREA)

    def _effects(self, first: int) -> list[Any]:
        """Return the operations since the first that do something, or make a value for the next step."""
        graph = tf.compat.v1.get_default_graph()
        state = tf.nest.flatten(self._get_state(), expand_composites=True)
        results = {
            id(each.op) for each in state if isinstance(each, tf.Tensor) and getattr(each, "graph", None) is graph
        }
        return [each for each in graph.get_operations()[first:] if id(each) in results or _is_effect(each)]


def _is_effect(operation: Any) -> bool:
    is_read = operation.type in RESOURCE_READ_OPS and not any(each.consumers() for each in operation.outputs)
    return operation.type == "ReduceDataset" or (op_is_stateful(operation) and not is_read)


def _count_operations() -> int:
    return len(tf.compat.v1.get_default_graph().get_operations())


def _read_clock() -> Any:
    with tf.name_scope(SCOPE), tf.device(CPU):
        return tf.timestamp()


def _examples(batch: Any) -> Any:
    """Return the examples of a batch by its first tensor, of all replicas; shapes are on the host wherever the tensor is itself."""
    first = tf.nest.flatten(batch)[0]
    parts = first.values if isinstance(first, tf.distribute.DistributedValues) else [first]
    if not all(isinstance(part, tf.Tensor) and part.shape.rank for part in parts):
        return -1
    with tf.name_scope(SCOPE):
        shapes = [tf.shape(part) for part in parts]
    with tf.name_scope(SCOPE), tf.device(CPU):
        return tf.add_n([shape[0] for shape in shapes])
