"""Equations: linear relations between a robot's measurements and its parameters, for any measured quantity.

Identification, compression, prediction and validation use only this interface. A type of equations is a class, such as
:class:`ForceEquations` (joint torques; on a free base also the wrench on the whole robot). To add a type,
write a class, list the class in :func:`equations_of`, and add its ``equation_type`` to
:data:`~inertid_ros.config.identification.EQUATION_TYPES`.

Equations of force are the rows of the inverse dynamics ``Y x = S^T tau + sum J_c^T f_c`` ([Lee2019]_ eq. 3.2.13;
[vanDerGaag2024]_ eqs. 10-14). Base rows contain external wrenches but no joint torques; the row of a joint contains
external wrenches only if a contact lies behind the joint.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.regressors import drives, rigid_body_regressor as bodies
from inertid_ros.robot.contacts import on_ground, turn_base_rows
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.kinematics import BATCH, batches
from inertid_ros.robot.model import RobotModel

_MASS_AND_MOMENTS = 4  # forces on the base depend on the first four parameters of a body
_BASE_CHANNELS = tuple(f"base.{quantity}_{axis}" for quantity in ("force", "torque") for axis in "xyz")


class Equations(ABC):
    """Equations ``A(sample) x = b(sample)``, linear in the parameter vector ``x`` of a robot.

    Each channel is a separate measurement with its own noise and samples (``Samples.mask``), and depends on only some
    columns of the layout. ``b`` is ``Samples.tau``, with one column per channel.

    Attributes
    ----------
    equation_type : short name, as in the configuration.
    quantity : measured quantity and its unit, for reports.
    model : the robot, whose ``layout`` orders ``x``.
    channels : ``c`` names, for messages and reports; for channels of joints the joint names.
    joint_channels : channels of the joints, in their order; may be empty.
    optional : whether a channel may have no samples; if not, a channel without samples is an error.
    """

    equation_type: ClassVar[str]
    quantity: tuple[str, str] = ("torque", "N m or N")
    model: RobotModel
    channels: tuple[str, ...]
    joint_channels: slice = slice(0, 0)
    optional: bool = True

    @cached_property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Layout columns that each of the ``c`` channels depends on, one array per channel; all columns by default."""
        return (np.arange(self.model.layout.size),) * self.count

    @abstractmethod
    def writer(self) -> "RowWriter":
        """Writer of batches of equations into a compressor's array. One object serves one thread."""

    @abstractmethod
    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, c)`` predicted measurements of the channels, from parameters ``(p,)``."""

    def noise(self, samples: Samples) -> Array | None:
        """Mean noise variance ``(c,)`` up to a common factor, for a noisy regressor; None if residuals determine it."""
        return None

    @property
    def fingerprint(self) -> str:
        """Text that identifies the equations without the robot; information with equal fingerprints can be merged.

        The type of the equations, with the pose of the plate in whose frame the base rows are.
        """
        ground = self.model.ground
        return self.equation_type if ground is None else f"{self.equation_type} about {ground.xyz} {ground.rpy}"

    @property
    def count(self) -> int:
        return len(self.channels)

    def check(self, samples: Samples) -> None:
        """Raise ``IdentificationError`` for samples of another robot or equation type."""
        expected = (self.model.positions, self.model.velocities, self.count)
        sizes = (samples.q.shape[1], samples.v.shape[1], samples.channels)
        if sizes != expected:
            raise IdentificationError(
                f"{samples.name}: has {sizes} positions, velocities and channels, the {self.equation_type} equations of"
                f" '{self.model.name}' have {expected}; prepare the recording with this model")

    def of_joints(self, values: Array) -> Array:
        """Values per joint ``(n,)`` from values per channel ``(c,)``; NaN if the equations have no joint channels."""
        joint_values = np.asarray(values)[self.joint_channels]
        return joint_values if len(joint_values) else np.full(self.model.joints, np.nan)


class RowWriter(ABC):
    """Writes equations into an array with the samples along its last axis, ready for QR.

    A writer may write fewer columns than the layout has. The layout columns are exact combinations of the written
    columns, see :func:`~.rigid_body_regressor.regroup_to_parents`.

    Attributes
    ----------
    spans : columns of each channel in the array; the last of these columns is for the measured side.
    expansions : per channel, the map ``(s - 1, len(columns))`` from ``s - 1`` written columns to layout columns.
    """

    spans: tuple[slice, ...]
    expansions: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Number of columns of the array, enough for every channel."""
        return max(span.stop for span in self.spans)

    @abstractmethod
    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Write ``k`` rows of samples into ``out (c, width, k)``: every span except its last column."""


class WholeRowEquations(Equations):
    """Equations whose coefficients are computed as one array; suitable only for types with few samples."""

    @abstractmethod
    def coefficients(self, samples: Samples, rows: slice) -> Array:
        """Coefficients ``(k, c, p)`` of ``k`` rows of samples."""

    def constant(self, samples: Samples) -> Array | float:
        """Coefficients ``(c, p)`` to subtract from the coefficients of every sample of a recording."""
        return 0.0

    def writer(self) -> "WholeRowWriter":
        return WholeRowWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        self.check(samples)
        return np.concatenate([self.coefficients(samples, rows) @ parameters for rows in batches(len(samples))])


class WholeRowWriter(RowWriter):
    """Writes the layout columns of every channel without regrouping."""

    def __init__(self, equations: WholeRowEquations) -> None:
        self._equations = equations
        self._recording: Samples | None = None  # recording that ``_constant`` was computed for
        self._constant: Array | float = 0.0
        self.spans = tuple(slice(0, len(columns) + 1) for columns in equations.columns)
        self.expansions = tuple(np.eye(len(columns)) for columns in equations.columns)

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        if self._recording is not samples:
            self._recording, self._constant = samples, self._equations.constant(samples)
        coefficients = self._equations.coefficients(samples, rows) - self._constant
        for channel, columns in enumerate(self._equations.columns):
            out[channel, : len(columns)] = coefficients[:, channel, columns].T


def equations_of(source: RobotModel | Equations, equation_type: str = "force") -> Equations:
    """Return given equations unchanged, or build the equations of a type for a robot."""
    from .whole_body_equations import BodySegmentEquations, MomentumChangeEquations, MomentumEquations

    if isinstance(source, Equations):
        return source
    if source.segmented:
        if equation_type not in ("force", BodySegmentEquations.equation_type):
            raise IdentificationError(f"identify.equations: {equation_type} needs robot.base free, not segments")
        return BodySegmentEquations(source)
    types: tuple[type[ForceEquations] | type[MomentumEquations], ...]
    types = (ForceEquations, MomentumEquations, MomentumChangeEquations)
    return {candidate.equation_type: candidate for candidate in types}[equation_type](source)


def dense_equations(equations: Equations, samples: Samples, chunk: int = BATCH) -> Iterator[list[tuple[Array, Array]]]:
    """Yield, chunk by chunk, a list over channels of ``(A (k, p_j), b (k,))`` with the rows that enter the fit.

    ``A @ x[equations.columns[j]] = b`` for channel ``j`` and the parameter vector ``x``. Suitable only for few samples.
    """
    equations.check(samples)
    writer = equations.writer()
    for rows in batches(len(samples), chunk):
        work = np.zeros((equations.count, writer.width, rows.stop - rows.start))
        writer.write(samples, rows, work)
        blocks = []
        for channel, (span, expansion) in enumerate(zip(writer.spans, writer.expansions, strict=True)):
            keep = samples.mask[rows, channel]
            written = work[channel, span.start : span.stop - 1, keep]
            blocks.append((written @ expansion, samples.tau[rows, channel][keep]))
        yield blocks


def prediction_variance(equations: Equations, covariance: Array, samples: Samples) -> Array:
    """Variance ``(N, c)`` of predictions at all samples, measured or not, from a parameter covariance ``(p, p)``."""
    every = replace(samples, mask=np.ones((len(samples), equations.count), dtype=bool))
    variance = np.zeros(every.mask.shape)
    for blocks in dense_equations(equations, every, len(every)):
        for channel, (columns, (rows, _)) in enumerate(zip(equations.columns, blocks, strict=True)):
            variance[:, channel] = np.einsum("ki,ki->k", rows @ covariance[np.ix_(columns, columns)], rows)
    return np.maximum(variance, 0.0)  # rounding may make it negative


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
        self._cached_motion: tuple[Samples, drives.DriveMotion] | None = None

    def _motion(self, samples: Samples) -> drives.DriveMotion:
        """Motion of the drives, computed once for all batches of the samples."""
        if self._cached_motion is None or self._cached_motion[0] is not samples:
            self._cached_motion = samples, drives.DriveMotion.from_samples(self._model.layout, samples)
        return self._cached_motion[1]

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

    A controller that compensates gravity is assumed to compensate the gravity of the load, too.
    """
    force = rigid_torque(model, load, samples.q, samples.v, samples.a)
    if model.layout.compensation:
        still = np.zeros_like(samples.v)
        force -= rigid_torque(model, load, samples.q, still, still)
    return np.asarray(on_ground(model, samples.q, force))
