from pipeline_lab.worker.note.environment import describe_environment


def test_the_environment_names_what_decides_about_speed() -> None:
    described = describe_environment()
    assert {"host", "cores", "memory_bytes", "python", "tensorflow", "keras", "numpy"} <= described.keys()
