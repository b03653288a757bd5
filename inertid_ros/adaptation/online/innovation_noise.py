"""Noise of the innovation behind a causal filter: what the calibration leaves, and stiction at reversals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.adaptation.calibrated_robot import CalibratedRobot
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.residuals import MAD_TO_DEVIATION

_SLOW = 0.02  # rad/s or m/s; a slower joint may as well stick


def with_stream_noise(robot: CalibratedRobot, blocks: Sequence[Samples]) -> CalibratedRobot:
    """The robot with the residuals that a causal filter leaves of it, where nothing has changed.

    A filter without delay lets less noise through than a causal one. Recordings of the calibration, put through the
    causal filter, show its noise; reversals, where friction is uncertain, do not count.

    Parameters
    ----------
    blocks : sequence of Samples
        Of a stream of the robot as it was calibrated.

    Raises
    ------
    IdentificationError
        A channel has no equation.
    """
    errors = np.concatenate([each.tau - robot.equations.predict(robot.parameters, each) for each in blocks])
    kept = np.concatenate([each.mask & (_stiction(robot, each) < 0.5 * robot.deviation) for each in blocks])
    if not kept.any(axis=0).all():
        raise IdentificationError("stream: a joint never slides; give recordings in which all joints move")
    sizes = [np.median(np.abs(errors[own, channel])) for channel, own in enumerate(kept.T)]
    return replace(robot, deviation=np.maximum(robot.deviation, MAD_TO_DEVIATION * np.array(sizes)))


def error_deviation(robot: CalibratedRobot, samples: Samples) -> Array:
    """``(N, c)`` standard deviation of the error of every equation: noise, and stiction at reversals."""
    return np.asarray(np.hypot(robot.deviation, _stiction(robot, samples)))


def _stiction(robot: CalibratedRobot, samples: Samples) -> Array:
    """``(N, c)`` standard deviation of friction for the share of time in which a joint hardly slides: it may then be
    anything up to Coulomb friction in either direction."""
    layout = robot.layout
    if samples.undecimated is None or "coulomb" not in layout.drive_terms:
        return np.zeros_like(samples.tau)
    share = samples.undecimated.filtered(lambda v: (np.abs(v) < _SLOW).astype(float))
    return np.asarray(np.clip(share, 0.0, 1.0) * robot.parameters[layout.drive("coulomb")] / np.sqrt(3.0))
