"""docs/faults.md, docs/safety.md and SECURITY.md: every test that they name exists, and every event with figures."""

import re

import pytest
from support.excitation.combined_events import ALL_EVENTS, STREAM_PAUSES
from support.named_tests import assert_test_exists
from support.paths import ROOT

ROWS = re.findall(r"^\| (\d+) \| (.*) \|$", (ROOT / "docs" / "faults.md").read_text(encoding="utf-8"), re.M)


def test_rows_are_numbered_and_enough() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= 70


@pytest.mark.parametrize("number, row", ROWS, ids=[number for number, _ in ROWS])
def test_the_test_of_a_row_exists(number: str, row: str) -> None:
    fault, happens, test, how, *_ = (cell.strip() for cell in row.split("|"))
    assert fault and happens and how
    for event in re.findall(r"given time: \*([^*]+)\*", how):
        assert event in (*ALL_EVENTS, STREAM_PAUSES)
    if test == "none":
        assert "untested" in how
        return
    assert_test_exists(test)


SAFETY = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
ARMING = re.findall(r"^\| .* \| .* \| (`[^`]+::[^`]+`) \|$", SAFETY, re.M)


@pytest.mark.parametrize("test", ARMING)
def test_what_is_said_of_arming_is_tested(test: str) -> None:
    assert_test_exists(test)


THREATS = re.findall(r"^\|[^|]*\| .* \| (`\S+::.*`|none) \|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize("tests", THREATS)
def test_protection_is_tested(tests: str) -> None:
    for test in tests.split(", ") if tests != "none" else []:
        assert_test_exists(test)


def test_every_threat_names_its_tests() -> None:
    assert len(THREATS) == 15 and THREATS.count("none") == 3
