"""How often the deleter of a tensor has run: `dlpack_owners.py DIR` prints it at each turn of a tensor's life."""

import ctypes
import gc
import sys

import numpy as np
import recoup
from device_arrays import OldTensorArray, TensorArray, start


def main():
    extents = ctypes.c_int64 * 2
    first = TensorArray(np.zeros((4, 6)), strides=extents(6, 1))
    second = OldTensorArray(np.zeros((1, 6)), strides=extents(99, 1))
    managed = TensorArray(np.arange(6.0), device_type=13)
    managed.shape_of_rest = (ctypes.c_int64 * 1)(5)
    managed.changed |= {"shape": managed.shape_of_rest, "byte_offset": 8}
    session = recoup.Session(sys.argv[1])
    session.protect("x", first)
    print("protected", first.n_deleted, first.asked)
    session.save(1, 1.0)
    session.wait()
    session.protect("x", second)
    print("replaced", first.n_deleted, second.n_deleted, second.asked)
    session.protect("rest", managed)
    session.save(2, 1.0)
    managed.put(np.full(6, -1.0))
    session.wait()
    session.restore()
    print("restored", managed.get().tolist(), second.n_deleted, managed.n_deleted)
    session.close()
    print("closed", first.n_deleted, second.n_deleted, managed.n_deleted)
    dropped = TensorArray(np.zeros(6))
    session = recoup.Session(sys.argv[1])
    session.protect("dropped", dropped)
    del session
    gc.collect()
    print("dropped", dropped.n_deleted)


start()
main()
