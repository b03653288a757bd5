"""Work on the next items meanwhile: order, how far ahead, errors."""

import pytest

from inertid_ros.data.long_recording import ahead


def test_results_come_in_order_and_items_are_taken_one_at_a_time() -> None:
    taken: list[int] = []

    def items():
        for item in range(6):
            taken.append(item)
            yield item

    results = ahead(lambda item: item**2, items(), 2)
    assert next(results) == 0 and taken == [0, 1, 2]
    assert list(results) == [1, 4, 9, 16, 25]


def test_an_error_comes_where_its_result_would() -> None:
    results = ahead(lambda item: 1 // item, [2, 1, 0, 3], 1)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)
