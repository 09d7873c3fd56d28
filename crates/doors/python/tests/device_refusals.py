"""Arrays of a device that a session cannot take: `device_refusals.py DIR DOOR` prints the words for each."""

import ctypes
import sys

import numpy as np
import recoup
from device_arrays import InterfaceArray, OldTensorArray, TensorArray, Versioned, start


def interface_arrays():
    x = InterfaceArray(np.zeros(8))

    class Other:
        def __init__(self, **keys):
            self.__cuda_array_interface__ = x.__cuda_array_interface__ | keys

    yield "complex", Other(typestr="<c16")
    yield "strided", Other(shape=(4,), strides=(16,))
    yield "read-only", Other(data=(x.address, True))
    yield "too long", Other(shape=(9,))
    yield "longer than memory", Other(shape=(2**62, 2**62))
    yield "on the host", Other(data=(np.zeros(8).ctypes.data, False))


class UsedTensorArray(TensorArray):
    """An array that gives the same capsule twice."""

    def __dlpack__(self, **words):
        self.capsule = getattr(self, "capsule", None) or self.export(Versioned)
        return self.capsule


class LearningArray(TensorArray):
    """An array with a gradient, as PyTorch refuses to give it away."""

    def __dlpack__(self, **words):
        raise BufferError("tensors that require gradient: use tensor.detach()")


def tensor_arrays():
    values = np.zeros((4, 6))
    extents = ctypes.c_int64 * 2
    yield "complex", TensorArray(values.astype(complex))
    yield "lanes", TensorArray(values.astype(np.float32), lanes=4)
    yield "unknown type", TensorArray(values, code=99)
    yield "strided", TensorArray(values, strides=extents(1, 4))
    yield "old and strided", OldTensorArray(values, strides=extents(12, 1))
    yield "read-only", TensorArray(values, flags=1)
    yield "copy", TensorArray(values, flags=2)
    yield "too long", TensorArray(values, byte_offset=8)
    yield "longer than memory", TensorArray(values, shape=extents(2**62, 2**62))
    yield "negative extent", TensorArray(values, shape=extents(-4, 6))
    yield "of the host", TensorArray(values, device_type=1)
    yield "pinned", TensorArray(values, device_type=3)
    yield "of another maker", TensorArray(values, device_type=10)
    yield "of a later protocol", TensorArray(values, major=2)
    yield "on the host", TensorArray(values, data=values.ctypes.data)
    yield "with a gradient", LearningArray(values)
    used = UsedTensorArray(values)
    with recoup.Session(sys.argv[1] + "-used") as session:
        session.protect("x", used)
    used.n_deleted = 0
    yield "used", used


def main():
    with recoup.Session(sys.argv[1]) as session:
        for what, array in {"interface": interface_arrays, "dlpack": tensor_arrays}[sys.argv[2]]():
            try:
                session.protect("x", array, role="iterate")
                print(f"{what}: taken")
            except (recoup.Error, BufferError) as error:
                print(f"{what}: {error}", getattr(array, "n_deleted", 0), sep="|")


start()
main()
