"""The id that each of our records carries: which file it is in, and where in that file."""

FILE_SHIFT = 40
RECORD_MASK = (1 << FILE_SHIFT) - 1


def record_id(file_index: int, record: int) -> int:
    return file_index << FILE_SHIFT | record
