"""Decodes the states of spill directories by the letter of crates/adjoint/tape/FORMAT.md, with nothing but the standard library.

usage: tape.py [--list] FOLDER...

FOLDER holds states, NUMBER-STEP.state, and the values expected of each, STEP.bin, little-endian. With --list the values
are decoded and not compared. Payloads are raw or of QB; those of other codecs are refused. Shares nothing with recoup's
own code.
"""

import math
import pathlib
import re
import struct
import sys

import qb
from checksums import blake3_16, crc32c
from words import Damaged, require

ELEMENTS = [("f64", 8), ("f32", 4), ("i64", 8), ("bytes", 1)]
BOUNDS = ["lossless", "absolute", "range", "pointwise"]
LINKS = ["alone", "start", "follows"]
HEADER, UNIT, TRAILER = struct.Struct("<8sQQ8sBBB5s3QdQ"), 64, struct.Struct("<QI4s")
NAME = re.compile(r"(\d{10,})-(\d+)\.state")


class State:
    """One file: its header and its payload, whose checksum held."""

    def __init__(self, path):
        name = NAME.fullmatch(path.name)
        require(name, "its name is not that of a state")
        data = path.read_bytes()
        require(len(data) >= HEADER.size, "cut off in its header")
        fields = HEADER.unpack_from(data)
        magic, self.number, self.step, codec, element, bound, link, zeros, *self.dims, self.bound_value, length = fields
        require(magic[:7] == b"RCTAPE\0", "it is no state of a tape")
        require(magic[7] == 1, f"format {magic[7]}")
        require((self.number, self.step) == tuple(int(part) for part in name.groups()), "another state's name")
        end = -(-(HEADER.size + length) // UNIT) * UNIT
        require(len(data) == end + TRAILER.size, f"{len(data)} bytes, {end + TRAILER.size} expected")
        record_bytes, checksum, last = TRAILER.unpack_from(data, end)
        require((record_bytes, last) == (end, b"TAPE"), "its end is not that of a state")
        require(checksum == crc32c(data[:end]), "checksum")
        self.codec = codec.rstrip(b"\0").decode("ascii")
        require(codec[: len(self.codec)].isalnum(), "name of the codec")
        require(element < 4 and bound < 4 and link < 3 and zeros == bytes(5), "element, bound, link or zeros")
        self.element, self.size = ELEMENTS[element]
        self.bound, self.link = BOUNDS[bound], LINKS[link]
        has_bound = 0 < self.bound_value < math.inf if bound else self.bound_value == 0
        require(has_bound, f"{self.bound} bound of {self.bound_value}")
        self.n = math.prod(self.dims)
        self.payload = data[HEADER.size : HEADER.size + length]
        require(not any(data[HEADER.size + length : end]), "zeros behind the payload")

    def values(self, before):
        """The little-endian values; `before` is the state pushed before, with its values, or None."""
        follows = self.link == "follows"
        require(not follows or (before and before[0].link != "alone"), "the state that it follows is not there")
        if self.codec == "raw":
            require(not follows and len(self.payload) == self.n * self.size, "length of raw values")
            return self.payload
        require(self.codec == "qb", f"no decoder for {self.codec}")
        form = f"<{self.n}{'Q' if self.size == 8 else 'I'}"
        frame = qb.Frame(self.payload)
        require((frame.n, ELEMENTS[frame.dtype][0]) == (self.n, self.element), "number or type of the values")
        require(frame.parent == (blake3_16(before[0].payload) if follows else bytes(16)), "another parent")
        return struct.pack(form, *frame.decode(struct.unpack(form, before[1]) if follows else None))

    def line(self):
        extents = "x".join(str(extent) for extent in self.dims)
        bound = self.bound if self.bound == "lossless" else f"{self.bound} {self.bound_value:.6g}"
        return f"step {self.step}: {self.codec} {self.element} {self.link} {bound}, {extents}, {len(self.payload)} bytes"


def read(folder):
    """Yields each state with its values, in the order of the pushes."""
    before = None
    for path in sorted(folder.glob("*.state"), key=lambda path: int(path.name.split("-")[0])):
        try:
            state = State(path)
            is_next = before is not None and before[0].number + 1 == state.number
            before = state, state.values(before if is_next else None)
        except Damaged as damage:
            raise Damaged(f"{path.name}: {damage}") from None
        yield before


def main(folders, compares):
    for folder in folders:
        n = 0
        try:
            for state, values in read(folder):
                print(state.line())
                if compares:
                    require((folder / f"{state.step}.bin").read_bytes() == values, f"step {state.step}: other values")
                n += 1
        except Damaged as damage:
            sys.exit(f"{folder}: {damage}")
        print(f"{folder.name}: {n} states")


if __name__ == "__main__":
    lists = sys.argv[1:2] == ["--list"]
    if len(sys.argv) < 2 + lists:
        sys.exit(__doc__)
    main([pathlib.Path(argument) for argument in sys.argv[1 + lists :]], not lists)
