"""Collision meshes, read by the collision library that comes with Pinocchio."""

from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from .collision_shapes import CollisionShape


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


def mesh(shape: CollisionShape) -> Any:
    """Coal's model of a mesh, with its convex hull in ``convex``; shared, not to be changed.

    Raises
    ------
    ModelError
        It cannot be read, or has no volume; names link and file.
    """
    try:
        return _load(str(shape.mesh), Path(str(shape.mesh)).stat().st_mtime_ns, shape.scale)
    except (RuntimeError, ValueError, OSError) as error:
        line = (str(error) or error.__class__.__name__).splitlines()[0]
        raise ModelError(
            f"URDF link '{shape.link}' collision: cannot read mesh '{shape.mesh}' ({line}); replace the file"
        ) from None


def mesh_points(shape: CollisionShape) -> Array:
    """``(V, 3)`` corners of a mesh's convex hull [m], in the frame of the shape.

    Raises
    ------
    ModelError
        See :func:`mesh`.
    """
    return np.array(mesh(shape).convex.points(), dtype=float)


@lru_cache(maxsize=512)
def _load(path: str, _changed: int, scale: tuple[float, float, float]) -> Any:
    coal = collision_library()
    loaded = coal.MeshLoader().load(path, np.array(scale))
    loaded.buildConvexHull(True, "Qt")
    if loaded.convex is None:
        raise ValueError("no convex hull")
    return loaded
