"""Pushes an array of a device to a tape, and pops into another. Arguments: the folder, the door (the interface or
DLPack), and the room of the tape."""

import sys

import numpy as np
from device_arrays import InterfaceArray, TensorArray, start

import recoup

start()
make = {"interface": InterfaceArray, "dlpack": TensorArray}[sys.argv[2]]
states = [np.arange(24.0).reshape(4, 6) + step for step in range(5)] + [np.arange(7, dtype=np.int64)]
rooms = {
    "host": {"host": 1 << 20},
    "device": {"device": 1 << 10, "host": 1 << 20},
    "coded": {"device": 1 << 10, "host": 1 << 20, "codec": "qb"},
}
with recoup.Tape(spill=sys.argv[1], **rooms[sys.argv[3]]) as tape:
    for step, state in enumerate(states):
        tape.push(step, make(state))
    step, host = tape.pop()
    assert step == 5 and np.array_equal(host, states[5]), "an array of the host, without one of the device"
    out = make(np.zeros((4, 6)))
    for expected in reversed(range(1, 5)):
        step, popped = tape.pop(out=out)
        assert step == expected and popped is out and np.array_equal(out.get(), states[step]), step
    assert tape.peek(0, out=out) is out and np.array_equal(out.get(), states[0])
    try:
        tape.pop(out=make(np.zeros(23)))
    except recoup.Error as error:
        print(error)
    print(tape.steps)
