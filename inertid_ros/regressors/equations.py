"""Equations: linear relations between a robot's measurements and its parameters, for any measured quantity.

Identification, compression, prediction and validation use only this interface. A type of equations is a class, such as
:class:`~.force_equations.ForceEquations` (joint torques; on a free base also the wrench on the whole robot). To add a
type, write a class, list the class in :func:`equations_of`, and add its ``equation_type`` to
:data:`~inertid_ros.config.identification.EQUATION_TYPES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.robot.kinematics import BATCH, batches
from inertid_ros.robot.model import RobotModel


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
    from .body_equations import BodySegmentEquations
    from .force_equations import ForceEquations
    from .momentum_equations import MomentumChangeEquations, MomentumEquations

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
