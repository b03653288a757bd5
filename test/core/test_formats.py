"""YAML as configurations and the command line hold it."""

import pytest

from inertid_ros.core.formats import read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-11", 1e-11), ("-2E+3", -2e3), ("3.e5", 3e5), ("1.5e3", 1.5e3), (".5e1", 5.0),  # numbers of YAML 1.2
        ("'1e5'", "1e5"), ("1e", "1e"), ("e5", "e5"), ("1e5x", "1e5x"), ("link1e2", "link1e2"),
    ],
)  # fmt: skip
def test_numbers_with_exponents(text, value):
    found = read_yaml(text)
    assert found == value and type(found) is type(value)
    assert read_yaml(f"{{a: {text}}}") == {"a": value}
