"""Mesh files of a URDF: find the files, and read their surfaces with Coal in another process.

Mesh files are untrusted: the libraries that read meshes crash on some files, loop on other files and take any amount of
memory. Such failures end only the other process, which returns checked arrays.
"""

import math
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from inertid_ros.core.arrays import Array, IntArray
from inertid_ros.core.errors import InertidError, ModelError, optional_module
from inertid_ros.core.worker import Worker, WorkerProcess

_CACHE_VARIABLE = "ROBOT_DESCRIPTIONS_CACHE"
_SCHEMES = ("package://", "model://", "file://")
_SECONDS = 60  # of processor time for one file; a million triangles take 20
_ALL_S = 300.0  # for all meshes of a robot, even if many meshes end the process
_MEMORY_MB = 4096  # a million triangles take 1200
_READER_POLL_S = 0.002
_FARTHEST = 1000.0  # m from the link's frame; a mesh in millimetres, read as metres, exceeds this for a link of an arm
_MIN_THICKNESS_RATIO = 1e-9  # of the size of a mesh
_MAX_CACHED_MESHES = 512  # for processes that read many descriptions


def locate_mesh(filename: str, where: str, packages: Sequence[str] = (), urdf_folder: Path | None = None) -> Path:
    """Find the file of a mesh URL; ModelError if it does not exist.

    The search order is: the given folders, the folders above the URDF, ``AMENT_PREFIX_PATH`` and ``ROS_PACKAGE_PATH``,
    and the cache of the Python package ``robot_descriptions``. A folder above the URDF counts as the folder of the
    package even if it has another name, such as the name of a cloned repository.

    Parameters
    ----------
    filename : URL with ``package://``, ``model://`` or ``file://``, or a path, which may be relative to the URDF.
    where : element of the URDF, for the message.
    packages : folders of packages, or folders that contain packages.
    urdf_folder : folder of the URDF, if the URDF is a file.
    """
    for name in dict.fromkeys((filename, unquote(filename))):
        for candidate in _candidates(name, packages, urdf_folder):
            if os.path.isfile(candidate):  # False also for an impossible name
                return candidate
    raise ModelError(
        f"{where}: mesh '{filename}' is not found in folders above the URDF, folders of ROS, or mesh_folders; name"
        " the folder that holds its package with excitation.collision.mesh_folders (--set"
        " excitation.collision.mesh_folders=[FOLDER])")


def _candidates(name: str, packages: Sequence[str], urdf_folder: Path | None) -> Iterator[Path]:
    scheme = next((scheme for scheme in _SCHEMES if name.startswith(scheme)), "")
    above = () if urdf_folder is None else (urdf_folder, *urdf_folder.parents)
    path = name.removeprefix(scheme)
    if scheme in ("", "file://"):
        yield from (folder / path for folder in above[:1])  # an absolute path replaces the folder
        yield Path(path)
        yield from (folder / path for folder in above[1:])
        return
    inside = Path(path.lstrip("/"))
    if not inside.parts:  # nothing after the scheme
        return
    inner = Path(*inside.parts[1:])
    yield from (base / inside for folder in packages for base in (Path(folder), Path(folder).parent))
    yield from (folder / inside for folder in above)
    yield from (folder / "share" / inside for folder in _paths("AMENT_PREFIX_PATH"))
    for folder in _paths("ROS_PACKAGE_PATH"):
        yield folder / inside
        if folder.name == inside.parts[0]:
            yield folder / inner
    yield from (folder / inner for folder in above)
    yield from (folder / inner for folder in map(Path, packages))
    yield from (folder / inner for folder in _cached(inside.parts[0]))


def _paths(variable: str) -> list[Path]:
    return [Path(path) for path in os.environ.get(variable, "").split(os.pathsep) if path]


def _cached(package: str) -> Iterator[Path]:
    """Folders named ``package``, at most three levels deep, in the cache of ``robot_descriptions``."""
    cache = Path(os.environ.get(_CACHE_VARIABLE) or Path.home() / ".cache" / "robot_descriptions").expanduser()
    if cache.is_dir():
        for depth in ("*", "*/*", "*/*/*"):
            yield from sorted(folder for folder in cache.glob(depth) if folder.name == package)


class MeshFile(NamedTuple):
    """Identity of a mesh in a URDF: path, time of the file's last change [ns], and factors along the axes."""

    path: str
    changed_ns: int
    scale: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Surface and convex hull.

    Attributes
    ----------
    vertices, hull_vertices : (V, 3), (H, 3), points [m].
    triangles, hull_triangles : int (T, 3), (S, 3), indices of the three vertices.
    """

    vertices: Array
    triangles: IntArray
    hull_vertices: Array
    hull_triangles: IntArray


class Unreadable(NamedTuple):
    """Reason why a mesh cannot be read, and remedy."""

    reason: str
    remedy: str


def collision_library() -> ModuleType:
    """Coal; ModelError if it is not installed."""
    missing = ModelError("meshes and exact distances need coal; install pinocchio with collision support")
    return optional_module("coal", missing)


def mesh_file(path: Path, scale: tuple[float, float, float]) -> MeshFile:
    """Identity of a mesh; if the file's status is not available, the error follows when the file is read."""
    try:
        return MeshFile(str(path), path.stat().st_mtime_ns, scale)
    except OSError:
        return MeshFile(str(path), 0, scale)


_read: dict[MeshFile, Mesh | Unreadable] = {}


def read_meshes(files: Iterable[MeshFile]) -> dict[MeshFile, Mesh | Unreadable]:
    """Read all meshes in another process; a mesh that ends it is unreadable, and a new process reads the rest."""
    requested = list(dict.fromkeys(files))
    out = {file: _read[file] for file in requested if file in _read}
    missing, end = [file for file in requested if file not in out], time.monotonic() + _ALL_S
    while missing:
        meshes = _read_in_process(missing, end)
        out.update(zip(missing, meshes, strict=False))
        missing = missing[len(meshes) :]
    _read.update({file: mesh for file, mesh in out.items() if mesh is not _LATE})
    for file in list(_read)[:-_MAX_CACHED_MESHES]:
        del _read[file]
    return out


def _read_in_process(files: Sequence[MeshFile], end: float) -> list[Mesh | Unreadable]:
    """Meshes up to and including the first mesh that ends the process."""
    if time.monotonic() > end:
        return [_LATE] * len(files)
    try:
        process = WorkerProcess(memory_mb=_MEMORY_MB, nice=0)
    except OSError as error:
        return [Unreadable(f"a process to read it cannot be started: {error.strerror}", "end processes")] * len(files)
    worker: Worker[Mesh | Unreadable, None] = Worker(
        "reading meshes", _read_files, (list(files), _SECONDS), end - time.monotonic(), process, reports=len(files))
    worker.wait(_READER_POLL_S)
    meshes = list(worker.reports)
    try:
        worker.result()
    except InertidError as error:
        if len(meshes) < len(files):
            meshes.append(_failure(worker, str(error), end))
    return meshes


def _failure(worker: Worker[Any, Any], error: str, end: float) -> Unreadable:
    """Reason why the reading process has ended; its time is up at ``end`` (monotonic clock)."""
    if time.monotonic() > end:
        return _LATE
    if worker.ended_by == "SIGXCPU":
        return Unreadable(f"takes longer than {_SECONDS} s of processor time", "simplify it")
    if worker.ended_by:
        return Unreadable(f"its reader ends with {worker.ended_by}", "export it again, as binary STL")
    return Unreadable(error, "replace the file")


def _read_files(files: Sequence[MeshFile], seconds: int, progress: Callable[[Mesh | Unreadable], None]) -> None:
    """Run in the other process: report one mesh after another, each within ``seconds`` of processor time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries, and C++ when it aborts, write to stderr
    for file in files:
        _allow_seconds(seconds)
        try:
            progress(_loaded(file))
        except MemoryError:
            progress(_TOO_LARGE)
            return  # the memory may still be occupied


def _allow_seconds(seconds: int) -> None:
    """End this process by SIGXCPU after ``seconds`` more of processor time."""
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
        if broken := int((~np.isfinite(vertices)).any(axis=1).sum()):
            return Unreadable(f"{broken} of its {len(vertices)} corners are not finite", "export it again")
        farthest = float(np.abs(vertices).max(initial=0.0))
        if farthest > _FARTHEST:
            remedy = 'write scale="0.001 0.001 0.001" into its <mesh> if it is in millimetres, or export it again'
            return Unreadable(f"it extends to {farthest:.3g} m, more than any link ({_FARTHEST:g} m)", remedy)
        extent = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
        if len(vertices) < 4 or extent[-1] < _MIN_THICKNESS_RATIO * extent[0]:  # Coal crashes on flat hulls
            return Unreadable("it is flat", "give it a thickness, or use a <box>")
        loaded.buildConvexHull(True, "Qt")
        hull = loaded.convex
        return Mesh(
            vertices, _corners(loaded.tri_indices, loaded.num_tris), np.array(hull.points(), dtype=float),
            _corners(hull.polygons, hull.num_polygons))
    except ModelError as error:
        return Unreadable(*str(error).split("; "))
    except MemoryError:
        raise
    except Exception as error:  # the libraries raise errors of any type
        if "bad_alloc" in str(error):  # from C++
            raise MemoryError from None
        return Unreadable(_reason(str(error)) or error.__class__.__name__, "replace the file")


def _reason(text: str) -> str:
    """Error message of Coal without its source location and the path of the mesh."""
    lines = text.rpartition("message: ")[2].splitlines()
    return next((line for line in lines if line and not line.startswith("Could not load resource")), "")


def _corners(triangle: Callable[[int], Any], count: int) -> IntArray:
    rows = [(corners[0], corners[1], corners[2]) for corners in map(triangle, range(count))]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
