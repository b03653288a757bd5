"""Equations of force: joint torques, and on a free base also the wrench that moves the whole robot.

The equations are the rows of the inverse dynamics ``Y x = S^T tau + sum J_c^T f_c`` ([Lee2019]_ eq. 3.2.13;
[vanDerGaag2024]_ eqs. 10-14). Base rows contain external wrenches but no joint torques; the row of a joint contains
external wrenches only if a contact lies behind the joint.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.robot.contacts import on_ground, turn_base_rows
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

from . import drive_regressor as drives
from . import rigid_body_regressor as bodies
from .equations import Equations, RowWriter

_MASS_AND_MOMENTS = 4  # forces on the base depend on the first four parameters of a body
_BASE_CHANNELS = tuple(f"base.{quantity}_{axis}" for quantity in ("force", "torque") for axis in "xyz")


class ForceEquations(Equations):
    """Generalized force, one channel per velocity; the six rows of a free base come first."""

    equation_type = "force"

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.base = model.velocities - model.joints
        self.channels = _BASE_CHANNELS[: self.base] + model.joint_names
        self.joint_channels = slice(self.base, len(self.channels))
        self.optional = model.free
        if not model.free and not model.slides.any():
            self.quantity = ("torque", "N m")

    @cached_property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Columns of each channel: bodies that its velocity moves, further bodies, then drives with user terms."""
        return tuple(
            np.concatenate([self.body_columns(velocity), *self.other_columns(velocity)])
            for velocity in range(self.count))

    @property
    def force_channels(self) -> int:
        """Number of leading channels that are forces on the base, which do not depend on rotational inertia."""
        return min(self.base, 3)

    def body_columns(self, velocity: int) -> np.ndarray:
        """Columns of the bodies that a velocity moves."""
        count = _MASS_AND_MOMENTS if velocity < self.force_channels else BODY_PARAMETERS
        moved = bodies.moved_bodies(self.model)[velocity]
        return np.array([BODY_PARAMETERS * body + k for body in moved for k in range(count)], dtype=int)

    def other_columns(self, velocity: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns of rotors and gravity compensation, and columns of drives with user terms, that act on a channel."""
        joint, none = velocity - self.base, np.zeros(0, dtype=int)
        driven = none if joint < 0 else drives.joint_columns(self.model.layout, joint)
        return bodies.further_columns(self.model, velocity), driven

    def writer(self) -> "ForceWriter":
        return ForceWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, nv)`` generalized force of links, rotors and drives [N m or N], without compensated gravity."""
        self.check(samples)
        layout, motion = self.model.layout, (samples.q, samples.v, samples.a)
        drive_motion = drives.DriveMotion.from_samples(layout, samples)
        force = rigid_torque(self.model, layout.bodies(parameters), *motion)
        force += bodies.further_torque(self.model, layout.further_bodies(parameters), *motion)
        load = drives.load_of_terms(self.model, *motion)
        force[:, self.joint_channels] += drives.drive_torque(layout, parameters, drive_motion, load)
        return on_ground(self.model, samples.q, force)


class ForceWriter(RowWriter):
    """Writes equations of force with only those body columns that cannot be regrouped to the parent.

    On a free base, a batch is written without joint rows if none of its joint rows enters the fit.
    """

    def __init__(self, equations: ForceEquations) -> None:
        model = equations.model
        layout, grouping = model.layout, bodies.regroup_to_parents(model.tree)
        self._model, self._base, self._forces = model, equations.base, equations.force_channels
        self._regressor = bodies.RigidBodyRegressor(model.tree, model.pinocchio.gravity.linear, grouping.columns)
        self._further = bodies.further_regressors(model)
        self._further_columns, spans, expansions = [], [], []
        moments = [k < _MASS_AND_MOMENTS for columns in grouping.columns for k in columns]
        self._moments, self._inertial = np.flatnonzero(moments), len(moments)
        for velocity, moved in enumerate(bodies.moved_bodies(model)):
            written = np.arange(self._regressor.columns[moved[0]].start, self._regressor.columns[moved[-1]].stop)
            first = written[0]
            if velocity < self._forces:  # write() moves these columns to the front
                written, first = self._moments, 0
            others = equations.other_columns(velocity)
            self._further_columns.append(others[0] - layout.body_size)
            rest = sum(map(len, others))
            spans.append(slice(first, first + len(written) + rest + 1))
            matrix = grouping.matrix[np.ix_(written, equations.body_columns(velocity))]
            expansions.append(block_diag(matrix, np.eye(rest)))
        self.spans, self.expansions = tuple(spans), tuple(expansions)
        self._drives: tuple[Samples, drives.DriveMotion] | None = None

    def _motion(self, samples: Samples) -> drives.DriveMotion:
        """Motion of the drives, computed once for all batches of the samples."""
        if self._drives is None or self._drives[0] is not samples:
            self._drives = samples, drives.DriveMotion.from_samples(self._model.layout, samples)
        return self._drives[1]

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Fill ``out (nv, width, k)`` for ``k`` rows of samples."""
        q, v, a = (np.asfortranarray(channel[rows]).T for channel in (samples.q, samples.v, samples.a))
        ground, layout = self._model.ground, self._model.layout
        base_only = self._base > 0 and not samples.mask[rows, self._base :].any()
        self._regressor.write(q, v, a, out, base_only)
        if ground is not None:
            turn_base_rows(ground, q, out[:, : self._inertial])
        for row in range(self._forces):
            out[row, : len(self._moments)] = out[row, self._moments]
        if base_only and not self._further:
            return
        parts = [np.zeros((len(v), 0, q.shape[1])), *(regressor.of(q, v, a) for regressor in self._further)]
        further = np.concatenate(parts, axis=1)
        if ground is not None and self._further:
            turn_base_rows(ground, q, further)
        load = drives.load_of_terms(self._model, samples.q[rows], samples.v[rows], samples.a[rows])
        joint_rows = drives.drive_rows(layout, self._motion(samples).select(rows), load)
        drive_rows: list[list[Array]] = [[]] * self._base + joint_rows
        for velocity, (span, signals) in enumerate(zip(self.spans, drive_rows, strict=True)):
            first = span.stop - 1 - len(signals)
            for column, signal in enumerate(signals, start=first):
                out[velocity, column] = signal
            columns = self._further_columns[velocity]
            if len(columns):
                out[velocity, first - len(columns) : first] = further[velocity, columns]


def without_load(model: RobotModel, load: Array, samples: Samples) -> Samples:
    """Subtract the torque of a load ``(nb, 10)`` from the measured force, see :func:`~.body_changes.load_bodies`."""
    return replace(samples, tau=samples.tau - load_torque(model, load, samples)) if load.any() else samples


def with_gains(model: RobotModel, gains: Array, load: Array, samples: Samples) -> Samples:
    """Scale measured efforts by drive gains ``(n,)``, in samples from which the torque of a load was subtracted."""
    torque = load_torque(model, load, samples) if load.any() else 0.0
    noise = None if samples.effort_noise is None else np.abs(gains) * samples.effort_noise
    command = None if samples.command is None else gains * samples.command
    limits = None if samples.command_limits is None else np.abs(gains) * samples.command_limits
    tau = gains * (samples.tau + torque) - torque
    return replace(samples, tau=tau, effort_noise=noise, command=command, command_limits=limits)


def load_torque(model: RobotModel, load: Array, samples: Samples) -> Array:
    """Generalized force ``(N, c)`` that moves a load ``(nb, 10)`` along the motion of the samples.

    A controller that compensates gravity is assumed to know the load, and takes off its gravity, too.
    """
    force = rigid_torque(model, load, samples.q, samples.v, samples.a)
    if model.layout.compensation:
        still = np.zeros_like(samples.v)
        force -= rigid_torque(model, load, samples.q, still, still)
    return np.asarray(on_ground(model, samples.q, force))
