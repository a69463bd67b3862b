import pytest

from pipeline_lab.errors import OptionsError
from pipeline_lab.runs.own_job_runs import RemoteCapture


@pytest.mark.parametrize("address", ["localhost:6009", "10.0.0.7:1", "[::1]:6009", "trainer-3.cluster.local:65535"])
def test_an_address_names_a_host_and_a_port(address: str) -> None:
    assert RemoteCapture(address).address == address


@pytest.mark.parametrize(
    "address", ["", "6009", "localhost", "localhost:", ":6009", "host:0", "host:70000", "a b:1", "[x]:1", "h;rm:1"]
)
def test_what_is_no_address_is_one_sentence(address: str) -> None:
    with pytest.raises(OptionsError, match="write HOST:PORT"):
        RemoteCapture(address)


def test_windows_must_fit_into_their_period() -> None:
    with pytest.raises(OptionsError, match="do not fit"):
        RemoteCapture("localhost:6009", length_s=5, every_s=2, windows=3)
    assert RemoteCapture("localhost:6009", length_s=5, every_s=2, windows=1).windows == 1
