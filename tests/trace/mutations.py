"""Damage files the way disks, networks and text programs do."""

import random
from collections.abc import Callable

Mutation = Callable[[bytearray, random.Random], bytes]


def cut(data: bytearray, chance: random.Random) -> bytes:
    return bytes(data[: chance.randrange(len(data))])


def flip_bits(data: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 10, 100))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def zero_middle(data: bytearray, chance: random.Random) -> bytes:
    begin, end = sorted(chance.sample(range(len(data)), 2))
    data[begin:end] = bytes(end - begin)
    return bytes(data)


def drop_middle(data: bytearray, chance: random.Random) -> bytes:
    begin = chance.randrange(len(data))
    del data[begin : begin + chance.choice((1, 7, 500))]
    return bytes(data)


def repeat_middle(data: bytearray, chance: random.Random) -> bytes:
    begin, end = sorted(chance.sample(range(len(data)), 2))
    return bytes(data[:end] + data[begin:])


def grow_length(data: bytearray, chance: random.Random) -> bytes:
    """Put a huge number where a length may stand."""
    at = chance.randrange(len(data))
    data[at : at + 1] = bytes([0xFF] * chance.randrange(1, 10) + [chance.randrange(128)])
    return bytes(data)


def mangle_text(data: bytearray, chance: random.Random) -> bytes:
    begin = chance.randrange(len(data))
    return bytes(data[:begin]) + bytes(data[begin:]).decode("utf-8", "replace").encode()


def overwrite(data: bytearray, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    data[at : at + 64] = chance.randbytes(64)
    return bytes(data)


MUTATIONS: tuple[Mutation, ...] = (
    cut,
    flip_bits,
    zero_middle,
    drop_middle,
    repeat_middle,
    grow_length,
    mangle_text,
    overwrite,
)


def mutate(data: bytes, seed: int) -> bytes:
    """Return ``data`` damaged once or twice; the same seed damages alike."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2))):
        if len(data) < 2:
            break
        data = chance.choice(MUTATIONS)(bytearray(data), chance)
    return data
