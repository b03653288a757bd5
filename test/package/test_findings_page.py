"""docs/findings.md: every test that it names exists."""

import re

import pytest
from support.named_tests import assert_test_exists
from support.paths import ROOT

LINES = re.findall(r"^\| (.*) \|$", (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), re.M)
ROWS = [line for line in LINES if line != "finding | present behaviour | test"]


def test_every_table_has_the_same_columns() -> None:
    assert len(LINES) - len(ROWS) == 5 and len(ROWS) >= 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(" | ")[0])
def test_the_test_of_a_finding_exists(row: str) -> None:
    finding, now, test = (cell.strip() for cell in row.split(" | "))
    assert finding and now
    assert_test_exists(test)
