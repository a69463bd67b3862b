import threading

from pipeline_lab.capture.shared_profiler import YieldingLock, ours


def test_others_find_the_profiler_free_and_we_do_not_wait_for_ourselves() -> None:
    told: list[str] = []
    inner = threading.Lock()

    def pause() -> None:
        assert not inner.locked(), "our session ends before the other one begins"
        told.append("pause")

    lock = YieldingLock(inner, pause, lambda: told.append("resume"))
    with ours(), lock:
        assert inner.locked()
    assert told == []
    with lock:
        assert told == ["pause"]
    assert told == ["pause", "resume"]
    assert not inner.locked()


def test_a_refusal_gives_the_profiler_back() -> None:
    told: list[str] = []
    lock = YieldingLock(threading.Lock(), lambda: told.append("pause"), lambda: told.append("resume"))
    try:
        with lock:
            raise ValueError
    except ValueError:
        pass
    assert told == ["pause", "resume"]
