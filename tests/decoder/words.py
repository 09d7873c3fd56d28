"""What every decoder here needs: a refusal, and IEEE 754 patterns as integers."""

import struct


class Damaged(Exception):
    """The bytes are not what FORMAT.md describes."""


def require(condition, what):
    if not condition:
        raise Damaged(what)


def signed(value, width):
    """The low `width` bits of `value` as a two's complement integer."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


def double_of(pattern):
    return struct.unpack("<d", struct.pack("<Q", pattern))[0]


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def single_of(pattern):
    return struct.unpack("<f", struct.pack("<I", pattern))[0]


def single_bits_of(value):
    """The pattern of the nearest single; beyond the largest, that of infinity."""
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000
