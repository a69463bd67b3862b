"""Start the capture of a running job: a separate process records windows from it into a run. No TensorFlow."""

import ipaddress
import re
from dataclasses import dataclass

from pipeline_lab.errors import OptionsError
from pipeline_lab.hooks import Program, module_of
from pipeline_lab.runs import recordings
from pipeline_lab.runs.launch.runtime import module_command, start_process
from pipeline_lab.runs.store import RunFolder, RunStore

TAG = "captured"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")


@dataclass(frozen=True)
class RemoteCapture:
    """Windows to record from a running job.

    Attributes:
        address: ``HOST:PORT`` of TensorFlow's profiler server in the job.
        length_s: Of one window.
        every_s: From the start of one window to the start of the next.
        windows: How many.

    Raises:
        OptionsError: The address is not valid, or the windows do not fit.
    """

    address: str
    length_s: float = 2.0
    every_s: float = 30.0
    windows: int = 1

    def __post_init__(self) -> None:
        host, _, port = self.address.rpartition(":")
        is_host = _NAME.fullmatch(host) or (host.startswith("[") and host.endswith("]") and _is_ip(host[1:-1]))
        if not is_host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise OptionsError(f"{self.address[:100]!r} is not an address; write HOST:PORT, such as localhost:6009.")
        if not 0.05 <= self.length_s <= 600:
            raise OptionsError(f"A window of {self.length_s:g} s is out of range; choose 0.05 to 600 s.")
        if not 1 <= self.windows <= 100_000:
            raise OptionsError(f"{self.windows} windows are out of range; choose 1 to 100000.")
        if self.windows > 1 and self.every_s < self.length_s:
            raise OptionsError(
                f"Windows of {self.length_s:g} s do not fit into every {self.every_s:g} s; leave more time between them."
            )


def launch_capture(store: RunStore, capture: RemoteCapture) -> RunFolder:
    """Start recording and return at once; the run continues when the caller ends, and is cancelled like any run.

    Raises:
        StoreError: The store cannot be written, or no process can be started.
    """
    environment = {"command": f"capture {capture.address}"}
    folder = recordings.begin(store, f"capture {capture.address}", tags=(TAG,), environment=environment)
    numbers = {"--seconds": capture.length_s, "--every": capture.every_s, "--windows": capture.windows}
    options = [part for name, value in numbers.items() for part in (name, str(value))]
    command = module_command(module_of(Program.CAPTURE), *options, str(folder.path), capture.address)
    start_process(folder, command)
    return folder


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
