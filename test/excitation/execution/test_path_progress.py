"""How far a controller has come is known from states enough, or from its own word."""

import numpy as np

from inertid_ros.excitation.execution.path_progress import PathProgress

VELOCITY, REST = np.array([1.0, 0.0]), np.zeros(2)


def with_states(count: int, lost: float, progress: PathProgress) -> PathProgress:
    """After two horizons, so many states at 33 Hz of a robot that has lost a way at once."""
    progress.sent(0.9)
    progress.update(0.99, REST, VELOCITY, REST)
    progress.sent(1.0)
    for index in range(count):
        progress.update(1.0 + 0.03 * (index + 1), np.array([lost, 0.0]), VELOCITY, REST)
    return progress


def test_a_horizon_waits_for_states_enough():
    assert not with_states(3, 0.0, PathProgress(2, 0.01)).is_known(1.15)
    assert with_states(4, 0.0, PathProgress(2, 0.01)).is_known(1.15)


def test_the_controllers_own_word_is_enough():
    progress = with_states(0, 0.0, PathProgress(2, 0.01))
    progress.update_reference(1.02, REST, VELOCITY)
    assert progress.is_known(1.03)


def test_a_single_state_after_a_horizon_tells_a_large_loss():
    assert with_states(1, 0.5, PathProgress(2, 0.01)).disagrees(1.05)
    assert not with_states(1, 0.0, PathProgress(2, 0.01)).disagrees(1.05)
