"""Jacobi on arrays in the memory of a device: `device_solve.py DIR STEPS`, killed after the steps, or -1 to the end."""

import ctypes
import os
import signal
import sys

import numpy as np
import recoup

cuda = ctypes.CDLL("libcuda.so")
N = 500
KILL_AFTER = int(sys.argv[2])


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, f"{name}: {status}"


def start():
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


class DeviceArray:
    """An array of the device, as CuPy makes them."""

    def __init__(self, values):
        self.values = np.ascontiguousarray(values)
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.values.nbytes))
        self.address = address.value
        self.put(self.values)

    @property
    def __cuda_array_interface__(self):
        shape, typestr = self.values.shape, self.values.dtype.str
        return {"shape": shape, "typestr": typestr, "data": (self.address, False), "version": 3, "strides": None}

    def put(self, values):
        host = np.ascontiguousarray(values, dtype=self.values.dtype)
        call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address), host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(host.nbytes))

    def get(self):
        host = np.empty_like(self.values)
        call("cuMemcpyDtoH_v2", host.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.address), ctypes.c_size_t(host.nbytes))
        return host


def main():
    start()
    x, field, steps = DeviceArray(np.zeros(N)), DeviceArray(np.zeros((4, 5), dtype=np.float32)), DeviceArray([0])
    with recoup.Session(sys.argv[1], scheme="lossless", interval="10it") as session:
        session.protect("x", x, role="iterate")
        session.protect("field", field)
        session.protect("steps", steps)
        restored = session.restore()
        k = restored.version if restored else 0
        print("restored", k, flush=True)
        while k < 45:
            k += 1
            x.put(np.cos(x.get() + k))
            field.put(field.get() + np.float32(k) / 3)
            steps.put([k])
            session.step(k, 1.0 / k)
            if k == KILL_AFTER:
                session.wait()
                os.kill(os.getpid(), signal.SIGKILL)
    print(x.get().tobytes().hex()[-64:], field.get().tobytes().hex(), steps.get()[0])


def refusals():
    start()
    with recoup.Session(sys.argv[1]) as session:
        x = DeviceArray(np.zeros(8))

        class Other:
            def __init__(self, **keys):
                self.__cuda_array_interface__ = x.__cuda_array_interface__ | keys

        others = {
            "complex": Other(typestr="<c16"),
            "strided": Other(shape=(4,), strides=(16,)),
            "read-only": Other(data=(x.address, True)),
            "too long": Other(shape=(9,)),
            "on the host": Other(data=(np.zeros(8).ctypes.data, False)),
        }
        for name, other in others.items():
            try:
                session.protect("x", other, role="iterate")
            except recoup.Error as error:
                print(f"{name}: {error}")


if __name__ == "__main__":
    refusals() if KILL_AFTER == 0 else main()
