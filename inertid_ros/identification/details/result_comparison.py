"""Differences between two results of one robot, beside what their uncertainties make expect."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.force_equations import ForceEquations
from inertid_ros.robot.bodies.inertial_parameters import geodesic_distance
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class ParameterSet:
    """Parameters of one result.

    Attributes
    ----------
    model : RobotModel
        The robot.
    parameters : ndarray, shape (p,)
        In the order of its layout.
    covariance : ndarray, shape (p, p)
        Of their errors.
    """

    model: RobotModel
    parameters: Array
    covariance: Array


@dataclass(frozen=True)
class ParameterChange:
    """One parameter that both results have.

    Attributes
    ----------
    name : str
        Of the parameter.
    first, second : float
        Its values.
    deviations : float
        Difference in standard deviations of both together; NaN where neither has one.
    """

    name: str
    first: float
    second: float
    deviations: float


@dataclass(frozen=True)
class ResultComparison:
    """How two results of one robot differ.

    Attributes
    ----------
    links : tuple of str
        The ``nb`` moving links.
    distance : ndarray, shape (nb,)
        Geodesic distance of every body in one result to that in the other.
    changes : tuple of ParameterChange
        All parameters that both have, the largest difference in standard deviations first.
    joints : tuple of str
        The ``n`` joints; none on a free base.
    torque_difference : ndarray, shape (n,)
        Root mean square difference of predicted torque over random states, as a share of torque.
    """

    links: tuple[str, ...]
    distance: Array
    changes: tuple[ParameterChange, ...]
    joints: tuple[str, ...]
    torque_difference: Array


def compare_results(first: ParameterSet, second: ParameterSet) -> ResultComparison:
    """Compare two results of a robot whose links and joints are the same."""
    bodies = [each.model.layout.bodies(each.parameters) for each in (first, second)]
    joints, difference = _torque_difference(first, second)
    return ResultComparison(
        first.model.link_names, geodesic_distance(*bodies), _changes(first, second), joints, difference
    )


def _changes(first: ParameterSet, second: ParameterSet) -> tuple[ParameterChange, ...]:
    place = {name: index for index, name in enumerate(second.model.layout.names)}
    own = [(index, place[name]) for index, name in enumerate(first.model.layout.names) if name in place]
    rows, others = (np.array(each, dtype=int) for each in zip(*own, strict=True))
    before, after = first.parameters[rows], second.parameters[others]
    variance = np.diagonal(first.covariance)[rows] + np.diagonal(second.covariance)[others]
    deviations = np.divide(after - before, np.sqrt(variance), out=np.full(len(rows), np.nan), where=variance > 0)
    names = [first.model.layout.names[index] for index in rows]
    changes = [
        ParameterChange(*values)
        for values in zip(names, before.tolist(), after.tolist(), deviations.tolist(), strict=True)
    ]
    return tuple(sorted(changes, key=lambda change: -np.nan_to_num(abs(change.deviations))))


def _torque_difference(first: ParameterSet, second: ParameterSet) -> tuple[tuple[str, ...], Array]:
    if first.model.free:
        return (), np.zeros(0)
    states = sample_states(first.model)
    torque, other = (ForceEquations(each.model).predict(each.parameters, states) for each in (first, second))
    difference, size = (np.sqrt(np.mean(values**2, axis=0)) for values in (other - torque, torque))
    return first.model.joint_names, difference / np.maximum(size, 1e-3 * max(float(size.max()), 1e-300))
