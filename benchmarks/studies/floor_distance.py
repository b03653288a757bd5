"""Distance of a moving robot from a floor, by Pinocchio's own model of its shapes and Coal, at 1 kHz.

Independent of the package's kinematics, shapes and distances.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.excitation.plan import Plan

RATE_HZ = 1000.0


@dataclass(frozen=True)
class Closest:
    """Smallest distance [m] and its instant [s], and the largest distance [m]."""

    distance: float
    time: float
    farthest: float


def closest_to_floor(
    urdf: Path, packages: Path, plan: Plan, locked: Mapping[str, float], floor: float
) -> dict[tuple[str, int], Closest]:
    """Smallest distance of every shape of a moving link from the floor, by link and number of the shape.

    Parameters
    ----------
    packages : Path
        Folder of the packages with meshes.
    locked : mapping of str to float
        Positions of joints that do not move [rad or m].
    floor : float
        Height in the root frame [m].
    """
    model = pin.buildModelFromUrdf(str(urdf))
    shapes = pin.buildGeomFromUrdf(model, str(urdf), pin.GeometryType.COLLISION, package_dirs=[str(packages)])
    moving = {model.getJointId(name) for name in plan.joint_names}
    chosen = [
        (index, model.frames[shape.parentFrame].name, _convex(shape.geometry))
        for index, shape in enumerate(shapes.geometryObjects)
        if moving & set(model.supports[shape.parentJoint])
    ]
    data, places, plane = model.createData(), shapes.createData(), coal.Halfspace(np.array([0.0, 0.0, 1.0]), floor)
    request, answer, at_floor = coal.DistanceRequest(), coal.DistanceResult(), coal.Transform3s()
    mimics, closest = _mimics(urdf), dict[tuple[str, int], Closest]()
    times = np.arange(0.0, plan.duration, 1 / RATE_HZ)
    for time, position in zip(times, plan.curve.sample(times)[0], strict=True):
        values = {**locked, **dict(zip(plan.joint_names, position, strict=True))}
        values |= {name: factor * values.get(of, 0.0) + offset for name, (of, factor, offset) in mimics.items()
                   if name not in plan.joint_names}  # fmt: skip
        pin.updateGeometryPlacements(model, data, shapes, places, _configuration(model, values))
        for index, link, convex in chosen:
            place = places.oMg[index]
            answer.clear()
            distance = coal.distance(
                convex, coal.Transform3s(place.rotation, place.translation), plane, at_floor, request, answer
            )
            before = closest.get((link, index), Closest(np.inf, 0.0, -np.inf))
            nearest, instant = min((before.distance, before.time), (distance, float(time)))
            closest[link, index] = Closest(nearest, instant, max(before.farthest, distance))
    return closest


def _convex(geometry: coal.CollisionGeometry) -> coal.CollisionGeometry:
    if isinstance(geometry, coal.BVHModelBase):
        geometry.buildConvexHull(True, "Qt")
        return geometry.convex
    return geometry


def _configuration(model: pin.Model, values: Mapping[str, float]) -> np.ndarray:
    q = pin.neutral(model)
    for name, value in values.items():
        if model.existJointName(name):
            joint = model.joints[model.getJointId(name)]
            q[joint.idx_q : joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
    return q


def _mimics(urdf: Path) -> dict[str, tuple[str, float, float]]:
    found = {}
    for joint in etree.parse(str(urdf)).iterfind("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            found[joint.get("name")] = (
                mimic.get("joint"), float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            )  # fmt: skip
    return found
