"""Torque that the calibrated drives of a robot need beside that of its bodies."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin

from inertid_ros.config.robot import TERM_SIGNALS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.dynamics.friction import friction_direction
from inertid_ros.dynamics.user_terms import term_torque
from inertid_ros.regressors.drive_regressor import COLUMNS, DriveMotion, drive_columns
from inertid_ros.robot.bodies.layout import COUPLING_TERMS
from inertid_ros.robot.model import RobotModel

_SLOWEST_TURN = 0.02  # rad/s or m/s; friction that turns within less would chatter where a robot holds still


@dataclass(frozen=True)
class CalibratedDrives:
    """Friction, rotor inertia, offsets, couplings and user terms of a calibration.

    Attributes
    ----------
    model : RobotModel
        The robot.
    parameters : ndarray, shape (p,)
        In the order of its layout; those of the bodies are not used, but for the load of user terms.

    Raises
    ------
    IdentificationError
        The robot has rotors that are bodies of their own.
    """

    model: RobotModel
    parameters: Array

    def __post_init__(self) -> None:
        if self.model.layout.rotors:
            raise IdentificationError(
                "adaptation: rotors that are bodies of their own are not compensated; give a calibration without"
                " robot.rotors"
            )

    def effort(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """Torque ``(n,)`` of all drives at a motion ``(n,)`` each [N m or N].

        Friction turns within 0.02 rad/s or m/s at least.
        """
        layout, x = self.model.layout, self.parameters
        direction = friction_direction(layout.drive_ratios @ velocity, self._turning)
        n = self.model.joints
        fading = direction[:n] * np.exp(-np.abs(velocity) / layout.stribeck_speed)
        motion = DriveMotion(*(each[None] for each in (position, velocity, acceleration, direction, fading)))
        own = motion._replace(direction=direction[None, :n])
        torque = np.zeros(n)
        for term in layout.drive_terms:
            torque += x[layout.drive(term)] * COLUMNS[term](own)[0]
        for index, ratios in enumerate(layout.coupling_ratios):
            start = layout.coupling_start + index * len(COUPLING_TERMS)
            columns = drive_columns(COUPLING_TERMS, motion.along(ratios, n + index))
            torque += ratios * (columns @ x[start : start + len(COUPLING_TERMS)])[0]
        return torque + self._user_terms(position, velocity, acceleration, direction[:n])

    def _user_terms(self, position: Array, velocity: Array, acceleration: Array, direction: Array) -> Array:
        terms = self.model.layout.terms
        if not terms:
            return np.zeros(self.model.joints)
        signals = dict(zip(TERM_SIGNALS, (position, velocity, acceleration, direction), strict=False))
        if any(term.uses_load for term in terms):
            tree, data = self._loads
            signals["load"] = pin.rnea(tree, data, position, velocity, acceleration)
        rows = {name: signal[None] for name, signal in signals.items()}
        return term_torque(terms, self.parameters[self.model.layout.term_start :], self.model.joint_names, rows)[0]

    @cached_property
    def _turning(self) -> Array:
        return np.maximum(self.model.layout.transition_speed, _SLOWEST_TURN)

    @cached_property
    def _loads(self) -> tuple[pin.Model, pin.Data]:
        tree = self.model.with_bodies(self.model.layout.bodies(self.parameters))
        return tree, tree.createData()
