"""Checks that h5py sees the numbers recoup restores, bit for bit.

usage: h5py_check.py VERSION_DIRECTORY VARIABLE EXPECTED

EXPECTED holds the restored values of all ranks in rank order: an .h5 file with a dataset of the
variable's name, an .npy file, or else raw little-endian values of the dataset's type. The variable
is read through the virtual dataset /variables/VARIABLE of version.h5, through its links
/ranks/R/VARIABLE or /ranks/FIRST-LAST/R/VARIABLE, and from the file the rank's own part is in.
"""

import pathlib
import sys

import h5py
import hdf5plugin  # noqa: F401 - importing it registers zstd and zfp
import numpy


def expected_values(path, name, dtype):
    if path.suffix == ".h5":
        with h5py.File(path, "r") as file:
            return file[name][()].ravel()
    if path.suffix == ".npy":
        return numpy.load(path).ravel()
    return numpy.fromfile(path, dtype=dtype)


def require_same(found, expected, what):
    found, expected = found.ravel(), expected.ravel()
    if found.dtype != expected.dtype or found.size != expected.size:
        sys.exit(f"{what}: {expected.size} of {expected.dtype} expected, {found.size} of {found.dtype} found")
    differs = numpy.flatnonzero(found.view(numpy.uint8) != expected.view(numpy.uint8))
    if differs.size:
        index = int(differs[0]) // found.dtype.itemsize
        sys.exit(f"{what}[{index}]: {expected[index]!r} expected, {found[index]!r} found")


def check(version, name, path):
    with h5py.File(version / "version.h5", "r") as whole:
        dataset = whole["variables"][name]
        expected = expected_values(path, name, dataset.dtype)
        require_same(dataset[()], expected, f"/variables/{name}")
        links = whole["ranks"]
        shared = [key.split("-") for key in links if "-" in key]
        below = {rank: f"{first}-{last}/{rank}" for first, last in shared for rank in range(int(first), int(last) + 1)}
        ranks = range(int(whole.attrs["ranks"]))
        linked = [links[f"{below.get(rank, rank)}/{name}"][()].ravel() for rank in ranks]
    parts = []
    for file_path in sorted(version.glob("rank*-*.h5")):
        with h5py.File(file_path, "r") as file:
            for rank in sorted(file["ranks"], key=int):
                part = file[f"ranks/{rank}/{name}"]
                parts.append(part[()].ravel())
                filters = part.id.get_create_plist()
                filters = [filters.get_filter(i)[0] for i in range(filters.get_nfilters())]
                attributes = {key: part.attrs[key] for key in ("role", "codec", "bound", "achieved_error", "iteration")}
                print(f"rank {rank}: shape {part.shape}, chunks {part.chunks}, filters {filters}, {attributes}")
    distributed = expected.size == sum(part.size for part in parts)
    for what, found in (("links", linked), ("rank files", parts)):
        joined = numpy.concatenate(found) if distributed else found[0]
        require_same(joined, expected, f"{what} of {name}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    check(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]))
