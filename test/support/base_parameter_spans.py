"""Comparison of base parameters by what they span, whichever columns were kept."""

from scipy.linalg import subspace_angles

from inertid_ros.identification.base_parameters.numeric import BaseParameters


def angle_between(first: BaseParameters, second: BaseParameters) -> float:
    """Largest principal angle [rad] of two sets of base parameters of the same count; 0 where both are empty."""
    assert first.count == second.count
    return float(subspace_angles(first.projection.T, second.projection.T).max()) if first.count else 0.0
