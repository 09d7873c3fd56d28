"""Increments, by the letter of io/FORMAT.md: the runs of values that differ from the parent's, or from zeros."""

import struct

import filters
from words import require

SIZES = {"f64": 8, "f32": 4, "i64": 8, "bytes": 1}


def decode(payload, element, n, parent):
    """The little-endian values of a frame of n values, and how they were coded; the parent's values and hash, or none."""
    magic, version, reference, packing, zero, n_runs, digest = struct.unpack_from("<8sBBBBI16s", payload)
    require((magic, version, zero) == (b"RECOUPIN", 1, 0) and reference < 2 and packing < 2, "header of an increment")
    require((reference == 1) == (parent is not None), "a reference without its parent")
    require(digest == (parent[1] if parent else bytes(16)), "another parent")
    require(32 + 8 * n_runs <= len(payload) and not (packing and not n_runs), "runs of an increment")
    size = SIZES[element]
    runs = list(struct.iter_unpack("<II", payload[32 : 32 + 8 * n_runs]))
    end = -1
    for first, count in runs:
        require(first > end and count > 0 and first + count <= n, "runs are not ascending and apart")
        end = first + count
    changed = sum(count for _, count in runs)
    values = payload[32 + 8 * n_runs :]
    if packing:
        values = filters.zstd(values, element, changed)
    require(len(values) == changed * size, "values of the runs")
    decoded = bytearray(parent[0] if parent else n * size)
    for first, count in runs:
        decoded[first * size : (first + count) * size] = values[: count * size]
        values = values[count * size :]
    form = "packed" if packing else "plain" if runs else "same"
    return bytes(decoded), f"increment {element} {'follows' if parent else 'alone'} {form}"
