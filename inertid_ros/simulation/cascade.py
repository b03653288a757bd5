"""Position drives: a P loop of the position around a PI loop of the velocity, with a share of velocity feed-forward."""

import numpy as np

from inertid_ros.core.arrays import Array


class Cascade:
    """Controllers of position drives. Joints lag their command by ``2 (1 - feed_forward) / bandwidth`` seconds.

    ``effort = 2 w I (e + w / 3 integral(e))`` with the error of the velocity loop ``e = w / 2 (r - q) + f r' - v``
    for the command ``r``, the inertia ``I``, the bandwidth ``w`` and the share ``f`` of feed-forward.

    Parameters
    ----------
    inertia : ndarray, shape (n,)
        Of each joint [kg m^2 or kg].
    bandwidth : float or ndarray, shape (n,)
        Natural frequency of the two loops [rad/s].
    feed_forward : float or ndarray, shape (n,)
        Share of the command's velocity that is fed forward, 0 to 1.
    limit : ndarray, shape (n,)
        Of the efforts [N m or N].

    Attributes
    ----------
    gain : ndarray, shape (n,)
        Effort by velocity [N m s/rad or N s/m].
    """

    def __init__(
        self, inertia: Array, bandwidth: Array | float, feed_forward: Array | float, limit: Array | float = np.inf
    ) -> None:
        self._position_gain, self._feed_forward = 0.5 * np.asarray(bandwidth), feed_forward
        self.gain = 2.0 * bandwidth * inertia
        self._integral_gain = self.gain * bandwidth / 3.0
        self._limit, self._lower = limit, -np.asarray(limit)

    def hold(self, position: Array, effort: Array) -> None:
        """Hold joints that are at rest at a position ``(n,)`` by an effort ``(n,)``."""
        self._end, self._cycle = position, 1.0
        self._rate = self._change = np.zeros(len(position))
        self._integral = effort

    def go_to(self, position: Array, seconds: float) -> None:
        """Be at a position ``(n,)`` in ``seconds``, on a straight line from where the last one ends."""
        before, self._rate = self._rate, (position - self._end) / seconds
        self._end, self._cycle, self._change = position, seconds, self._rate - before

    def effort(self, elapsed: float, position: Array, velocity: Array, seconds: float) -> Array:
        """Efforts ``(n,)`` for the next ``seconds``, when ``elapsed`` seconds of the command have passed."""
        command = self._end - (self._cycle - elapsed) * self._rate
        # Speeds of two commands in a row are those half a cycle before and after the begin of the second.
        rate = self._rate + (elapsed / self._cycle - 0.5) * self._change
        error = self._position_gain * (command - position) + self._feed_forward * rate - velocity
        self._integral = self._within(self._integral + seconds * self._integral_gain * error)
        return self._within(self.gain * error + self._integral)

    def _within(self, effort: Array) -> Array:
        return np.minimum(np.maximum(effort, self._lower), self._limit)
