"""Rotor regressor: joint torques linear in the parameters of rotors that are bodies of their own (E VI).

A rotor is a body behind a joint that turns ``ratio`` times as fast as the joint it belongs to. What it takes to move
it there is felt by the joints that carry its bearings and, by the ratio, by its own joint: ``Y = G^T Y_ext(G q)``.
"""

import numpy as np

from ..robot.model import RobotModel
from ..robot.parameters import BODY_PARAMETERS, Array
from .joint_torque import BATCH
from .sweep import PRODUCTS, Sweep
from .wrench import WRENCH_TABLE


def channel_rotors(model: RobotModel, joint: int) -> tuple[int, ...]:
    """Indices of the rotors that a joint's torque depends on."""
    gearing = model.layout.gearing[model.joints :]
    rotors = model.rotor_tree[model.joints :] if len(gearing) else ()
    return tuple(index for index, rotor in enumerate(rotors) if joint in rotor.ancestors or gearing[index, joint])


def channel_rotor_columns(model: RobotModel, joint: int) -> np.ndarray:
    """Columns of the layout of those rotors."""
    first = model.joints
    columns = [np.arange(model.layout.size)[model.layout.body(first + r)] for r in channel_rotors(model, joint)]
    return np.concatenate([np.zeros(0, dtype=int), *columns])


def rotor_regressor(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """``(N, n, 10 r)`` regressor of the joint torques that moving the rotors takes.

    Parameters
    ----------
    q, v, a: ``(N, n)`` position, velocity, acceleration of the joints, in the model's order.
    """
    regressor, out = RotorRegressor(model), np.empty((len(q), model.joints, BODY_PARAMETERS * len(model.layout.rotors)))
    for start in range(0, len(q), BATCH):
        rows = slice(start, start + BATCH)
        motion = (np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))
        out[rows] = regressor.of(*motion).transpose(2, 0, 1)
    return out


def rotor_torque(model: RobotModel, rotors: Array, q: Array, v: Array, a: Array) -> Array:
    """``(N, n)`` joint torques that moving rotors of parameters ``(r, 10)`` takes."""
    torque = np.zeros(np.shape(q))
    if rotors.size == 0:
        return torque
    regressor = RotorRegressor(model)
    for start in range(0, len(torque), BATCH):
        rows = slice(start, start + BATCH)
        motion = (np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))
        torque[rows] = np.einsum("jck,c->kj", regressor.of(*motion), rotors.ravel())
    return torque


class RotorRegressor:
    """Regressor of batches of samples. One object serves one thread."""

    def __init__(self, model: RobotModel) -> None:
        tree, joints = model.rotor_tree, model.joints
        self._gearing = model.layout.gearing
        self._joints, self._rotors = joints, range(joints, len(tree))
        self._needed = sorted({index for rotor in self._rotors for index in tree[rotor].ancestors})
        self._ancestors = [list(tree[rotor].ancestors[:-1]) for rotor in self._rotors]
        self._sweep = Sweep(tree, np.array(model.pinocchio.gravity.linear))
        self._tables = [
            np.einsum("rcz,ck->rkz", WRENCH_TABLE, tree[rotor].turned_parameters).reshape(-1, PRODUCTS)
            for rotor in self._rotors
        ]

    def of(self, q: Array, v: Array, a: Array) -> Array:
        """``(n, 10 r, k)`` from motion ``(n, k)``."""
        out = np.zeros((self._joints, BODY_PARAMETERS * len(self._rotors), q.shape[1]))
        self._sweep.start(*(self._gearing @ channel for channel in (q, v, a)))
        for body in self._needed:
            motions = self._sweep.advance(body)
            if body < self._joints:
                continue
            rotor = body - self._joints
            wrench = (self._tables[rotor] @ self._sweep.products(motions)).reshape(6, BODY_PARAMETERS, -1)
            block = out[:, BODY_PARAMETERS * rotor : BODY_PARAMETERS * (rotor + 1)]
            block[self._ancestors[rotor]] = np.einsum("isk,ick->sck", motions[:, 2:-1], wrench)
            for joint in np.flatnonzero(self._gearing[body]):
                block[joint] += self._gearing[body, joint] * wrench[5]
        return out
