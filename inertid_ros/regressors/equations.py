"""Equations: linear relations between a robot's measurements and its parameters, whatever is measured.

All that identifies, compresses, predicts or validates uses equations by this interface alone. A type of equations is a
class: :class:`~.force_equations.ForceEquations` (joint torques; on a free base also the wrench on the whole robot) is
one. A further type is one more class, with its name in :data:`~inertid_ros.config.identification.EQUATION_TYPES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.kinematics.tree_kinematics import BATCH, batches
from inertid_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from .matrix_equations import MatrixEquations


class Equations(ABC):
    """Equations ``A(sample) x = b(sample)``, linear in the parameter vector ``x`` of a robot.

    Each channel is measured apart: it has noise of its own, samples of its own (``Samples.mask``), and depends on some
    columns of the layout only. ``b`` is ``Samples.tau``, whose columns are the channels.

    Attributes
    ----------
    equation_type : str
        Short name, as in the configuration.
    quantity : tuple of str
        What the channels measure, and its unit, for reports.
    model : RobotModel
        The robot, whose ``layout`` orders ``x``.
    channels : tuple of str
        ``c`` names, for messages and reports; joint names where a channel is a joint's.
    columns : tuple of ndarray
        ``c`` arrays, the layout's columns that each channel depends on.
    joint_channels : slice
        The channels that are the joints', in their order; empty where there are none such.
    optional : bool
        Whether channels may stay without any sample; else a channel without is an error.
    """

    equation_type: ClassVar[str]
    quantity: ClassVar[tuple[str, str]] = ("torque", "N m or N")
    model: RobotModel
    channels: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    joint_channels: slice
    optional: bool

    @abstractmethod
    def writer(self) -> "RowWriter":
        """Writer of batches of equations into a compressor's array. One object serves one thread."""

    @abstractmethod
    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, c)`` predicted measurements of the channels, from parameters ``(p,)``."""

    @staticmethod
    def from_matrix(
        A: Array,
        b: Array,
        bodies: "RobotModel | Array",
        names: Sequence[str] = (),
        channels: Sequence[str] = (),
    ) -> "tuple[MatrixEquations, Samples]":
        """Equations ``A x = b`` that are given as a matrix, and the samples that hold their rows.

        Parameters
        ----------
        A : ndarray, shape (N, c, p), or (N, p) of a single channel
            Coefficients at ``N`` instants, ten columns of every body in the order of the layout (docs/conventions.md).
        b : ndarray, shape (N, c) or (N,)
            Measured side; NaN where nothing was measured. Channels have noise of their own each.
        bodies : ndarray, shape (nb, 10), or RobotModel
            Prior of the bodies, ``p = 10 nb``; or a robot, whose layout has ``p`` columns.
        names, channels : sequence of str, optional
            Of the ``nb`` bodies and the ``c`` channels.

        Returns
        -------
        equations : MatrixEquations
            To identify, compress or validate with; ``equations.samples(A, b)`` makes samples of further data.
        samples : Samples
            Of ``A`` and ``b``.

        Raises
        ------
        ModelError, IdentificationError
            Shapes that do not fit, a body without mass, or numbers that are not finite.
        """
        from .matrix_equations import matrix_equations

        return matrix_equations(A, b, bodies, names, channels)

    def noise(self, samples: Samples) -> Array | None:
        """``(c,)`` mean variance of the channels up to a factor that all share, where noise is in the regressor rather
        than in what is measured; None where residuals show it."""
        return None

    @property
    def fingerprint(self) -> str:
        """What the equations depend on beside the robot; only information of equal fingerprints is merged."""
        return self.equation_type

    @property
    def count(self) -> int:
        """Number of channels."""
        return len(self.channels)

    def check(self, samples: Samples) -> None:
        """Raise ``IdentificationError`` for samples of another robot or equation type."""
        wanted = (self.model.positions, self.model.velocities, self.count)
        found = (samples.q.shape[1], samples.v.shape[1], samples.channels)
        if found != wanted:
            raise IdentificationError(
                f"{samples.name}: has {found} positions, velocities and channels, the {self.equation_type} equations of"
                f" '{self.model.name}' have {wanted}; prepare the recording with this model"
            )

    def of_joints(self, values: Array) -> Array:
        """``(n,)`` per joint from ``(c,)`` per channel; NaN where joints have no channel."""
        own = np.asarray(values)[self.joint_channels]
        return own if len(own) else np.full(self.model.joints, np.nan)


class RowWriter(ABC):
    """Writes equations sample by sample as columns, ready for QR.

    A writer may use fewer columns than the layout has, of which those of the layout are exact combinations
    (:mod:`inertid_ros.regressors.parent_regrouping`).

    Attributes
    ----------
    spans : tuple of slice
        For each channel, its columns in the array; the last of them is left for the measured side.
    expansions : tuple of ndarray
        For each channel ``(s - 1, len(columns))``, columns of the layout from those written.
    """

    spans: tuple[slice, ...]
    expansions: tuple[Array, ...]

    @property
    def width(self) -> int:
        """Columns of the array that all channels need."""
        return max(span.stop for span in self.spans)

    @abstractmethod
    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Fill ``out[channel, span without its last]`` of ``out (c, width, k)`` for ``k`` rows of samples."""


def equations_of(source: RobotModel | Equations, equation_type: str = "force") -> Equations:
    """Equations as they are, or those of a type of a robot."""
    from .force_equations import ForceEquations
    from .momentum_equations import MomentumChangeEquations, MomentumEquations

    if isinstance(source, Equations):
        return source
    types: tuple[type[ForceEquations] | type[MomentumEquations], ...]
    types = (ForceEquations, MomentumEquations, MomentumChangeEquations)
    return {known.equation_type: known for known in types}[equation_type](source)


def dense_equations(
    equations: Equations, samples: Samples, chunk: int = BATCH
) -> Iterator[list[tuple[Array, Array]]]:
    """Yield, chunk by chunk, a list over channels of ``(A (k, p_j), b (k,))`` with the unmasked rows.

    ``A @ x[equations.columns[j]] = b`` for the parameter vector ``x``. For studies of few samples; compression does not
    use it.
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
