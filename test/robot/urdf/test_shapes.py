"""Capsules contain the shapes that they stand for."""

import numpy as np
import pytest
from support.robots.mesh_texts import CUBE

from inertid_ros.robot.urdf.meshes import Mesh
from inertid_ros.robot.urdf.shapes import CollisionShape, shape_capsules

# Its longest principal axis is so oblique that the middle of its box lies beyond all of it along another one.
SPIKE = 0.05 * np.array([[1, -1, 0], [-1, -1, 40], [-1, -1, 0], [1, -1, 4], [-1, 1, 0], [-1, 1, 4]])


def random_corners(seed):
    rng, points = np.random.default_rng(seed), CUBE.copy()
    points[rng.integers(8)] += rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2.5)
    return points


@pytest.mark.parametrize("points", [SPIKE, *map(random_corners, range(20))])
def test_capsules_contain_all_corners_of_a_mesh(points):
    none = np.zeros((0, 3), dtype=int)
    capsules = shape_capsules(CollisionShape("a", 0, np.eye(4), "mesh", surface=Mesh(points, none, points, none)))
    gaps = []
    for capsule in capsules:
        axis = capsule.end - capsule.start
        along = np.clip((points - capsule.start) @ axis / max(float(axis @ axis), 1e-30), 0, 1)
        gaps.append(np.linalg.norm(points - capsule.start - along[:, None] * axis, axis=1) - capsule.radius)
    assert (np.min(gaps, axis=0) < 1e-9).all()
