"""Counts until its job's time is nearly over, saves and ends with 75."""

import sys
import time

import numpy as np
import recoup

x = np.zeros(1000)
with recoup.Session("versions", scheme="exact", interval="20it") as session:
    session.protect("x", x)
    restored = session.restore()
    k = restored.iteration if restored else 0
    while not session.should_stop():
        k += 1
        x += 1
        time.sleep(0.02)
        session.step(k, 1.0)
    session.save(k, 1.0)
sys.exit(75)
