"""What an event's name says about it: the only place that knows how TensorFlow, XLA and CUPTI name things.

Every rule was set by looking at real captures (TF 1.x to 2.21, JAX, GPU, TPU). Names are tested once per plane, never
per event. Where the names come from:

* tracing: ``tf.function-graph_building`` (tensorflow/python/eager/polymorphic_function/tracing_compilation.py);
* compiling: ``XlaCompile*``, ``CpuCompiler::RunBackend``, ``HLO passes …``, ``JitCompiler::Compile``, ``backend_compile``
  (captures of ``jit_compile=True`` and of JAX); XLA's autotuner has ``Autotun`` in its pass names;
* cuDNN autotuning is a ``ScopedAnnotation``, hence no host event: it checks its scratch memory with ``redzone_checker``
  kernels, and those are on the stream (tensorflow/core/kernels/conv_ops_gpu.cc);
* checkpoints: ``SaveV2``, ``MergeV2Checkpoints``, ``RestoreV2``, on the thread that saves (also an asynchronous one);
* collectives: ``CollectiveReduceV2`` and friends on ``collective_ops`` threads, which last until all workers came;
  NCCL and RCCL kernels on the stream, ``all-reduce`` instructions on TPUs;
* copies to the device: ``Memcpy*`` on streams; ``H2D Dispatch`` on a thread of JAX's client, which lays an array out for the copy
  (a capture of JAX 0.11 on an H200: 11 ms for 67 MB that the stream then copies in 1.3 ms);
* an iterator is made: ``EagerLocalExecute: MakeIterator``, which optimizes and builds its pipeline;
* the end of an iterator: ``TFE_DeleteTensorHandle`` of its handle, on the thread that gives it up; it waits for tf.data's threads,
  of which the one that autotunes may miss its call and sleep on until its next turn (``Model::OptimizeLoop`` in
  tensorflow/core/framework/model.cc, TensorFlow 2.21: the callback runs before the flag that it asks for is set);
* what the iterator hands over in pieces: ``DeserializeSparse`` (tensorflow/python/data/util/structure.py).
"""

import re
from enum import IntFlag
from functools import lru_cache

from pipeline_lab.trace.schema import Plane

_OP = re.compile(r"[\w.>/][^:]*:(_?[A-Z]\w*)")
_EAGER_OP = re.compile(r"EagerLocalExecute: (_?[A-Z]\w*)")
_EXECUTOR = re.compile(r"ExecutorState::Process|(?:Cpu\w*Executable|ThunkExecutor)::Execute")
_COMPILE = re.compile(
    r"XlaCompile|Compiler::|JitCompiler|backend_compile|PjRt\w*Compile|::Compile\b"
    r"|HLO passes|[Aa]utotun|Grappler|MetaOptimizer"
)
_HOST_TO_DEVICE = re.compile(
    r"Memcpy(?:H2D|HtoD)|MemcpyHtoD|TransferToDevice|TransferLiteralToDevice|InfeedEnqueue|H2D Dispatch"
)
_COLLECTIVE = re.compile(r"nccl|rccl|all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|collective-permute", re.I)
_DEVICE_COPY = re.compile(r"^(?:Memcpy|Memset|outfeed)|^copy(?:-start|-done)?\b|_rocclr_(?:copy|fill)Buffer", re.I)
_INFEED = re.compile(r"^infeed\b", re.I)

_WAITS = frozenset({"IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute", "IteratorGetNextSync"})
_OUTER_WAITS = frozenset(
    {
        "EagerLocalExecute: IteratorGetNext",
        "EagerLocalExecute: IteratorGetNextAsOptional",
        "EagerLocalExecute: IteratorGetNextSync",
        "MultiDeviceIteratorGetNextFromShardOp::DoCompute",
    }
)
_NO_COMPUTE = re.compile(
    r"Iterator|Optional|_Send$|_Recv$|_HostSend$|_HostRecv$|_Arg$|_Retval$"  # input, transfers, plumbing
    r"|PartitionedCall|While$|^_?If$|^Case$|RemoteCall|XlaRun|XlaLaunch"  # wrap or launch what others do
)
_CHECKPOINT_OPS = frozenset({"SaveV2", "RestoreV2", "SaveSlices", "MergeV2Checkpoints", "ShardedFilename"})
_COLLECTIVE_OP = re.compile(r"_?(?:Collective[A-Z]|Nccl|Horovod)")
_INPUT_OPS = frozenset({"DeserializeSparse", "DeserializeManySparse", "RaggedTensorFromVariant"})
_AUTOTUNING_KERNEL = re.compile(r"redzone", re.I)
_TF_DATA_THREAD = re.compile(r"tf_data|data_(?:prefetch|parallel)")
_RUNTIME_THREAD = re.compile(r"tf_|Eigen|pool|StreamExecutor|py_xla_|pjrt_|XLA|cupti", re.I)

REMEMBERED_NAMES = 1 << 13
"""Event names of which is kept what they say: the next window of a run has the same ones."""
FUNCTION_CALL = "EagerLocalExecute: __inference_"
JAX_CALL = "PjitFunction"
MAKING = "EagerLocalExecute: MakeIterator"
GIVING_UP = "TFE_DeleteTensorHandle"
"""Python releases a tensor, which takes microseconds, or an iterator."""


class Kind(IntFlag):
    """What a host event is; one event can be several things."""

    WAIT = 1
    """Blocks until the input pipeline hands over an element."""
    OUTER_WAIT = 2
    """Wraps a wait; stands in for it in captures without the inner event."""
    OP = 4
    """One TensorFlow op that ran inside an executor, ``name:Type``."""
    EAGER_OP = 8
    """One op called from Python, launch and work together."""
    EXECUTOR = 16
    """A thread runs ops of a function or a compiled program."""
    COMPILE = 32
    """Tracing, compiling, autotuning."""
    CHECKPOINT = 64
    """Ops that write or read a checkpoint."""
    HOST_TO_DEVICE = 128
    """Copies input to the device."""
    MARK = 256
    """Says that something happened and has no length, or was written by the Python tracer: not the runtime at work."""
    INPUT_FUNCTION = 512
    """tf.data calls a function of the user's; its ``id`` is that of the executor events that run it."""
    COLLECTIVE = 1024
    """An op that exchanges values with other workers, the wait for them included."""
    INPUT_OP = 2048
    """An op that puts together what the iterator handed over; belongs to the input, not to the training."""
    TRACING = 4096
    """Python runs a ``tf.function``'s body to build a new graph of it."""
    FUNCTION_CALL = 8192
    """Python calls a concrete function."""
    FUNCTION_RUN = 16384
    """That function is instantiated and starts to run."""
    PYTHON_CALL = 32768
    """Python calls one op, from its arguments to its results."""
    LOOP_WAIT = 65536
    """A step of a loop inside of a function asks for its batch."""


_EXACT = {
    "tf.function-graph_building": Kind.COMPILE | Kind.TRACING,
    "EagerKernelExecute": Kind.FUNCTION_RUN,
    "TFE_Py_FastPathExecute_C": Kind.PYTHON_CALL,
}


ITERATOR = "Iterator::"
POOL_TELLS = "ThreadpoolListener::"
"""Before what TensorFlow's thread pools record, also for seconds after the profiler was stopped, while it collects what there is."""
CAPTURED_FUNCTION = "InstantiatedCapturedFunction::"
_LOOP = re.compile(r"(ReduceIterator::Root::(?:\w+::)*?Scan)(?:::|$)")
"""Before an iterator of a dataset that a loop inside of ``tf.function`` goes through: its steps are the scan's function."""


def iterator_way(name: str) -> str | None:
    """Return the way of a pipeline's iterator, ``Root::Prefetch::BatchV2``, without the root in a loop's; None for another event."""
    if name.startswith(ITERATOR):
        return name.removeprefix(ITERATOR)
    found = _LOOP.match(name)
    return None if found is None else name[found.end() :] or None


def is_step_in_loop(name: str) -> bool:
    """Say whether an event is a step of a loop inside of ``tf.function``, the request for its batch included."""
    found = _LOOP.match(name)
    return found is not None and found[1] == name


def is_wait_in_loop(name: str) -> bool:
    """Say whether an event is such a step's request for its batch."""
    return name.startswith("Reduce") and "::" not in (iterator_way(name) or "::")


@lru_cache(REMEMBERED_NAMES)
def host_kind(name: str) -> Kind:
    """Classify a host event by its name."""
    if name.startswith((ITERATOR, POOL_TELLS, "MemoryAllocation", "MemoryDeallocation", "$")):
        return Kind.MARK if name[0] != "I" else Kind(0)
    if name.startswith(CAPTURED_FUNCTION):
        return Kind.INPUT_FUNCTION
    if is_wait_in_loop(name):
        return Kind.LOOP_WAIT
    kind = Kind(0)
    if name in _WAITS or name.endswith(":IteratorGetNextSync"):
        kind |= Kind.WAIT
    if name in _OUTER_WAITS or name.endswith(":MultiDeviceIteratorGetNextFromShard"):
        kind |= Kind.OUTER_WAIT
    return kind | _work_kind(name)


def _work_kind(name: str) -> Kind:
    op = operation(name)
    if op is not None:
        return _op_kind(op, is_eager=name.startswith("EagerLocalExecute"))
    if name in _EXACT:
        return _EXACT[name]
    if name.startswith(FUNCTION_CALL):
        return Kind.FUNCTION_CALL
    for pattern, kind in ((_EXECUTOR, Kind.EXECUTOR), (_HOST_TO_DEVICE, Kind.HOST_TO_DEVICE), (_COMPILE, Kind.COMPILE)):
        if pattern.search(name):
            return kind
    return Kind(0)


def _op_kind(op: str, *, is_eager: bool) -> Kind:
    if op in _CHECKPOINT_OPS:
        return Kind.CHECKPOINT
    if op.endswith("XlaCompile"):
        return Kind.COMPILE
    if _COLLECTIVE_OP.match(op):
        return Kind.COLLECTIVE
    if op in _INPUT_OPS:
        return Kind.INPUT_OP
    if _NO_COMPUTE.search(op):
        return Kind(0)
    return Kind.EAGER_OP if is_eager else Kind.OP


def operation(name: str) -> str | None:
    """Return the op's type if the event is one op (``scope/name:Type``, ``EagerLocalExecute: Type``), else None."""
    match = (_EAGER_OP if name.startswith("EagerLocalExecute: ") else _OP).fullmatch(name)
    return match[1] if match else None


class DeviceKind(IntFlag):
    """What a device does during an event of its work lines."""

    COMPUTE = 1
    COPY = 2
    """Device to host, device to device, memset."""
    COLLECTIVE = 4
    HOST_TO_DEVICE = 8
    """Brings input; not counted as work, so that an idle gap can be blamed on it."""
    AUTOTUNING = 16
    """Checks a convolution algorithm that cuDNN or XLA tries out."""


def device_kind(name: str) -> DeviceKind:
    """Classify an event of a stream (GPU) or of ``XLA Ops`` (TPU), where the whole instruction is the name."""
    name = name.split(" = ", 1)[0].lstrip("%")
    if _HOST_TO_DEVICE.search(name) or _INFEED.search(name):
        return DeviceKind.HOST_TO_DEVICE
    if _COLLECTIVE.search(name):
        return DeviceKind.COLLECTIVE
    if _AUTOTUNING_KERNEL.search(name):
        return DeviceKind.COMPUTE | DeviceKind.AUTOTUNING
    return DeviceKind.COPY if _DEVICE_COPY.search(name) else DeviceKind.COMPUTE


def is_tf_data_thread(line_name: str) -> bool:
    return _TF_DATA_THREAD.match(line_name) is not None


def is_tf_data_pool(line_name: str) -> bool:
    """Say whether the thread only runs tf.data's functions; captures without one ran them on the shared pool."""
    return line_name.startswith("tf_data_private_threadpool")


def is_runtime_thread(line_name: str) -> bool:
    """Say whether the thread belongs to a pool of the runtime, so that no Python runs on it."""
    return _RUNTIME_THREAD.match(line_name) is not None


def is_work_line(plane: Plane, line_name: str) -> bool:
    """Say whether a device line holds work itself; the other lines repeat it under other names."""
    return line_name.startswith(("Stream", "stream")) or (":TPU:" in plane.name and line_name == "XLA Ops")
