import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.support.ports import free_port


@pytest.fixture
def port() -> int:
    return free_port()


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=PATIENCE_S) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


ROOT = Path(__file__).parents[2]
COMMANDS = {  # each without the port at its end
    "pipeline-lab app": ["pipeline_lab", "app", "--no-browser", "--store", "store", "--port"],
    "streamlit run": ["streamlit", "run", str(ROOT / "app.py"), "--server.headless", "true", "--server.port"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_app_is_served_from_any_folder(tmp_path: Path, port: int, name: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PIPELINE_LAB_STORE": str(tmp_path / "store")}
    with subprocess.Popen(
        [sys.executable, "-m", *COMMANDS[name], str(port)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            until(lambda: healthy(port) or server.poll() is not None, "the app answers")
            assert server.poll() is None
        finally:
            server.send_signal(signal.SIGINT)
            time.sleep(0.01)  # the server has seen the first, which two at once may hide, and still ends
            server.send_signal(signal.SIGINT)
        assert server.stderr is not None
        told = server.stderr.read()
    assert server.returncode == 130, told
    assert ("Traceback" in told, "FATAL" in told) == (False, False)
    assert not healthy(port)
