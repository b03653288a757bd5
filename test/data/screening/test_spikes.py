"""The median by comparisons."""

import itertools

import numpy as np

from inertid_ros.data.screening.channel_faults import median_of_seven


def test_seven_values_in_any_order_have_their_median():
    # A network of comparisons that is right for zeros and ones is right for all numbers.
    every = np.array(list(itertools.product([0.0, 1.0], repeat=7))).T
    assert np.array_equal(median_of_seven(list(every)), np.median(every, axis=0))
    values = np.random.default_rng(0).normal(size=(7, 1000))
    assert np.array_equal(median_of_seven(list(values)), np.median(values, axis=0))
