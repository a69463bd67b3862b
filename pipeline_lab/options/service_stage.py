"""The stage that hands the pipeline before it to other processes."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pipeline_lab.fields import Options

HOST_AND_PORT = r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}"


def _without_protocol(value: object) -> object:
    return value.strip().removeprefix("grpc://") or None if isinstance(value, str) else value


def _host_and_port(value: str) -> str:
    if re.fullmatch(HOST_AND_PORT, value) is None:
        raise ValueError("an address is written host:port, such as 10.0.0.7:5050, or left empty to start one")
    return value


Address = Annotated[str, AfterValidator(_host_and_port)]


class ServiceStage(Options):
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
