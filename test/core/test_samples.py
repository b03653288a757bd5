"""Values of a function of velocity are worked out once, also for selections."""

import numpy as np

from inertid_ros.core.samples import UndecimatedVelocity


def test_selections_take_what_is_known_and_other_functions_do_not():
    calls = []

    def square(velocity):
        calls.append(len(velocity))
        return velocity**2

    pieces = (np.arange(10.0)[:, None], np.arange(10.0, 16.0)[:, None])
    whole = UndecimatedVelocity(pieces, lambda values: values + 1, np.arange(0, 16, 2))
    np.testing.assert_array_equal(whole.filtered(square, "square")[:, 0], np.arange(0.0, 16, 2) ** 2 + 1)
    assert calls == [10, 6]
    part = whole[np.array([1, 4, 7])]
    np.testing.assert_array_equal(part.filtered(square, "square")[:, 0], np.array([2.0, 8, 14]) ** 2 + 1)
    assert calls == [10, 6]
    np.testing.assert_array_equal(part.filtered(np.negative, "minus")[:, 0], 1 - np.array([2.0, 8, 14]))
    np.testing.assert_array_equal(whole.filtered(np.negative, "minus")[:, 0], 1 - np.arange(0.0, 16, 2))
    for power in range(6):
        whole.filtered(lambda velocity, power=power: velocity**power, power)
    np.testing.assert_array_equal(whole.filtered(square)[:, 0], np.arange(0.0, 16, 2) ** 2 + 1)
