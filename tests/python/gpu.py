"""A GPU for tests of device=, as a trainer has it: memory to look at, streams, a taker of capsules.

It is the stand-in of tests/cuda; with TUNDISH_TEST_GPU=1 in the environment, the machine's own. All of
it goes through the driver's calls, so that tests are the same for both.
"""

import ctypes
import os

import rig

STAND_IN = str(rig.BUILD / "tests" / "cuda" / "libcuda.so.1")
IS_REAL = os.environ.get("TUNDISH_TEST_GPU") == "1"
NON_BLOCKING = 1

class Gpu:
    """The device 0, whose primary context is this thread's current one from then on."""

    def __init__(self):
        # A library that is loaded is found by its name, whatever the path is.
        self.driver = ctypes.CDLL("libcuda.so.1" if IS_REAL else STAND_IN, ctypes.RTLD_GLOBAL)
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxPushCurrent_v2", self.context)

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            raise AssertionError(f"{name}: {result}")

    def stream(self):
        """A new one, that waits for no other by itself."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreateWithPriority", ctypes.byref(stream), NON_BLOCKING, 0)
        return stream.value

    def uses(self, stream):
        """(waits, records) that a stream of the stand-in was given."""
        handle = ctypes.c_void_p(stream)
        return tuple(self.driver.fake_cuda_uses(handle, of_waits) for of_waits in (1, 0))

    def alive(self):
        """What the stand-in has given out and not got back."""
        return self.driver.fake_cuda_alive()

    def read(self, address, size, stream=None):
        """Bytes of the device, copied there in the order of a stream."""
        if size == 0:
            return b""
        handle, copy = ctypes.c_void_p(stream), ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(copy), ctypes.c_size_t(size))
        self.call("cuMemcpyDtoDAsync_v2", copy, ctypes.c_uint64(address), ctypes.c_size_t(size), handle)
        self.call("cuStreamSynchronize", handle)
        found = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", found, copy, ctypes.c_size_t(size))
        self.call("cuMemFree_v2", copy)
        return found.raw


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Legacy(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Taken:
    """What a framework makes of a capsule: memory that is its own until delete()."""

    def __init__(self, capsule):
        kind, name = (_Legacy, b"dltensor")
        if "dltensor_versioned" in repr(capsule):
            kind, name = (_Versioned, b"dltensor_versioned")
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self._address = api.PyCapsule_GetPointer(capsule, name)
        self._used = b"used_" + name  # the capsule keeps no copy
        api.PyCapsule_SetName(capsule, self._used)
        self.managed = kind.from_address(self._address)
        tensor = self.managed.tensor
        self.device = (tensor.device_type, tensor.device_id)
        self.type = (tensor.code, tensor.bits, tensor.lanes)
        self.shape = tuple(tensor.shape[: tensor.rank])
        self.address = tensor.data + tensor.offset
        self.size = tensor.bits // 8
        for dim in self.shape:
            self.size *= dim

    def delete(self):
        self.managed.deleter(self._address)


def take(array, stream=None, **options):
    """A framework's from_dlpack."""
    return Taken(array.__dlpack__(stream=stream, **options))
