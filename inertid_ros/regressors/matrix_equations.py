"""Equations given as matrices: whatever was measured of whatever holds the bodies together, and no URDF.

The rows come with the samples: the motion of a sample is its part of the matrix.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.body_segments import body_segment_model
from inertid_ros.robot.model import RobotModel

from .equations import Equations, RowWriter


class MatrixEquations(Equations):
    """``A x = b`` with a given ``A (N, c, p)``: ``c`` channels at ``N`` instants.

    Samples hold ``q (N, c p)``, the rows of all channels one after another, and ``tau (N, c)``.

    Parameters
    ----------
    model : RobotModel
        Bodies, and the layout of ``x``.
    channels : sequence of str
        ``c`` names.
    """

    equation_type = "matrix"
    quantity = ("measured side", "as given")

    def __init__(self, model: RobotModel, channels: Sequence[str]) -> None:
        self.model = model
        self.channels = tuple(channels)
        self.columns = (np.arange(model.layout.size),) * len(self.channels)
        self.joint_channels = slice(0, 0)
        self.optional = True

    def check(self, samples: Samples) -> None:
        """Raise ``IdentificationError`` for samples of other equations."""
        if samples.q.shape[1] != self.count * self.model.layout.size or samples.channels != self.count:
            raise IdentificationError(f"{samples.name}: is of other equations; make it by samples() of these")

    def samples(self, A: Array, b: Array, name: str = "matrix") -> Samples:
        """Samples of a part of the data.

        Parameters
        ----------
        A : ndarray, shape (N, c, p), or (N, p) of a single channel
            Coefficients.
        b : ndarray, shape (N, c) or (N,)
            Measured side; NaN where nothing was measured.

        Raises
        ------
        IdentificationError
            Shapes that do not fit, or coefficients that are not finite.
        """
        A, b = _with_channels(A, b)
        count, size = len(b), self.model.layout.size
        if A.shape != (count, self.count, size) or b.shape != (count, self.count):
            raise IdentificationError(
                f"{name}: A of shape {A.shape} and b of shape {b.shape} do not fit {self.count} channels and {size}"
                " parameters; give A (N, c, p) and b (N, c)"
            )
        measured = np.isfinite(b)
        if not np.isfinite(A[measured]).all():
            raise IdentificationError(f"{name}: a coefficient is not finite; leave the row out (NaN in b)")
        nothing = np.zeros((count, 0))
        rows = np.where(measured[..., None], A, 0.0).reshape(count, -1)
        return Samples(
            np.arange(count, dtype=float), rows, nothing, nothing, np.where(measured, b, 0.0), measured,
            np.asarray(measured.any(axis=1)), name, measured=measured,
        )  # fmt: skip

    def writer(self) -> "MatrixWriter":
        """Writer of all columns."""
        return MatrixWriter(self)

    def predict(self, parameters: Array, samples: Samples) -> Array:
        """``(N, c)`` of ``A x``."""
        self.check(samples)
        return np.asarray(samples.q.reshape(len(samples), self.count, -1) @ parameters)


class MatrixWriter(RowWriter):
    """All columns of the given rows."""

    def __init__(self, equations: MatrixEquations) -> None:
        size = equations.model.layout.size
        self.spans, self.expansions = (slice(0, size + 1),) * equations.count, (np.eye(size),) * equations.count
        self._shape = equations.count, size

    def write(self, samples: Samples, rows: slice, out: Array) -> None:
        """Fill ``out (c, p, k)`` for ``k`` rows of samples."""
        out[:, : self._shape[1]] = samples.q[rows].reshape(-1, *self._shape).transpose(1, 2, 0)


def matrix_equations(
    A: Array, b: Array, bodies: RobotModel | Array, names: Sequence[str] = (), channels: Sequence[str] = ()
) -> tuple[MatrixEquations, Samples]:
    """Equations and samples of :meth:`~.equations.Equations.from_matrix`."""
    A, b = _with_channels(A, b)
    if isinstance(bodies, RobotModel):
        model = bodies
    else:
        bodies = np.asarray(bodies, dtype=float).reshape(-1, BODY_PARAMETERS)
        model = body_segment_model("bodies", names or [f"body{k}" for k in range(len(bodies))], bodies)
    count = b.shape[1] if b.ndim == 2 else 0
    equations = MatrixEquations(model, channels or [f"channel{k}" for k in range(count)])
    return equations, equations.samples(A, b)


def _with_channels(A: Array, b: Array) -> tuple[Array, Array]:
    """A and b with an axis of channels."""
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    if A.ndim == 2:
        A, b = A[:, None], b.reshape(-1, 1)
    return A, b
