"""Files behind the mesh URLs of a URDF: where vendors, workspaces and caches keep them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from inertid_ros.core.errors import ModelError

_CACHE = "ROBOT_DESCRIPTIONS_CACHE"
_SCHEMES = ("package://", "model://", "file://")


def locate_mesh(filename: str, where: str, packages: Sequence[str] = (), urdf_folder: Path | None = None) -> Path:
    """The file behind a mesh's URL.

    Looked through are, in this order, the given folders, the folders above the URDF, ``AMENT_PREFIX_PATH`` and
    ``ROS_PACKAGE_PATH``, and the cache of the Python package ``robot_descriptions``. Above the URDF a folder counts as
    the package's also under another name, as that of a cloned repository has it.

    Parameters
    ----------
    filename : str
        ``package://``, ``model://`` or ``file://`` URL, or a path, which may be relative to the URDF.
    where : str
        Element of the URDF, for the message.
    packages : sequence of str
        Folders of packages, or folders that hold them.
    urdf_folder : Path, optional
        Folder of the URDF, where it came from a file.

    Raises
    ------
    ModelError
        It is not found.
    """
    for name in dict.fromkeys((filename, unquote(filename))):
        for candidate in _candidates(name, packages, urdf_folder):
            if _is_file(candidate):
                return candidate
    raise ModelError(
        f"{where}: mesh '{filename}' is not found in folders above the URDF, those of ROS, or mesh_folders; name the"
        " folder that holds its package with excitation.collision.mesh_folders (--set"
        " excitation.collision.mesh_folders=[FOLDER])"
    )


def _candidates(name: str, packages: Sequence[str], urdf_folder: Path | None) -> Iterator[Path]:
    scheme = next((scheme for scheme in _SCHEMES if name.startswith(scheme)), "")
    above = () if urdf_folder is None else (urdf_folder, *urdf_folder.parents)
    path = name.removeprefix(scheme)
    if scheme in ("", "file://"):
        yield from (folder / path for folder in above[:1])  # an absolute path stands for itself
        yield Path(path)
        yield from (folder / path for folder in above[1:])
        return
    inside = Path(path.lstrip("/"))
    if not inside.parts:  # only the scheme
        return
    own = Path(*inside.parts[1:])
    yield from (base / inside for folder in packages for base in (Path(folder), Path(folder).parent))
    yield from (folder / inside for folder in above)
    yield from (folder / "share" / inside for folder in _paths("AMENT_PREFIX_PATH"))
    for folder in _paths("ROS_PACKAGE_PATH"):
        yield folder / inside
        if folder.name == inside.parts[0]:
            yield folder / own
    yield from (folder / own for folder in above)
    yield from (folder / own for folder in map(Path, packages))
    yield from (folder / own for folder in _cached(inside.parts[0]))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or holds NUL
        return False


def _paths(variable: str) -> list[Path]:
    return [Path(path) for path in os.environ.get(variable, "").split(os.pathsep) if path]


def _cached(package: str) -> Iterator[Path]:
    """Folders of this name, up to three deep, in the cache of ``robot_descriptions``."""
    cache = Path(os.environ.get(_CACHE) or Path.home() / ".cache" / "robot_descriptions").expanduser()
    if cache.is_dir():
        for depth in ("*", "*/*", "*/*/*"):
            yield from sorted(folder for folder in cache.glob(depth) if folder.name == package)
