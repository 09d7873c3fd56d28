"""Jacobi on arrays in the memory of a device: `device_solve.py DIR DOOR STEPS`, killed after the steps, or -1 to the end."""

import os
import signal
import sys

import device_arrays
import numpy as np
import recoup

N = 500
Array = {
    "interface": device_arrays.InterfaceArray,
    "dlpack": device_arrays.TensorArray,
    "old-dlpack": device_arrays.OldTensorArray,
}[sys.argv[2]]
KILL_AFTER = int(sys.argv[3])


def main():
    x, field, steps = Array(np.zeros(N)), Array(np.zeros((4, 5), dtype=np.float32)), Array([0])
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


device_arrays.start()
main()
