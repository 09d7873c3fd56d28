"""Arrays in the memory of a device, as other libraries make them: by the CUDA array interface, and by DLPack."""

import ctypes

import numpy as np

cuda = ctypes.CDLL("libcuda.so")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, f"{name}: {status}"


def start():
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


class DeviceMemory:
    """Values on the device, of the type and shape of those it is made from."""

    def __init__(self, values):
        self.values = np.ascontiguousarray(values)
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.values.nbytes))
        self.address = address.value
        self.put(self.values)

    def put(self, values):
        host = np.ascontiguousarray(values, dtype=self.values.dtype)
        source = host.ctypes.data_as(ctypes.c_void_p)
        call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address), source, ctypes.c_size_t(host.nbytes))

    def get(self):
        host = np.empty_like(self.values)
        target = host.ctypes.data_as(ctypes.c_void_p)
        call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(self.address), ctypes.c_size_t(host.nbytes))
        return host


class InterfaceArray(DeviceMemory):
    """An array as CuPy makes them."""

    @property
    def __cuda_array_interface__(self):
        shape, typestr = self.values.shape, self.values.dtype.str
        return {"shape": shape, "typestr": typestr, "data": (self.address, False), "version": 3, "strides": None}


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Unversioned(ctypes.Structure):
    """DLManagedTensor."""

    capsule = b"dltensor"
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    capsule = b"dltensor_versioned"
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_exported = {}
"""The structures that are out, by address; a deleter takes its own back, and fails where there is none."""


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(managed):
    owner, _ = _exported.pop(managed)
    owner.n_deleted += 1


class TensorArray(DeviceMemory):
    """An array that gives its values by DLPack; `changed` has fields of the structures that are to be others."""

    structure = Versioned

    def __init__(self, values, **changed):
        super().__init__(values)
        self.changed, self.asked, self.n_deleted = changed, [], 0

    def __dlpack_device__(self):
        return self.changed.get("device_type", 2), 0

    def __dlpack__(self, *, stream=None, max_version=None, copy=None):
        self.asked.append((stream, max_version, copy))
        return self.export(self.structure if max_version else Unversioned)

    def export(self, structure):
        values, extents = self.values, ctypes.c_int64 * self.values.ndim
        self.shape = extents(*values.shape)
        managed = structure(deleter=ctypes.cast(_delete, ctypes.c_void_p))
        if structure is Versioned:
            managed.major, managed.flags = 1, 0
        code = {"i": 0, "u": 1, "f": 2, "c": 5}[values.dtype.kind]
        managed.tensor = Tensor(self.address, 2, 0, values.ndim, code, 8 * values.itemsize, 1, self.shape, None, 0)
        for field, value in self.changed.items():
            setattr(managed if hasattr(managed, field) else managed.tensor, field, value)
        address = ctypes.addressof(managed)
        _exported[address] = self, managed
        return _new_capsule(address, structure.capsule, None)


class OldTensorArray(TensorArray):
    """An array of a library that knows the protocol as it was before its version 1."""

    def __dlpack__(self, *, stream=None):
        self.asked.append((stream,))
        return self.export(Unversioned)
