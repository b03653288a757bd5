"""The page on the architecture: its figures are those of the code, and the files that it names exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"


def test_figures_are_those_of_the_code():
    command = [sys.executable, str(ROOT / "scripts" / "room_graph.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_on_the_way_of_a_parameter_exist():
    way = PAGE.read_text(encoding="utf-8").split("## One parameter's way")[1]
    named = re.findall(r"`([a-z_/]+\.py)`", way)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / "inertid_ros" / name).is_file()] == []
