"""Where the repository's files are, for tests at any depth."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
TEST = ROOT / "test"
SUPPORT = TEST / "support"
