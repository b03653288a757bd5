"""docs/verdict.md explains every verdict, and names no cause that findings do not have."""

import re

from support.paths import ROOT

from inertid_ros.core.findings import CAUSES
from inertid_ros.identification.assessment.gate import Verdict

PAGE = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")


def test_every_verdict_is_explained():
    for verdict in Verdict:
        assert f"| {verdict.value} |" in PAGE


def test_causes_that_are_named_exist():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) <= set(CAUSES)
