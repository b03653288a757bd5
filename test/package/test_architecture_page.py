"""The page on the architecture names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"


@pytest.mark.parametrize("way", ["## How a parameter passes", "## How a command passes", "## How a motion passes",
    "## To add a term", "## To add a check", "## How a reason passes"])
def test_files_on_the_way_exist(way):
    section = PAGE.read_text(encoding="utf-8").split(way)[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_/]+\.(?:py|yaml|msg))`", section)
    assert len(named) >= 4
    assert [name for name in named if not any((root / name).is_file() for root in (ROOT, ROOT / "inertid_ros"))] == []
