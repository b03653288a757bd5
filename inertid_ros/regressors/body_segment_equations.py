"""Equations of body segments: the external wrench that moves bodies whose motion is each measured.

``sum of external wrenches = sum over segments of Y_b x_b`` ([Lee2019]_ eq. 3.6.3), whatever holds the segments
together: the base rows of a floating base, from the segments' own motion instead of joint angles.
"""

from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross, rotation_matrices
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE, wrench_products
from inertid_ros.kinematics.spatial import turned_forces
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel

from .equations import Equations, RowWriter, dense_equations

CHANNELS = tuple(f"{quantity}_{axis}" for quantity in ("force", "torque") for axis in "xyz")


class BodySegmentEquations(Equations):
    """Force and torque about the origin of the first segment, in the axes of the world.

    Samples of ``nb`` segments hold ``q (N, 7 nb)`` poses, ``v, a (N, 6 nb)`` twists and their derivatives, each in the
    segment's own frame as those of a free base, and ``tau (N, 6)``; see :func:`~.segment_samples`.
    """

    equation_type = "segments"
    quantity = ("wrench", "N or N m")

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.channels = CHANNELS
        self.columns = (np.arange(model.layout.size),) * len(CHANNELS)
        self.joint_channels = slice(0, 0)
        self.optional = True

    def writer(self) -> "BodySegmentWriter":
        """Writer of all ten columns of every segment."""
        return BodySegmentWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, 6)`` wrench that moves the segments [N, N m]."""
        every = replace(samples, mask=np.ones_like(samples.mask))
        chunks = [[rows @ parameters for rows, _ in chunk] for chunk in dense_equations(self, every)]
        return np.hstack(chunks).T


class BodySegmentWriter(RowWriter):
    """All ten columns of every segment."""

    def __init__(self, equations: BodySegmentEquations) -> None:
        size = equations.model.layout.size
        self.spans, self.expansions = (slice(0, size + 1),) * len(CHANNELS), (np.eye(size),) * len(CHANNELS)
        self._gravity = np.array(equations.model.options.gravity)
        self._bodies = len(equations.model.link_names)

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Fill ``out (6, 10 nb, k)`` for ``k`` rows of samples."""
        q, v, a = samples.q[rows], samples.v[rows], samples.a[rows]
        table = WRENCH_TABLE.reshape(6 * BODY_PARAMETERS, -1)
        for body in range(self._bodies):
            pose, twist = q[:, 7 * body : 7 * body + 7], v[:, 6 * body : 6 * body + 6]
            placement = np.tile(np.eye(4), (len(q), 1, 1))
            placement[:, :3, :3], placement[:, :3, 3] = rotation_matrices(pose[:, 3:]), pose[:, :3] - q[:, :3]
            w, at_origin = twist[:, 3:], a[:, 6 * body : 6 * body + 3] - self._gravity @ placement[:, :3, :3]
            at_origin = at_origin + cross(w, twist[:, :3])
            products = wrench_products(at_origin, a[:, 6 * body + 3 : 6 * body + 6], w)
            wrench = (products @ table.T).reshape(-1, 6, BODY_PARAMETERS)
            columns = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
            out[:, columns] = turned_forces(placement, wrench).transpose(1, 2, 0)
