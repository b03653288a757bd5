"""docs/findings.md: every test that it names exists."""

import re

import pytest
from support.paths import ROOT, TEST

LINES = re.findall(r"^\| (.*) \|$", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.M)
ROWS = [line for line in LINES if line != "finding | what is so now | test"]


def test_every_table_has_the_same_columns() -> None:
    assert len(LINES) - len(ROWS) == 5 and len(ROWS) >= 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(" | ")[0])
def test_the_test_of_a_finding_exists(row: str) -> None:
    finding, now, test = (cell.strip() for cell in row.split(" | "))
    assert finding and now
    path, name, case = re.fullmatch(r"`(\S+\.py)::(\w+)(?:\[(.+)\])?`", test).groups()
    source = (TEST / path).read_text(encoding="utf-8")
    assert re.search(rf"^(    )?def {name}\(", source, re.M), f"{path} has no {name}"
    assert case is None or f'"{case}"' in source, f"{path} has no case {case}"
