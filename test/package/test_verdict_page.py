"""docs/verdict.md explains every cause that a finding may have, in the words of the findings, and every verdict."""

import re

from support.paths import ROOT

from inertid_ros.core.findings import CAUSES
from inertid_ros.identification.assessment.gate import Verdict

PAGE = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")


def test_every_cause_has_its_line_and_a_remedy():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE.partition("## Causes")[2], re.M)
    assert {cause: meaning for cause, meaning, _ in rows} == CAUSES, "docs/verdict.md: write a line for each cause"
    assert [cause for cause, *_ in rows] == list(CAUSES), "in the order of CAUSES"
    assert all(remedy.strip() for *_, remedy in rows)


def test_every_verdict_is_explained():
    for verdict in Verdict:
        assert f"| {verdict.value} |" in PAGE
