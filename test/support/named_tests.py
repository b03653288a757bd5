"""Tests that a page of the documentation names as ``path::name`` or ``path::name[case]``, below test."""

import re

from support.paths import TEST


def assert_test_exists(named: str) -> None:
    """Fail unless a cell of a table, in backticks, names a test and a case that there are."""
    path, name, case = re.fullmatch(r"`(\S+\.py)::(\w+)(?:\[(.+)\])?`", named).groups()
    source = (TEST / path).read_text(encoding="utf-8")
    assert re.search(rf"^(    )?def {name}\(|^{name} = ", source, re.M), f"{path} has no {name}"
    assert case is None or f'"{case}"' in source, f"{path} has no case {case}"
