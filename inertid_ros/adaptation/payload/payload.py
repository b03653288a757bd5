"""Mass, centre of mass and inertia of what a calibrated robot holds, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.adaptation.calibrated_robot import CalibratedRobot, FrictionDrift
from inertid_ros.core.arrays import Array
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.block_scores import band_fraction, block_scores
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.residuals import effective_fraction
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.bodies.inertial_parameters import from_mass_com_inertia

from .equations import PayloadEquations, payload_equations
from .posterior import BodySamples, sample_bodies, shortest_interval
from .tool_frame import ToolFrame

_ROUNDS = 4  # of weights
_PRIOR_COUNTS = 20.0  # samples that the noise of the calibration counts for at most
_ELEMENTS = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Quantity:
    """A number of a payload.

    Attributes
    ----------
    value : float
        Posterior mean.
    deviation : float
        Standard deviation.
    interval : tuple of float
        Of 95 %.
    """

    value: float
    deviation: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, samples: Array, least: float = -np.inf) -> "Quantity":
        """From samples ``(k,)`` of a quantity that is never below ``least``."""
        return cls(float(samples.mean()), float(samples.std()), shortest_interval(samples, least=least))

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return 0.5 * (self.interval[1] - self.interval[0])


@dataclass(frozen=True)
class Payload:
    """What a robot holds.

    Attributes
    ----------
    tool : ToolFrame
        Frame of all that follows.
    mass : Quantity
        [kg].
    com : tuple of Quantity
        Centre of mass, x, y, z [m].
    inertia : tuple of Quantity
        About the centre of mass: xx, xy, xz, yy, yz, zz [kg m^2].
    covariance : ndarray, shape (10, 10)
        Of :attr:`parameters`.
    residual_deviation : ndarray, shape (c,)
        Standard deviation of the residual with the payload per channel [N m or N].
    effective_counts : ndarray, shape (c,)
        Independent samples per channel.
    equations : PayloadEquations
        That it follows from.
    """

    tool: ToolFrame
    mass: Quantity
    com: tuple[Quantity, ...]
    inertia: tuple[Quantity, ...]
    covariance: Array
    residual_deviation: Array
    effective_counts: Array
    equations: PayloadEquations

    @property
    def com_vector(self) -> Array:
        """``(3,)`` centre of mass [m]."""
        return np.array([each.value for each in self.com])

    @property
    def inertia_matrix(self) -> Array:
        """``(3, 3)`` about the centre of mass [kg m^2]."""
        matrix = np.zeros((3, 3))
        for (row, column), each in zip(_ELEMENTS, self.inertia, strict=True):
            matrix[row, column] = matrix[column, row] = each.value
        return matrix

    @property
    def parameters(self) -> Array:
        """``(10,)`` about the origin of the tool frame; physically consistent, as a mean of consistent bodies is."""
        return from_mass_com_inertia(self.mass.value, self.com_vector, self.inertia_matrix)


@dataclass(frozen=True)
class _Data:
    """Recordings of one kind, with payload or without."""

    equations: Equations
    recordings: tuple[Samples, ...]
    information: Information

    @classmethod
    def of(cls, equations: Equations, recordings: Sequence[Samples]) -> "_Data":
        information = compress(equations, recordings)
        if not information.counts.any():
            names = ", ".join(samples.name for samples in recordings)
            raise IdentificationError(f"{names}: no joint slides long enough to be used; move more, or record longer")
        return cls(equations, tuple(recordings), information)

    def residuals(self, parameters: Array) -> list[Array]:
        return [samples.tau - self.equations.predict(parameters, samples) for samples in self.recordings]


@one_thread()
def identify_payload(
    robot: CalibratedRobot,
    tool: ToolFrame,
    loaded: Sequence[Samples],
    reference: Sequence[Samples] = (),
    drift: FrictionDrift | None = None,
) -> Payload:
    """Payload of a calibrated robot from ordinary motion.

    Parameters
    ----------
    loaded : sequence of Samples
        Prepared recordings with the payload, filtered as those of the calibration; joints that rest do not count.
    reference : sequence of Samples, optional
        Recordings of the same session without it.
    drift : FrictionDrift, optional
        How much friction may have changed.

    Raises
    ------
    IdentificationError
        Nothing can be fitted to.
    """
    drift = drift or FrictionDrift()
    data = [_Data.of(robot.equations, loaded)]
    if reference:
        data.append(_Data.of(robot.equations, reference))
    variances = [robot.deviation**2 / np.maximum(band_fraction(each.recordings), 1e-3) for each in data]
    for _ in range(_ROUNDS):
        found = payload_equations(
            robot,
            tool,
            tuple((each.information, 1 / np.sqrt(own)) for each, own in zip(data, variances, strict=True)),
            drift,
        )
        data[0] = _with_load(robot, tool, data[0], found.payload)
        errors = [
            _noise(robot, each, parameters, found.loaded_covariance)
            for each, parameters in zip(data, (found.loaded, found.reference), strict=False)
        ]
        variances = [variance for variance, _ in errors]
    deviation = errors[0][1]
    counts = deviation**2 / variances[0] * data[0].information.counts
    return _payload(tool, found, sample_bodies(found), deviation, counts)


def _with_load(robot: CalibratedRobot, tool: ToolFrame, data: _Data, payload: Array) -> _Data:
    """The same data with equations whose torque of loads includes the payload; terms of joints may depend on it."""
    model = robot.equations.model
    if not any(term.uses_load for term in model.layout.terms):
        return data
    bodies = model.layout.bodies(robot.parameters) + tool.bodies(payload, len(model.link_names))
    equations = equations_of(replace(model, fitted_bodies=bodies), robot.equations.equation_type)
    return _Data.of(equations, data.recordings)


def _noise(robot: CalibratedRobot, data: _Data, parameters: Array, covariance: Array) -> tuple[Array, Array]:
    """Variance ``(c,)`` of independent noise that errors amount to, and the standard deviation of the residual."""
    residuals = data.residuals(parameters)
    counts = np.maximum(data.information.counts, 1)
    masks = [samples.mask for samples in data.recordings]
    fraction = np.minimum(effective_fraction(residuals, masks), band_fraction(data.recordings))
    missed = np.array([channel.expected_square(covariance) for channel in data.information.channels]) / counts
    own = data.information.rms_error(parameters) ** 2 + missed
    weight = np.minimum(robot.counts, _PRIOR_COUNTS)
    squared = (weight * robot.deviation**2 + fraction * counts * own) / (weight + fraction * counts)
    variance = squared / fraction
    scores = block_scores(data.equations, data.recordings, residuals).noise_level(covariance, 1 / variance)
    return np.maximum(variance, scores.largest), np.sqrt(squared)


def _payload(
    tool: ToolFrame, equations: PayloadEquations, bodies: BodySamples, deviation: Array, counts: Array
) -> Payload:
    return Payload(
        tool=tool,
        mass=Quantity.of(bodies.mass, least=0.0),
        com=tuple(Quantity.of(bodies.com[:, axis]) for axis in range(3)),
        inertia=tuple(
            Quantity.of(bodies.inertia[:, row, column], 0.0 if row == column else -np.inf) for row, column in _ELEMENTS
        ),
        covariance=np.cov(bodies.parameters.T),
        residual_deviation=deviation,
        effective_counts=counts,
        equations=equations,
    )
