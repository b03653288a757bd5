"""Equations of segments: the external wrench that moves bodies whose motion is each measured (C 3.6.3).

``sum of external wrenches = sum over segments of Y_b x_b``, whatever holds the segments together: the base rows of a
floating base, from the segments' own motion instead of joint angles.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.kinematics.chain import cross
from inertid_ros.kinematics.floating import rotations
from inertid_ros.kinematics.sweep import BATCH, PRODUCTS
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel

from .equations import Equations, RowWriter

CHANNELS = tuple(f"{kind}_{axis}" for kind in ("force", "torque") for axis in "xyz")


class SegmentEquations(Equations):
    """Force and torque about the origin of the first segment, in the axes of the world.

    Samples of ``nb`` segments hold ``q (N, 7 nb)`` poses, ``v, a (N, 6 nb)`` twists and their derivatives, each in the
    segment's own frame as those of a free base, and ``tau (N, 6)``; see :func:`segment_samples`.
    """

    kind = "segments"

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.channels = CHANNELS
        self.columns = (np.arange(model.layout.size),) * len(CHANNELS)
        self.joint_channels = slice(0, 0)
        self.optional = True

    def writer(self) -> "SegmentWriter":
        return SegmentWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        self.check(samples)
        writer, out = self.writer(), np.empty((len(samples), len(CHANNELS)))
        for start in range(0, len(samples), BATCH):
            rows = slice(start, min(start + BATCH, len(samples)))
            block = np.zeros((len(CHANNELS), writer.width, rows.stop - start))
            writer.write(samples, rows, block)
            out[rows] = np.einsum("cpk,p->kc", block[:, :-1], parameters)
        return out


class SegmentWriter(RowWriter):
    """All ten columns of every segment."""

    def __init__(self, equations: SegmentEquations) -> None:
        size = equations.model.layout.size
        self.spans, self.expansions = (slice(0, size + 1),) * len(CHANNELS), (np.eye(size),) * len(CHANNELS)
        self._gravity = np.array(equations.model.options.gravity)
        self._bodies = len(equations.model.link_names)

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        q, v, a = samples.q[rows], samples.v[rows], samples.a[rows]
        table = WRENCH_TABLE.reshape(-1, PRODUCTS)
        for body in range(self._bodies):
            pose, twist = q[:, 7 * body : 7 * body + 7], v[:, 6 * body : 6 * body + 6]
            rotation = np.moveaxis(rotations(pose[:, 3:]), 2, 0)
            linear = a[:, 6 * body : 6 * body + 3] - self._gravity @ rotation
            angular, w = a[:, 6 * body + 3 : 6 * body + 6], twist[:, 3:]
            linear = linear + cross(w, twist[:, :3])
            squares = [w[:, i] * w[:, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
            products = np.column_stack([linear, angular, *squares])
            wrench = (table @ products.T).reshape(6, BODY_PARAMETERS, -1)
            force, torque = (np.einsum("kij,jck->kci", rotation, part) for part in (wrench[:3], wrench[3:]))
            torque = torque + cross((pose[:, :3] - q[:, :3])[:, None], force)
            columns = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
            out[:3, columns], out[3:, columns] = force.transpose(2, 1, 0), torque.transpose(2, 1, 0)
