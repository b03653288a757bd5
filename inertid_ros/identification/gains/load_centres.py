"""Centres of mass of known loads, as efforts show them beside the gains of the drives.

The mass of a load sets the scale of all gains; where its centre of mass was declared wrongly, gains are wrong with it,
and no interval shows it. So first moments and inertia of the loads are found with the gains once more, by their mass
alone, and compared with what was declared.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel

from .gain_fit import GainFit

_FAR, _SURE = 0.03, 4.0  # m, and standard deviations: a centre of mass that is farther away was declared wrongly
_SIZE = 1.0  # m; standard deviation of a centre of mass of which nothing is known, and radius of gyration
_STEPS, _TOLERANCE = 20, 1e-3  # m
_FREE = BODY_PARAMETERS - 1  # first moments and inertia


@dataclass(frozen=True)
class LoadCentre:
    """Centre of mass of a load.

    Attributes
    ----------
    body : int
        That holds it.
    mass : float
        As declared [kg].
    declared, found : ndarray, shape (3,)
        Centre of mass in the frame of the body [m].
    deviation : float
        Of what was found: largest standard deviation in any direction [m].
    """

    body: int
    mass: float
    declared: Array
    found: Array
    deviation: float

    def finding(self, model: RobotModel) -> Finding | None:
        """That it is elsewhere, or None."""
        distance = float(np.linalg.norm(self.found - self.declared))
        if distance < max(_FAR, _SURE * self.deviation):
            return None
        link = model.link_names[self.body]
        place = ", ".join(f"{value:.3g}" for value in self.found)
        evidence = (
            f"the load of {self.mass:.4g} kg acts as if its centre of mass were {distance:.2g} m from where it is"
            f" declared, at ({place}) m in {link}"
        )
        return Finding("load_elsewhere", Severity.CARE, evidence, remedy_for("load_elsewhere"), (link,))


def load_centres(fit: GainFit, fraction: Array, wider: float) -> list[LoadCentre]:
    """Centres of mass of all loads that are on one body each, found by their masses beside the gains.

    Parameters
    ----------
    fit : GainFit
        With the loads as declared.
    fraction : ndarray, shape (n,)
        Independent share of the samples.
    wider : float
        Factor of the deviations over those that residuals as independent noise give.
    """
    fit = replace(fit, blocks=fit.merged())
    declared = [load for load, _ in fit.blocks if len(_bodies(load)) == 1]
    if not declared:
        return []
    numbers = {load.tobytes(): number for number, load in enumerate(declared)}
    of_blocks = [numbers.get(load.tobytes()) for load, _ in fit.blocks]
    bodies = [_bodies(load)[0] for load in declared]
    masses = np.array([load[_mass(body)] for load, body in zip(declared, bodies, strict=True)])
    moved = [load.copy() for load in declared]
    for _ in range(_STEPS):
        blocks = [
            (load if number is None else moved[number], information)
            for number, (load, information) in zip(of_blocks, fit.blocks, strict=True)
        ]
        try:
            freed = replace(fit, blocks=blocks).converged()
        except IdentificationError:
            return []  # by their masses alone the loads tell no gains, and nothing of their places
        change, covariance = _step(freed, fraction, moved, bodies)
        moved = [load.copy() for load in moved]
        for load, body, own in zip(moved, bodies, change, strict=True):
            load[_unknown(body)] += own
        if np.abs(change[:, :3] / masses[:, None]).max() < _TOLERANCE:
            break
    centres = []
    for number, (body, mass) in enumerate(zip(bodies, masses, strict=True)):
        first, own = slice(_mass(body) + 1, _mass(body) + 4), slice(_FREE * number, _FREE * number + 3)
        deviation = wider * float(np.sqrt(np.linalg.eigvalsh(covariance[own, own])[-1])) / mass
        centres.append(
            LoadCentre(body, float(mass), declared[number][first] / mass, moved[number][first] / mass, deviation)
        )
    return centres


def _step(fit: GainFit, fraction: Array, loads: Sequence[Array], bodies: Sequence[int]) -> tuple[Array, Array]:
    """Best change of first moments and inertia of each load ``(l, 9)``, and its covariance ``(9 l, 9 l)``."""
    weights = fit.weights(fraction)
    J, residuals = fit.system(weights)
    count = _FREE * len(loads)
    K, row = np.zeros((len(J), count)), 0
    for block in fit.merged():
        for weight, inverse, (columns, _) in zip(weights, fit.inverse, fit.channels(block), strict=True):
            for number, (load, body) in enumerate(zip(loads, bodies, strict=True)):
                if np.array_equal(block[0], load):
                    own = slice(_FREE * number, _FREE * (number + 1))
                    K[row : row + len(columns), own] = weight * inverse * columns[:, _unknown(body)]
            row += len(columns)
    pairs = list(zip(loads, bodies, strict=True))
    deviations = np.concatenate([np.repeat([load[_mass(body)] * _SIZE, load[_mass(body)] * _SIZE**2], [3, 6])
                                 for load, body in pairs])  # fmt: skip
    values = np.concatenate([load[_unknown(body)] for load, body in pairs])
    whole = np.block([[J, K], [np.zeros((count, J.shape[1])), np.diag(1 / deviations)]])
    change = np.linalg.lstsq(whole, -np.concatenate([residuals, values / deviations]))[0][-count:]
    covariance = np.linalg.inv(whole.T @ whole)[-count:, -count:]
    return np.asarray(change, dtype=float).reshape(len(loads), _FREE), np.asarray(covariance, dtype=float)


def _bodies(load: Array) -> list[int]:
    """Bodies that a load ``(p,)`` is on."""
    return sorted({int(column) // BODY_PARAMETERS for column in np.flatnonzero(load)})


def _mass(body: int) -> int:
    return BODY_PARAMETERS * body


def _unknown(body: int) -> slice:
    """Columns of first moments and inertia."""
    return slice(_mass(body) + 1, BODY_PARAMETERS * (body + 1))
