"""Roots of matrices and of their inverses, without squares."""

import numpy as np
import pytest

from inertid_ros.core.qr import inverse_root, semidefinite_root


def test_semidefinite_root_of_columns_of_very_different_size():
    rng = np.random.default_rng(0)
    scale = 10.0 ** np.linspace(-8, 8, 6)
    rows = rng.normal(size=(4, 6)) * scale
    root = semidefinite_root(rows.T @ rows)
    change = root.T @ root - rows.T @ rows
    np.testing.assert_allclose(change / scale / scale[:, None], 0.0, atol=1e-12)


def test_inverse_keeps_what_a_prior_says_beside_rows_of_1e10():
    """Data along one direction: in all others the covariance is that of the prior."""
    rng = np.random.default_rng(0)
    direction = np.linalg.qr(rng.normal(size=(5, 1)))[0][:, 0]
    root = inverse_root(np.vstack([1e10 * direction, np.eye(5)]))
    expected = np.eye(5) - np.outer(direction, direction)
    np.testing.assert_allclose(root @ root.T, expected, atol=1e-5)


def test_directions_without_rows_count_as_certain():
    rows = np.array([[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    root = inverse_root(rows)
    assert root @ root.T == pytest.approx(np.diag([1 / 4, 1 / 16, 0.0]))


def test_a_root_passes_over_columns_that_are_zero_up_to_rounding():
    matrix = np.array([[4.0, 1e-17, 2.0], [1e-17, -1e-18, 0.0], [2.0, 0.0, 3.0]])
    root = semidefinite_root(matrix)
    np.testing.assert_allclose(root.T @ root, [[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]], atol=1e-14)
