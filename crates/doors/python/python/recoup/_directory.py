"""Versions of a directory, for inspection."""

from __future__ import annotations

import os
from collections.abc import Iterator

from . import _native
from ._errors import named
from ._native import Error, Version


class Directory:
    """The versions of one run in a checkpoint directory.

    Read-only: it takes no lock, and a run may continue writing there. Index it by iteration, iterate over it oldest first.
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        with named("directory"):
            self._native = _native.Directory(os.fspath(path), name)

    @property
    def path(self) -> str:
        """The directory."""
        return str(self._native.path)

    @property
    def name(self) -> str:
        """The run."""
        return self._native.name

    @property
    def versions(self) -> list[Version]:
        """The current versions, oldest first, damaged ones included."""
        return self._native.versions()

    @property
    def latest(self) -> Version:
        """The newest version; not necessarily a whole one, see `Version.verify`.

        Raises `Error` if there is none.
        """
        versions = self.versions
        if not versions:
            raise Error(f"{self.path}: run {self.name} has no version")
        return versions[-1]

    @property
    def set_aside(self) -> list[str]:
        """Versions that were put aside: damaged ones, and those newer than one that was restored."""
        return self._native.set_aside()

    def verify(self) -> dict[int, list[str]]:
        """Reads, checks and decodes everything. Maps the iteration of each damaged version to its damage, one line each."""
        found = {version.iteration: version.verify() for version in self.versions}
        return {iteration: damage for iteration, damage in found.items() if damage}

    def __getitem__(self, iteration: int) -> Version:
        versions = self.versions
        for version in versions:
            if version.iteration == iteration:
                return version
        known = ", ".join(str(version.iteration) for version in versions) or "none"
        raise Error(f"there is no version {iteration}: there are {known}")

    def __iter__(self) -> Iterator[Version]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    def __repr__(self) -> str:
        return f"Directory({self.path!r}, name={self.name!r}, versions={[v.iteration for v in self.versions]})"


def open(path: str | os.PathLike[str], name: str | None = None) -> Directory:
    """Opens a checkpoint directory to look at it.

    Parameters
    ----------
    path: the directory that `Session` or `recoup run --dir` was given.
    name: the run inside it; the only one if none is named.

    Raises `Error` when the directory holds no versions, or those of several runs and none is named.
    """
    return Directory(path, name)
