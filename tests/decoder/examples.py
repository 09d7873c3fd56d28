"""Checks the examples of the format pages, row by row.

usage: examples.py REPOSITORY
"""

import json
import pathlib
import re
import struct
import sys

import pyramid
import qb
from checksums import crc32c
from words import Damaged, double_of, require

FORMS = {"u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "i32": "<i", "f64": "<d"}


def section(page, title):
    text = page.read_text()
    return re.search(rf"^## {title}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE).group(1)


def tables(text):
    """The rows of each table, without its heading; marks of code are dropped."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        found.append(rows[2:])
    return found


def frame_of(rows):
    """The bytes of the rows, each of them with its field, type and value."""
    frame = b""
    for at, digits, field, value, _ in rows:
        data = bytes.fromhex(digits)
        require(int(at) == len(frame), f"{field} at {at}, {len(frame)} expected")
        frame += data
        kind = field.split()[-1]
        if kind == "zeros":
            require(data == bytes(len(data)), field)
        elif kind == "bits":
            require(value == "-", field)
        elif kind == "text":
            require(data.decode() == value, field)
        else:
            require(struct.unpack(FORMS[kind], data) == (float(value) if kind == "f64" else int(value),), field)
    return frame


def check_frame(page):
    """Every byte of the frame of QB, then the values."""
    (rows,) = tables(section(page, "Example"))
    frame = frame_of(rows)
    found = [double_of(pattern) for pattern in qb.Frame(frame).decode()]
    require(found == [3.0] * 7 + [3.5] + [3.0] * 12, f"values {found}")
    print(f"{page.name}: {len(rows)} fields, {len(frame)} bytes")


def check_pyramid(page):
    """Every byte of the frame of pyramid, then the values within their bound."""
    text = page.read_text()
    rows, _ = tables(text[text.index("### Example of a pyramid") : text.index("### Why its bounds hold")])
    frame = frame_of(rows)
    found = [double_of(pattern) for pattern in pyramid.Frame(frame).decode()]
    expected = [3.0] * 8 + [3.5] + [3.0] * 31
    require(len(found) == 40 and all(abs(x - y) <= 0.125 for x, y in zip(found, expected)), f"values {found}")
    print(f"{page.name}: {len(rows)} fields of a pyramid, {len(frame)} bytes")


def at(value, path):
    for key in re.findall(r"\w+", path):
        value = value[int(key) if key.isdigit() else key]
    return value


def leaves(value):
    """Fields that are no lists of objects and no objects of several fields."""
    if isinstance(value, dict) and len(value) > 1:
        return sum((leaves(inner) for inner in value.values()), 0)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sum(leaves(inner) for inner in value)
    return 1


def check_manifest(page, frozen):
    text = section(page, "Example")
    block = re.search(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE).group(1)
    sealed = ("".join(line.strip() for line in block.splitlines()) + "\n").encode()
    require(sealed == frozen.read_bytes(), f"the manifest is not {frozen}")
    envelope, fields = tables(text)
    ends = [int(row[0]) for row in envelope[1:]] + [len(sealed)]
    for (start, digits, field, _), end in zip(envelope, ends):
        first = bytes.fromhex(digits.removesuffix(".."))
        part = sealed[int(start) : end]
        require(part.startswith(first) if digits.endswith("..") else part == first, f"envelope: {field}")
        require("BODY," not in field or field == f"BODY, {len(part)} bytes", f"envelope: {field}")
    body = sealed[int(envelope[3][0]) : int(envelope[4][0])]
    require(envelope[1][3] == f"{crc32c(body):08x}", "checksum")
    manifest = json.loads(body)
    for path, value, _ in fields:
        require(at(manifest, path) == json.loads(value), f"{path}: {value}")
    require(leaves(manifest) == len(fields), f"{leaves(manifest)} fields, {len(fields)} rows")
    print(f"{page.name}: {len(fields)} fields, {len(sealed)} bytes")


def check_increment(page, version):
    """Every byte of the payload, in one row each with its field, type and value; it is the frozen one."""
    text = re.search(r"^### increment\n(.*?)^### ", page.read_text(), re.DOTALL | re.MULTILINE).group(1)
    _, rows = tables(text)
    payload = b""
    for at, digits, field, value, _ in rows:
        data = bytes.fromhex(digits)
        require(int(at) == len(payload), f"{field} at {at}, {len(payload)} expected")
        payload += data
        kind = field.split()[-1]
        if kind == "text":
            require(data.decode() == value, field)
        elif kind == "zeros":
            require(data == bytes(len(data)), field)
        elif kind != "bytes":
            require(struct.unpack(FORMS[kind], data) == (float(value) if kind == "f64" else int(value),), field)
    frames = json.loads((version / "manifest.json").read_bytes())["manifest"]["frames"]
    (frame,) = [frame for frame in frames if (frame["variable"], frame["run"]) == ("x", 0)]
    place = frame["place"]
    frozen = (version / place["file"]).read_bytes()[place["offset"] :][: frame["payload_bytes"]]
    require(payload == frozen, f"the increment is not that of {version}")
    print(f"{page.name}: {len(rows)} fields, {len(payload)} bytes of an increment")


def main(root):
    try:
        check_frame(root / "compress" / "FORMAT.md")
        check_pyramid(root / "compress" / "FORMAT.md")
        increments = root / "tests" / "golden" / "v1" / "chain-increment-raw" / "solve" / "v000000000005"
        check_increment(root / "io" / "FORMAT.md", increments)
        version = root / "tests" / "golden" / "v1" / "chain-qb" / "solve" / "v000000000004"
        check_manifest(root / "io" / "FORMAT.md", version / "manifest.json")
    except Damaged as damage:
        sys.exit(f"example: {damage}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
