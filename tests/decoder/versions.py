"""Decodes whole versions by the letter of io/FORMAT.md and compress/FORMAT.md, and compares them with what is expected.

usage: versions.py CASE...

CASE is a folder with one run, CASE/RUN/v..., and what a restore of its newest version gives, CASE/expected/RANK-VARIABLE.bin,
little-endian values. Shares nothing with recoup's own code. zstd and zfp payloads need h5py, hdf5plugin and NumPy.
"""

import json
import pathlib
import re
import struct
import sys

import filters
import increment
import pyramid
import qb
import rpco
from checksums import blake3_16, crc32c
from words import Damaged, require

SIZES = {"f64": 8, "f32": 4, "i64": 8, "bytes": 1}
FORMS = {8: "Q", 4: "I", 1: "B"}
ENVELOPE = re.compile(rb'\{"checksum":"crc32c:([0-9a-f]{8})","manifest":(.*)\}\n', re.DOTALL)


def manifest_of(version):
    sealed = ENVELOPE.fullmatch((version / "manifest.json").read_bytes())
    require(sealed, "manifest.json: not an envelope")
    checksum, body = sealed.groups()
    require(int(checksum, 16) == crc32c(body), "manifest.json: checksum")
    manifest = json.loads(body)
    require(manifest["format"] in (1, 2), f"format {manifest['format']}")
    if manifest["format"] == 2:
        join_parts(version, manifest)
    number = int(version.name[1:])
    require((manifest["version"], manifest["name"]) == (number, version.parent.name), "another version's or run's manifest")
    require({v["rank"] for v in manifest["variables"]} == set(range(manifest["ranks"])), "ranks")
    return manifest


def join_parts(version, manifest):
    """Puts the variables and frames in the parts of the files into the manifest."""
    require(not manifest["variables"] and not manifest["frames"], "lists in a manifest that is in parts")
    files = [file for file in manifest["files"] if "part" in file]
    for file in files:
        place = files[0]["part"] | file["part"]
        place["parents"] = file["part"].get("parents", [])
        text = (version / file["name"]).read_bytes()[place["offset"] :][: place["bytes"]]
        require(crc32c(text) == place["crc32c"], f"{file['name']}: part of the manifest")
        part = json.loads(text)
        require([part[key] for key in ("format", "name", "version")] == [2, manifest["name"], manifest["version"]], "part")
        require(all(frame["place"]["file"] == file["name"] for frame in part["frames"]), "frame of another file")
        if "rows" in place:
            require(all(place[key] == value for key, value in told(part).items()), f"{file['name']}: not what the top says")
        manifest["variables"] += part["variables"]
        manifest["frames"] += part["frames"]


def told(part):
    """What the top says of a part."""
    ranges = {}
    for variable in part["variables"]:
        if isinstance(variable["distribution"], dict):
            rows = variable["distribution"]["rows"]
            first, end = ranges.get(rows["global"], (rows["first"], 0))
            ranges[rows["global"]] = min(first, rows["first"]), max(end, rows["first"] + variable["len"])
    names = sorted({variable["name"].encode() for variable in part["variables"]})
    return {
        "rows": [number for key in sorted(ranges) for number in (ranges[key][0], ranges[key][1] - ranges[key][0])],
        "globals": sorted(ranges),
        "names": crc32c(b"".join(name + b"/" for name in names)),
        "parents": sorted({parent for frame in part["frames"] for parent in frame.get("parents", [])}),
    }


class Run:
    def __init__(self, folder):
        self.versions = {int(path.name[1:]): path for path in folder.glob("v*")}
        self.manifests = {number: manifest_of(path) for number, path in self.versions.items()}
        self.decoded, self.ways = {}, set()

    def check_files(self, number):
        """Every byte of every listed file is covered by one checksum."""
        for file in self.manifests[number]["files"]:
            data = (self.versions[number] / file["name"]).read_bytes()
            require(len(data) == file["bytes"], f"{file['name']}: length")
            frames = [f for f in self.manifests[number]["frames"] if f["place"]["file"] == file["name"]]
            structure, at = b"", 0
            for frame in sorted(frames, key=lambda f: f["place"]["offset"]):
                start = frame["place"]["offset"]
                require(start >= at, "frames overlap")
                structure, at = structure + data[at:start], start + frame["payload_bytes"]
            require(crc32c(structure + data[at:]) == file["structure_crc32c"], f"{file['name']}: structure")

    def variable(self, number, record):
        """The little-endian values of a variable of one rank."""
        frames = [f for f in self.manifests[number]["frames"] if of(f, record)]
        found, size = b"", SIZES[record["element"]]
        for run, frame in enumerate(frames):
            require((frame["run"], frame["start"] * size) == (run, len(found)), "frames do not follow each other")
            values, _ = self.frame(number, record, frame)
            found += values[: frame["len"] * size]
        require(len(found) == record["len"] * size, "frames do not cover their variable")
        return found

    def frame(self, number, record, frame):
        """The values of a full frame, padding included, and the payload's hash."""
        key = number, frame["variable"], frame["rank"], frame["run"]
        if key not in self.decoded:
            place = frame["place"]
            data = (self.versions[number] / place["file"]).read_bytes()
            payload = data[place["offset"] :][: frame["payload_bytes"]]
            require(crc32c(payload) == frame["crc32c"], "checksum of a frame")
            parent = self.parent(number, record, frame)
            self.decoded[key] = self.values(record, frame, payload, parent), blake3_16(payload)
        return self.decoded[key]

    def parent(self, number, record, frame):
        if not frame.get("parents"):
            return None
        (parent,) = frame["parents"]
        require(parent < number and frame["storage"] == "coded", "parent")
        manifest = self.manifests[parent]
        (found,) = [v for v in manifest["variables"] if (v["name"], v["rank"]) == (record["name"], record["rank"])]
        shape = ("element", "len", "frame_dims")
        require([found[field] for field in shape] == [record[field] for field in shape], "parent cut into other frames")
        (before,) = [f for f in manifest["frames"] if of(f, record) and f["run"] == frame["run"]]
        return self.frame(parent, found, before)

    def values(self, record, frame, payload, parent):
        element, dims = record["element"], record["frame_dims"]
        n = dims[0] * dims[1] * dims[2]
        codec = "raw" if frame["storage"] == "raw" else frame["codec"]
        form = f"<{n}{FORMS[SIZES[element]]}"
        if codec == "qb":
            before = struct.unpack(form, parent[0]) if parent else None
            decoder = qb.Frame(payload)
            require(decoder.parent == (parent[1] if parent else bytes(16)), "another parent")
            self.ways.add(f"qb follows {bool(parent)}")
            return struct.pack(form, *decoder.decode(before))
        if codec == "increment":
            decoded, way = increment.decode(payload, element, n, parent)
            self.ways.add(way)
            return decoded
        if payload[:8] == b"RECOUPDX" and codec in ("pco", "zfp", "pyramid"):
            return self.sum(record, frame, payload, parent)
        require(not parent, "a payload that needs no parent has one")
        bound = frame["bound"]
        self.ways.add(f"{codec} {element} {bound if bound == 'lossless' else next(iter(bound))}")
        if codec == "raw":
            require(len(payload) == n * SIZES[element], "length of raw values")
            return payload
        return self.plain(codec, element, (dims, record["stride"], bound), payload)

    def plain(self, codec, element, shape, payload):
        """The values of a payload that follows none."""
        (dims, stride, bound), n = shape, shape[0][0] * shape[0][1] * shape[0][2]
        if codec == "pco":
            decoder = rpco.Payload(payload, element)
            require(decoder.n == n, "number of values")
            patterns, ways = decoder.patterns(dims, stride)
            self.ways |= {f"pco {way}" for way in ways}
            return struct.pack(f"<{n}{FORMS[SIZES[element]]}", *patterns)
        if codec == "pyramid" and payload[:4] == b"RCQB":
            self.ways.add("pyramid as qb")
            return struct.pack(f"<{n}{FORMS[SIZES[element]]}", *qb.Frame(payload).decode(None))
        if codec == "pyramid":
            decoder = pyramid.Frame(payload)
            fields = stride if 1 < stride < 256 and dims[0] % stride == 0 else 1
            require(decoder.dtype == (element == "f32") and decoder.fields == fields, "type and fields")
            require(decoder.grid == [dims[0] // fields, *dims[1:]], "extents")
            self.ways.add(f"pyramid {element} fields {fields}")
            return struct.pack(f"<{n}{FORMS[SIZES[element]]}", *decoder.decode())
        if codec == "zstd":
            return filters.zstd(payload, element, n)
        require(codec == "zfp", f"codec {codec}")
        return filters.zfp(payload, element, dims, bound)

    def sum(self, record, frame, payload, parent):
        """The values of a difference to a parent."""
        version, kind, zeros, digest, bound = struct.unpack_from("<BB6s16sd", payload, 8)
        require(version == 1 and zeros == bytes(6) and kind < 2 and record["element"] == "f64", "header of a difference")
        require((kind == 0 and bound == 0) or (kind == 1 and 0 < bound < float("inf")), "bound of a difference")
        require(parent and digest == parent[1], "another parent")
        self.ways.add(f"{frame['codec']} difference")
        shape = record["frame_dims"], record["stride"], {"absolute": bound} if kind else "lossless"
        difference = self.plain(frame["codec"], "f64", shape, payload[40:])
        n = len(difference) // 8
        pairs = zip(struct.unpack(f"<{n}d", parent[0]), struct.unpack(f"<{n}d", difference))
        return struct.pack(f"<{n}d", *(p + d for p, d in pairs))


def of(frame, record):
    return (frame["variable"], frame["rank"]) == (record["name"], record["rank"])


def check(case):
    """Compares the newest version of a case; says how its frames were coded."""
    (folder,) = [path for path in case.iterdir() if path.name != "expected"]
    run = Run(folder)
    for number in run.versions:
        run.check_files(number)
        for record in run.manifests[number]["variables"]:
            run.variable(number, record)
    newest = max(run.versions)
    expected = {path.name: path.read_bytes() for path in (case / "expected").iterdir()}
    records = run.manifests[newest]["variables"]
    found = {f"{record['rank']}-{record['name']}.bin": run.variable(newest, record) for record in records}
    require(found.keys() == expected.keys(), f"variables {sorted(found)}, {sorted(expected)} expected")
    for name, values in found.items():
        require(values == expected[name], f"{name}: other values than those expected")
    return run.ways


def main(cases):
    for case in cases:
        try:
            ways = check(case)
        except Damaged as damage:
            sys.exit(f"{case}: {damage}")
        for way in sorted(ways):
            print(f"{case.name}: {way}")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([pathlib.Path(argument) for argument in sys.argv[1:]])
