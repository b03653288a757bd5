"""Zero-phase low-pass filtering and differentiation of evenly spaced samples."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array


def low_pass(values: Array, period: float, cutoff_hz: float, order: int = 4) -> Array:
    """Butterworth low-pass, run forwards and backwards: no phase, gain 1/2 at the cutoff.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Evenly spaced samples.
    period : float
        Sample period [s].
    cutoff_hz : float
        Cutoff [Hz].
    order : int
        Order of each of the two runs.

    Returns
    -------
    ndarray, shape (N, n)
    """
    sections = scipy.signal.butter(order, cutoff_hz, fs=1.0 / period, output="sos")
    padding = min(len(values) - 1, int(np.ceil(3.0 / (cutoff_hz * period))))
    return scipy.signal.sosfiltfilt(sections, values, axis=0, padlen=padding)


def derivatives(values: Array, period: float, orders: tuple[int, ...]) -> tuple[Array, ...]:
    """Derivatives by the interpolating quintic spline.

    Its error for a sinusoid of ten samples a period is below 0.1 % in the first and 1 % in the second derivative,
    where central differences are 6 % off.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Evenly spaced samples.
    period : float
        Sample period [s].
    orders : tuple of int
        Orders of the derivatives.

    Returns
    -------
    tuple of ndarray, shape (N, n)
        One of each order.
    """
    time = period * np.arange(len(values))
    spline = scipy.interpolate.make_interp_spline(time, values, k=5)
    return tuple(spline(time, order) for order in orders)
