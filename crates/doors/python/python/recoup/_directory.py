"""Versions of a directory, for inspection."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import escape
from operator import index
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._errors import NotFoundError, NoVersionError, named, needed
from ._native import Version

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


class Directory:
    """The versions of one run in a checkpoint directory.

    Read-only: it takes no lock, and a run may continue writing there. Index it by iteration, iterate over it oldest first.
    ``versions[-1]`` is the newest, ``versions[0]`` the oldest if no version is of iteration 0; slices go by position.
    """

    def __init__(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        with named("directory"):
            place = os.fspath(path)
            if not os.path.isdir(place):
                raise NotFoundError(f"there is no directory {place}")
            self._native = _native.Directory(place, name)

    def __reduce__(self) -> tuple[type[Directory], tuple[str, str]]:
        return Directory, (self.path, self.name)

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

        Raises `NoVersionError` if there is none.
        """
        versions = self.versions
        if not versions:
            raise NoVersionError(f"{self.path}: run {self.name} has no version")
        return versions[-1]

    @property
    def set_aside(self) -> list[str]:
        """Versions that were put aside: damaged ones, and those newer than one that was restored."""
        return self._native.set_aside()

    def verify(self) -> dict[int, list[str]]:
        """Reads, checks and decodes everything. Maps the iteration of each damaged version to its damage, one line each."""
        found = {version.iteration: version.verify() for version in self.versions}
        return {iteration: damage for iteration, damage in found.items() if damage}

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns what is known of each version, oldest first, for ``json.dumps`` or a table."""
        return [_row(version) for version in self.versions]

    def to_pandas(self) -> pandas.DataFrame:
        """Returns `to_dict` as a pandas table by iteration."""
        with needed("pandas", "to_pandas"):
            import pandas
        return pandas.DataFrame(self.to_dict(), columns=_COLUMNS).set_index("iteration")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the residual norms of the versions over their iterations with matplotlib.

        Parameters
        ----------
        ax: the axes to draw the residual norms on; new ones when None.
        """
        with needed("matplotlib", "plot"):
            from matplotlib import pyplot
        rows = [row for row in self.to_dict() if row["damage"] is None]
        if not rows:
            raise NoVersionError(f"{self.path}: run {self.name} has no whole version to plot")
        axes = pyplot.subplots()[1] if ax is None else ax
        at = [row["iteration"] for row in rows]
        axes.semilogy(at, [row["residual_norm"] for row in rows], "o-", label="residual norm ||r||")
        measured = [(row["iteration"], row["verified_residual_norm"]) for row in rows if row["verified_residual_norm"]]
        if measured:
            axes.semilogy(*zip(*measured), "x", label="of what is restored")
        axes.set(xlabel="iteration", ylabel="residual norm", title=f"versions of run {self.name}")
        axes.legend()
        return axes

    def _repr_html_(self) -> str:
        return as_html(repr(self), _COLUMNS, self.to_dict())

    @overload
    def __getitem__(self, iteration: int) -> Version: ...

    @overload
    def __getitem__(self, iteration: slice) -> list[Version]: ...

    def __getitem__(self, iteration: int | slice) -> Version | list[Version]:
        versions = self.versions
        if isinstance(iteration, slice):
            return versions[iteration]
        with named("version"):
            iteration = index(iteration)
        for version in versions:
            if version.iteration == iteration:
                return version
        if -len(versions) <= iteration < min(1, len(versions)):
            return versions[iteration]
        known = ", ".join(str(version.iteration) for version in versions) or "none"
        raise NoVersionError(f"there is no version {iteration}: there are {known}")

    def __iter__(self) -> Iterator[Version]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)

    def __repr__(self) -> str:
        return f"Directory({self.path!r}, name={self.name!r}, versions={[v.iteration for v in self.versions]})"


_COLUMNS = [
    "iteration",
    "scheme",
    "resume",
    "bound",
    "residual_norm",
    "verified_residual_norm",
    "achieved_error",
    "raw_bytes",
    "payload_bytes",
    "ratio",
    "parents",
    "damage",
]


def _row(version: Version) -> dict[str, Any]:
    """What is known of a version: of one with a damaged manifest, the iteration and the damage."""
    known = ("iteration", "damage") if version.damage else _COLUMNS
    return {name: getattr(version, name) if name in known else None for name in _COLUMNS}


def as_html(caption: str, columns: list[str], rows: list[dict[str, Any]]) -> str:
    """Returns a table for a notebook."""
    head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in columns) + "</tr>" for row in rows)
    return f"<p>{escape(caption)}</p><table><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    # A bound such as absolute:1.8520750361676424e-2, to three digits.
    return "" if value is None else escape(re.sub(r"(\d\.\d\d)\d+", r"\1", str(value)))


def open(path: str | os.PathLike[str], name: str | None = None) -> Directory:
    """Opens a checkpoint directory to look at it.

    Parameters
    ----------
    path: the directory that `Session` or `recoup run --dir` was given.
    name: the run inside it; the only one if none is named.

    Raises `NotFoundError` when there is no such directory; `UsageError` when it holds no versions, or those of several
    runs and none is named.
    """
    return Directory(path, name)
