"""Mesh files, read by Coal in a process of its own.

Whoever writes a URDF chooses its meshes, and the libraries that read them crash on some files, loop on others and take
any amount of memory. All of that stays in the other process; what comes back are arrays that have been checked.
"""

import math
import os
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError, ModelError
from inertid_ros.core.worker import Worker, WorkerProcess

_SECONDS = 60  # of processor time for one file; a million triangles take 20
_ALL_S = 300.0  # for all meshes of a robot, however many of them end their process
_MEMORY_MB = 4096  # a million triangles take 1200
_FARTHEST = 1000.0  # m from the link's frame; metres in place of millimetres put a link of an arm as far
_FLAT = 1e-9  # of its size, by which a mesh is thick at least
_KEPT = 512  # meshes, by whoever reads one description after another
_LOOK_S = 0.002


class MeshFile(NamedTuple):
    """A mesh as a URDF names it: path, time of its last change [ns], factors along its axes."""

    path: str
    changed_ns: int
    scale: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Surface and convex hull.

    Attributes
    ----------
    vertices, hull_vertices : ndarray, shape (V, 3), (H, 3)
        Corners [m].
    triangles, hull_triangles : ndarray of int, shape (T, 3), (S, 3)
        Rows of corners.
    """

    vertices: Array
    triangles: NDArray[np.int64]
    hull_vertices: Array
    hull_triangles: NDArray[np.int64]


class Unreadable(NamedTuple):
    """Why there is no mesh, and what to do about it."""

    reason: str
    remedy: str


def collision_library() -> ModuleType:
    """Coal.

    Raises
    ------
    ModelError
        It is not installed.
    """
    try:
        import coal
    except ImportError:
        raise ModelError("meshes and exact distances need coal; install pinocchio with collision support") from None
    return coal


def mesh_file(path: Path, scale: tuple[float, float, float]) -> MeshFile:
    """What tells a mesh from any other; a file that cannot be looked at fails when it is read."""
    try:
        return MeshFile(str(path), path.stat().st_mtime_ns, scale)
    except OSError:
        return MeshFile(str(path), 0, scale)


_read: dict[MeshFile, Mesh | Unreadable] = {}


def read_meshes(files: Iterable[MeshFile]) -> dict[MeshFile, Mesh | Unreadable]:
    """Read meshes, all in one process; one that it does not survive is left out, and another reads on."""
    wanted = list(dict.fromkeys(files))
    out = {file: _read[file] for file in wanted if file in _read}
    missing, end = [file for file in wanted if file not in out], time.monotonic() + _ALL_S
    while missing:
        found = _read_in_process(missing, end)
        out.update(zip(missing, found, strict=False))
        missing = missing[len(found) :]
    _read.update({file: mesh for file, mesh in out.items() if mesh is not _LATE})
    for file in list(_read)[:-_KEPT]:
        del _read[file]
    return out


def _read_in_process(files: Sequence[MeshFile], end: float) -> list[Mesh | Unreadable]:
    """Meshes of the files up to the first that the process does not survive."""
    if time.monotonic() > end:
        return [_LATE] * len(files)
    try:
        process = WorkerProcess(memory_mb=_MEMORY_MB, nice=0)
    except OSError as error:
        return [Unreadable(f"no process can be started to read it: {error.strerror}", "end others")] * len(files)
    worker: Worker[Mesh | Unreadable, None] = Worker(
        "reading meshes", _read_files, (list(files), _SECONDS), end - time.monotonic(), process, reports=len(files)
    )
    try:
        while not worker.poll():
            time.sleep(_LOOK_S)
    finally:
        worker.stop()
    found = list(worker.reports)
    try:
        worker.result()
    except InertidError as error:
        if len(found) < len(files):
            found.append(_why(worker, str(error), end))
    return found


def _why(worker: Worker[Any, Any], error: str, end: float) -> Unreadable:
    """Why a process that had time until ``end`` (monotonic clock) did not get further."""
    if time.monotonic() > end:
        return _LATE
    if worker.ended_by == "SIGXCPU":
        return Unreadable(f"takes longer than {_SECONDS} s of processor time", "simplify it")
    if worker.ended_by:
        return Unreadable(f"its reader ends with {worker.ended_by}", "export it again, as binary STL")
    return Unreadable(error, "replace the file")


def _read_files(files: Sequence[MeshFile], seconds: int, progress: Callable[[Mesh | Unreadable], None]) -> None:
    """In the other process: report one mesh after another, each within so many seconds of processor time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where libraries, and C++ as it aborts, write lines of their own
    for file in files:
        _allow_seconds(seconds)
        try:
            progress(_loaded(file))
        except MemoryError:
            progress(_TOO_LARGE)
            return  # not all of the memory may have been given back


def _allow_seconds(seconds: int) -> None:
    """End this process by SIGXCPU after that much more of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit, hard = math.ceil(used.ru_utime + used.ru_stime) + seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


_LATE = Unreadable(f"all meshes of the robot take longer than {_ALL_S:g} s", "simplify them")
_TOO_LARGE = Unreadable(f"needs more than {_MEMORY_MB} MiB of memory", "simplify it")


def _loaded(file: MeshFile) -> Mesh | Unreadable:
    try:
        coal = collision_library()
        loaded = coal.MeshLoader().load(file.path, np.array(file.scale))
        vertices = np.array(loaded.vertices(), dtype=float).reshape(-1, 3)
        broken = int((~np.isfinite(vertices)).any(axis=1).sum())
        if broken:
            return Unreadable(f"{broken} of its {len(vertices)} corners are not finite", "export it again")
        farthest = float(np.abs(vertices).max(initial=0.0))
        if farthest > _FARTHEST:
            return Unreadable(
                f"it extends to {farthest:.3g} m, and no link to more than {_FARTHEST:g} m",
                'write scale="0.001 0.001 0.001" into its <mesh> if it is in millimetres, or export it again',
            )
        extent = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
        if len(vertices) < 4 or extent[-1] < _FLAT * extent[0]:  # Coal crashes on their hulls
            return Unreadable("it is flat", "give it a thickness, or use a <box>")
        loaded.buildConvexHull(True, "Qt")
        hull = loaded.convex
        return Mesh(
            vertices,
            _corners(loaded.tri_indices, loaded.num_tris),
            np.array(hull.points(), dtype=float),
            _corners(hull.polygons, hull.num_polygons),
        )
    except ModelError as error:
        return Unreadable(*str(error).split("; "))
    except MemoryError:
        raise
    except Exception as error:  # whatever the libraries raise
        if "bad_alloc" in str(error):  # of C++
            raise MemoryError from None
        return Unreadable(_told(str(error)) or error.__class__.__name__, "replace the file")


def _told(text: str) -> str:
    """What a message of Coal says beside its place in the source and the path."""
    lines = text.rpartition("message: ")[2].splitlines()
    return next((line for line in lines if line and not line.startswith("Could not load resource")), "")


def _corners(triangle: Callable[[int], Any], count: int) -> NDArray[np.int64]:
    rows = [(corners[0], corners[1], corners[2]) for corners in map(triangle, range(count))]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
