"""Decodes payloads of codecs zstd and zfp: bytes that a registered HDF5 filter opens, here by those of hdf5plugin.

The payload becomes the one chunk of a dataset in memory, just as it is.
"""

import h5py
import hdf5plugin
import numpy

from words import require

TYPES = {"f64": "<f8", "f32": "<f4", "i64": "<i8", "bytes": "u1"}


def read_chunk(payload, shape, dtype, **filters):
    with h5py.File("chunk.h5", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("x", shape=shape, chunks=shape, dtype=dtype, **filters)
        dataset.id.write_direct_chunk((0,) * len(shape), payload)
        return dataset[()].tobytes()


def zstd(payload, element, n):
    """One zstd frame of bytes in the order of HDF5's shuffle filter: those of a significance together."""
    size = numpy.dtype(TYPES[element]).itemsize
    require(payload[:4] == bytes.fromhex("28b52ffd"), "magic of zstd")
    planes = read_chunk(payload, (n * size,), "u1", **hdf5plugin.Zstd())
    return numpy.frombuffer(planes, "u1").reshape(size, n).T.tobytes()


def zfp(payload, element, dims, bound):
    """A bare zfp stream: accuracy mode with the bound as tolerance, or reversible mode."""
    require(element in ("f64", "f32") and len(payload) % 8 == 0, "type or length")
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    mode = hdf5plugin.Zfp(reversible=True) if bound == "lossless" else hdf5plugin.Zfp(accuracy=bound["absolute"])
    return read_chunk(payload, tuple(reversed(dims)), TYPES[element], **mode)
