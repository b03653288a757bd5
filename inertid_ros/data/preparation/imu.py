"""Motion of a base from an inertial measurement unit that sits somewhere on it."""

import numpy as np

from inertid_ros.core.arrays import Array


def base_acceleration(specific_force: Array, rate: Array, rate_derivative: Array, twist: Array, place: Array) -> Array:
    """Acceleration of a base less gravity: derivative of its twist in its own frame, as Pinocchio has it.

    The specific force of the unit is carried to the origin of the base by its lever arm, and the turning of the frame
    is taken off: ``f - alpha x r - w x (w x r) - w x v``. Gravity is already off; to have the acceleration itself, add
    gravity in the base frame.

    Parameters
    ----------
    specific_force: ``(N, 3)`` m/s^2 in the axes of the base; at rest it points up.
    rate, rate_derivative: ``(N, 3)`` angular velocity [rad/s] and acceleration, in the axes of the base.
    twist: ``(N, 3)`` linear velocity [m/s] of the origin of the base, in its axes.
    place: ``(3,)`` m, of the unit in the base frame.

    Returns
    -------
    ``(N, 6)``, linear then angular.
    """
    centripetal = np.cross(rate, np.cross(rate, place))
    linear = specific_force - np.cross(rate_derivative, place) - centripetal - np.cross(rate, twist)
    return np.hstack([linear, rate_derivative])
