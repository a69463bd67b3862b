from collections.abc import Iterator

import pytest

from tests.support.warm_worker import Ask, warm_worker


@pytest.fixture(scope="session")
def ask_tensorflow(_own_folders: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Call a function of :mod:`tests.worker.tensorflow_tasks`, or ``module:function``, in the one process that has TensorFlow loaded."""
    environment = {"TF_ENABLE_ONEDNN_OPTS": "1"}  # its allocator tells of itself; old processors do without
    with warm_worker(
        "tests.worker.tensorflow_tasks", environment, tmp_path_factory.mktemp("tensorflow") / "log"
    ) as ask:
        yield ask
