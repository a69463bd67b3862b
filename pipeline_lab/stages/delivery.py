"""Stages that hand elements over: from other processes, ahead of the step, to the device."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pipeline_lab.fields import Autotune
from pipeline_lab.stages.code import INDENT, Code, assign_call, number_or_autotune, quote, wanted
from pipeline_lab.stages.stage import OneForOne
from pipeline_lab.stages.stage_values import Host, Neighbors, Position, Reading, Remark, Running, Weight, Writing

HOST_AND_PORT = r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}"
TUNED_PREFETCH = 2
"""Batches that AUTOTUNE lets a last prefetch hold at least; more change no mean."""

_START = '''\
def data_service(workers: int) -> str:
    """Start tf.data service in this process, once, and return its address."""
    service = tf.data.experimental.service
    if not SERVERS:
        dispatcher = service.DispatchServer()
        address = dispatcher.target.partition("://")[2]
        config = service.WorkerConfig(dispatcher_address=address)
        SERVERS.extend([dispatcher, *(service.WorkerServer(config) for _ in range(workers))])
    return SERVERS[0].target'''


def _without_protocol(value: object) -> object:
    return value.strip().removeprefix("grpc://") or None if isinstance(value, str) else value


def _host_and_port(value: str) -> str:
    if re.fullmatch(HOST_AND_PORT, value) is None:
        raise ValueError("an address is written host:port, such as 10.0.0.7:5050, or left empty to start one")
    return value


Address = Annotated[str, AfterValidator(_host_and_port)]


class ServiceStage(OneForOne):
    """Let workers of tf.data service do all stages before this one, on this machine or on others."""

    stage: Literal["service"] = "service"
    address: Annotated[Address | None, BeforeValidator(_without_protocol)] = None
    """``host:port`` of a dispatcher that runs already; empty starts one with workers in the job, which only shows the cost."""
    workers: int = Field(2, ge=1, le=64)
    """Workers to start where no address is given."""
    sharding: Literal["dynamic", "file", "off"] = "dynamic"
    """``dynamic``: each file goes to the next free worker; ``file``: divided beforehand; ``off``: every worker gives all data."""
    compression: bool = True
    """Compress elements on their way from the workers; off saves processor time where the network is fast."""

    methods: ClassVar[frozenset[str]] = frozenset()
    iterators: ClassVar[frozenset[str]] = frozenset()
    once: ClassVar[bool] = True
    needs_measuring: ClassVar[bool] = True
    is_elsewhere: ClassVar[bool] = True

    def code(self) -> Code:
        if self.address is not None:
            return Code()
        return Code(constants=("SERVERS = []  # they live as long as the process",), functions=(_START,))

    def lines(self, writing: Writing) -> Iterable[str]:
        address = f"data_service({self.workers})" if self.address is None else quote(f"grpc://{self.address}")
        plain = wanted({"compression=None": not self.compression})
        arguments = [f"service.ShardingPolicy.{self.sharding.upper()}", address, *plain]
        return [
            f"{INDENT}service = tf.data.experimental.service",
            assign_call("dataset.apply", [f"service.distribute({', '.join(arguments)})"]),
        ]

    def order(self, reading: Reading) -> None:
        return None  # workers share the files as they come to them

    def check(self, standing: Neighbors) -> None:
        if self.sharding != "off" and not all(stage.is_dividable for stage in standing.before):
            raise ValueError(
                f"a service cannot divide files that are sampled; set sharding = off instead of {self.sharding}, or read "
                "in another mode"
            )

    def remarks(self, place: Position) -> Iterator[Remark]:
        files = len(place.file_sizes or ())
        if self.sharding == "off":
            copies = "each worker" if self.address is not None else f"each of the {self.workers} workers"
            yield place.remark(
                "repeated-by-service",
                Weight.ADVICE,
                f"With sharding off {copies} hands out all the data in an order of its own, so an epoch holds every example "
                "once per worker; choose dynamic to divide the files.",
            )
        elif self.address is None and 0 < files < self.workers:
            yield place.remark(
                "idle-service-workers",
                Weight.PROBLEM,
                f"Files are divided among {self.workers} workers, and there are only {files}: the others have nothing to "
                "do; write more files, or start fewer workers.",
            )
        if self.sharding == "dynamic":
            for index, stage in enumerate(place.before):
                if stage.is_endless:
                    yield Remark(
                        "endless-in-service",
                        Weight.FACT,
                        index,
                        "The endless repeat runs in the service, whose dynamic sharding mixes epochs: a worker begins the "
                        "next one while others are still at the last; put repeat after service to keep them apart.",
                    )
        if self.address is None:
            yield place.remark(
                "service-on-loopback",
                Weight.FACT,
                "The service runs in the job itself, so nothing gets faster: every element is copied and sent once more (0.6 "
                "to 1.7 ms of processor time per record were measured). It shows the cost; give the address of a dispatcher on other "
                "machines to gain from their cores.",
            )
        else:
            yield place.remark(
                "service-reads-there",
                Weight.FACT,
                "The workers read the files themselves, under the same paths: they need the data on a disk that all share.",
            )


class PrefetchingStage(OneForOne):
    """A stage that prepares later elements while the present one is used."""

    buffer_size: int | Autotune

    iterators: ClassVar[frozenset[str]] = frozenset({"Prefetch"})
    prefetches: ClassVar[bool] = True

    def running(self, host: Host) -> Running:
        ahead = TUNED_PREFETCH if isinstance(self.buffer_size, str) else self.buffer_size
        return Running(works_ahead=True, held_examples=float(ahead * host.size))

    def holds(self, most: float) -> tuple[str, str, int] | None:
        if isinstance(self.buffer_size, str):
            return None
        return "prefetch-depth", f"{self.stage}({self.buffer_size})", self.buffer_size


class PrefetchStage(PrefetchingStage):
    """Prepare later elements while the current one is used."""

    stage: Literal["prefetch"] = "prefetch"
    buffer_size: Annotated[int, Field(ge=1, le=100_000)] | Autotune = "autotune"
    """Elements at this place of the pipeline: whole batches when it stands last."""

    matters: ClassVar = ("buffer_size",)
    methods: ClassVar[frozenset[str]] = frozenset({"prefetch"})
    at_end: ClassVar[int] = 1

    def lines(self, writing: Writing) -> Iterable[str]:
        return [assign_call("dataset.prefetch", [number_or_autotune(self.buffer_size)])]


class PrefetchToDeviceStage(PrefetchingStage):
    """Copy later batches to the GPU while the current one is used; without a GPU it prefetches into host memory."""

    stage: Literal["prefetch_to_device"] = "prefetch_to_device"
    buffer_size: int = Field(2, ge=1, le=1000)
    """Batches that wait on the GPU."""

    methods: ClassVar[frozenset[str]] = frozenset()
    once: ClassVar[bool] = True
    at_end: ClassVar[int] = 2

    def lines(self, writing: Writing) -> Iterable[str]:
        return []  # written after the pipeline's options

    def closing_lines(self) -> Iterable[str]:
        to_device = f'tf.data.experimental.prefetch_to_device("/GPU:0", {self.buffer_size})'
        return [
            f'{INDENT}if not tf.config.get_visible_devices("GPU"):',
            f"{INDENT * 2}return dataset.prefetch({self.buffer_size})  # no GPU to copy to",
            f"{INDENT}return dataset.apply({to_device})",
        ]

    def check(self, standing: Neighbors) -> None:
        if standing.after:
            raise ValueError("nothing may come after prefetch_to_device; put it last")
