"""Rotor regressor: joint torques linear in the parameters of rotors as bodies ([Wensing2018]_ sec. VI).

A rotor is a body behind a joint that turns ``ratio`` times as fast as the joint it belongs to. The force that moves it
acts on the joints before its bearings and, by the ratio, on its own joint: ``Y = G^T Y_ext(G q)``.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.kinematics.body_recursion import PRODUCTS, TRANSLATIONS, BodyRecursion
from inertid_ros.kinematics.tree_kinematics import batches
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import path


def channel_rotors(model: RobotModel, velocity: int) -> tuple[int, ...]:
    """Indices of the rotors that a row of the generalized force depends on."""
    links, joint = len(model.link_names), velocity - 6 * model.free
    rotors = model.rotor_tree[links:] if model.layout.rotors else ()
    gearing = model.layout.gearing[model.joints :]
    return tuple(
        index
        for index, rotor in enumerate(rotors)
        if velocity in rotor.ancestors or (joint >= 0 and gearing[index, joint])
    )


def channel_rotor_columns(model: RobotModel, velocity: int) -> np.ndarray:
    """Columns of the layout of those rotors."""
    first = len(model.link_names)
    columns = [np.arange(model.layout.size)[model.layout.body(first + r)] for r in channel_rotors(model, velocity)]
    return np.concatenate([np.zeros(0, dtype=int), *columns])


def rotor_torque(model: RobotModel, rotors: Array, q: Array, v: Array, a: Array) -> Array:
    """``(N, nv)`` generalized force that moves rotors of parameters ``(r, 10)``."""
    torque = np.zeros(np.shape(v))
    if rotors.size == 0:
        return torque
    regressor = RotorRegressor(model)
    for rows in batches(len(torque)):
        motion = (np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))
        torque[rows] = np.einsum("jck,c->kj", regressor.of(*motion), rotors.ravel())
    return torque


class RotorRegressor:
    """Regressor of batches of samples. One object serves one thread."""

    def __init__(self, model: RobotModel) -> None:
        tree, links = model.rotor_tree, len(model.link_names)
        self._gearing = model.layout.gearing
        self._base, self._joints = model.velocities - model.joints, model.joints
        self._links, self._rotors = links, range(links, len(tree))
        self._needed = sorted({body for rotor in self._rotors for body in path(tree, rotor)})
        self._forces = TRANSLATIONS * bool(self._base)
        self._ancestors = [list(tree[rotor].ancestors[self._forces : -1]) for rotor in self._rotors]
        self._recursion = BodyRecursion(tree, model.pinocchio.gravity.linear)
        self._tables = [
            np.einsum("rcz,ck->rkz", WRENCH_TABLE, tree[rotor].turned_parameters).reshape(-1, PRODUCTS)
            for rotor in self._rotors
        ]

    def of(self, q: Array, v: Array, a: Array) -> Array:
        """``(nv, 10 r, k)`` from motion ``(nq, k)``, ``(nv, k)``."""
        out = np.zeros((len(v), BODY_PARAMETERS * len(self._rotors), q.shape[1]))
        self._recursion.start(*map(self._geared, (q, v, a)))
        for body in self._needed:
            motions = self._recursion.advance(body)
            if body < self._links:
                continue
            rotor = body - self._links
            wrench = (self._tables[rotor] @ self._recursion.products(motions)).reshape(6, BODY_PARAMETERS, -1)
            block = out[:, BODY_PARAMETERS * rotor : BODY_PARAMETERS * (rotor + 1)]
            block[: self._forces] = np.einsum("isk,ick->sck", motions[3:, 2 : 2 + self._forces], wrench[:3])
            block[self._ancestors[rotor]] = np.einsum("isk,ick->sck", motions[:, 2:-1], wrench)
            gearing = self._gearing[self._joints + rotor]
            for joint in np.flatnonzero(gearing):
                block[self._base + joint] += gearing[joint] * wrench[5]
        return out

    def _geared(self, motion: Array) -> Array:
        """Motion of base and joints to that of base, joints and rotors."""
        base, joints = motion[: len(motion) - self._joints], motion[len(motion) - self._joints :]
        return np.vstack([base, self._gearing @ joints])
