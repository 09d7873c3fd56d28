"""Decodes versioned memories by the letter of crates/memory/memory/FORMAT.md, with nothing but the standard library.

usage: memory.py FOLDER...

FOLDER holds a memory, state.memory, and the values expected of each structure, VERSION.NAME.bin, little-endian. Shares
nothing with recoup's own code.
"""

import pathlib
import struct
import sys

from checksums import crc32c
from words import Damaged, require

WIDTHS = [8, 4, 8, 4, 8, 4, 1]
ROOT, VERSION, STRUCTURE, ENTRY = struct.Struct("<8sQIIQQ20sI"), struct.Struct("<QQI4s"), struct.Struct("<HBBIQQ"), 16
HEAD, SLOT = 8192, 4096


def root(data, slot):
    """The root in a slot, or None where its checksum does not hold."""
    line = data[slot * SLOT : slot * SLOT + ROOT.size]
    if len(line) < ROOT.size or not any(line):
        return None
    magic, number, block_bytes, crc, place, length, zeros, own_crc = ROOT.unpack(line)
    if own_crc != crc32c(line[:-4]):
        return None
    require(magic[:7] == b"RCMEMRY", "it is no versioned memory")
    require(magic[7] == 1, f"format {magic[7]}")
    require(number % 2 == slot and not any(zeros), "a root in the wrong place")
    require(512 <= block_bytes <= 16 << 20 and block_bytes & (block_bytes - 1) == 0, f"blocks of {block_bytes} bytes")
    return number, block_bytes, crc, place, length


def run(data, block_bytes, place, length, crc, what):
    """Bytes of places that lie one after the other."""
    start = HEAD + place * block_bytes
    found = data[start : start + length]
    require(len(found) == length, f"{what}: the file ends before it")
    require(crc32c(found) == crc, f"{what}: checksum")
    return found


def versions(data):
    """Number, and values of each structure, of all versions, the oldest first."""
    roots = [found for found in (root(data, 0), root(data, 1)) if found]
    require(roots, "no root holds")
    newest, block_bytes, crc, place, length = max(roots)
    listed = run(data, block_bytes, place, length, crc, "list of versions")
    (count,), at = struct.unpack_from("<I", listed), 8
    for _ in range(count):
        number, _step, n_structures, _ = VERSION.unpack_from(listed, at)
        at += VERSION.size
        require(number <= newest, "a version behind the newest")
        structures = {}
        for _ in range(n_structures):
            n_name, kind, zero, table_crc, n_values, table_place = STRUCTURE.unpack_from(listed, at)
            name = listed[at + STRUCTURE.size : at + STRUCTURE.size + n_name].decode()
            require(name and zero == 0 and kind < len(WIDTHS), "name or type of a structure")
            at += STRUCTURE.size + -(-n_name // 8) * 8
            length = n_values * WIDTHS[kind]
            what = f"version {number}, {name}"
            n_blocks = -(-length // block_bytes)
            table = run(data, block_bytes, table_place, ENTRY * n_blocks, table_crc, f"{what}, table")
            values = b""
            for block, (where, block_crc, birth) in enumerate(struct.iter_unpack("<IIQ", table)):
                require(birth <= number, f"{what}, block {block}: of a later version")
                here = min(block_bytes, length - block * block_bytes)
                values += run(data, block_bytes, where, here, block_crc, f"{what}, block {block}")
            structures[name] = values
        yield number, structures
    require(at == len(listed) or not count, "bytes behind the list of versions")


def main(folders):
    """Compares all values with those expected."""
    for folder in map(pathlib.Path, folders):
        found = {
            f"{number}.{name}.bin": values
            for number, structures in versions((folder / "state.memory").read_bytes())
            for name, values in structures.items()
        }
        expected = {path.name: path.read_bytes() for path in folder.glob("*.bin")}
        require(found.keys() == expected.keys(), f"{folder}: other versions or structures")
        for name, values in expected.items():
            require(found[name] == values, f"{folder}/{name}: other values")
            print(f"{folder.name}/{name}: {len(values)} bytes")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Damaged as damaged:
        sys.exit(str(damaged))
