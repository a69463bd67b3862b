"""What a file may cost to read: a sound trace stays far below, a hostile one is refused before memory is taken."""

from pipeline_lab.errors import TraceReadError

SPARE_BYTES = 48 << 20
BYTES_PER_FILE_BYTE = 3

# What Python and NumPy keep for one of each, in bytes (measured, rounded up).
PER_EVENT = 21
PER_NAME = 220
PER_LINE = 1600
PER_PLANE = 2600


class Budget:
    """Counts down the memory that columns, names, lines and planes of one file may take.

    The limit is 48 MiB plus three times the bytes of the file, which itself is mapped once.
    """

    def __init__(self, name: str, size_bytes: int) -> None:
        self._name = name
        self._left = SPARE_BYTES + BYTES_PER_FILE_BYTE * size_bytes

    def take(self, count: int, bytes_each: int, what: str) -> None:
        """Reserve memory for ``count`` things.

        Raises:
            TraceReadError: They do not fit; no profiler writes so many so small ones.
        """
        self._left -= count * bytes_each
        if self._left < 0:
            raise TraceReadError(
                f"{self._name} claims to hold more {what} than a profiler puts into a file of its size; "
                "it is no sound trace, so record it again."
            )
