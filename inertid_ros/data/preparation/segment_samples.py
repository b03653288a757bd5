"""Samples of body segments, each of whose motion is measured in the world."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples

Motion = tuple[Array, Array]


def segment_samples(
    time: Array, poses: Motion, twists: Motion, accelerations: Motion, wrench: tuple[Array, Array, Array], name: str
) -> Samples:
    """Samples for :class:`~inertid_ros.regressors.body_segment_equations.BodySegmentEquations` from motion capture.

    Parameters
    ----------
    time : ndarray, shape (N,)
        Time [s].
    poses : tuple of ndarray, shapes (N, nb, 3, 3), (N, nb, 3)
        Rotations of the segments and their origins [m].
    twists, accelerations : tuple of ndarray, shapes (N, nb, 3), (N, nb, 3)
        Linear, of the origins, and angular [m/s, rad/s, and per second].
    wrench : tuple of ndarray, shape (N, 3) each
        Total external force [N], its moment about a point [N m], and that point [m].
    name : str
        Name of the recording.

    Returns
    -------
    Samples
        All equations used.
    """
    (rotation, origin), (v, w), (a, alpha) = poses, twists, accelerations
    count, bodies = origin.shape[:2]
    turns = scipy.spatial.transform.Rotation.from_matrix(rotation.reshape(-1, 3, 3))
    quaternions = turns.as_quat().reshape(count, bodies, 4)

    def local(values: Array) -> Array:
        return np.einsum("kbji,kbj->kbi", rotation, values)

    # The components of the twist change as the frame turns, too.
    linear = local(a) - np.cross(local(w), local(v))
    force, moment, point = wrench
    tau = np.hstack([force, moment + np.cross(point - origin[:, 0], force)])
    every = np.ones(tau.shape, dtype=bool)
    return Samples(
        time,
        np.concatenate([origin, quaternions], axis=2).reshape(count, -1),
        np.concatenate([local(v), local(w)], axis=2).reshape(count, -1),
        np.concatenate([linear, local(alpha)], axis=2).reshape(count, -1),
        tau,
        every,
        every[:, 0],
        name,
    )
