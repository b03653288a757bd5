"""Print tables of benchmark figures, and write each table to its section of a page of docs/benchmarks."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "benchmarks"
FIGURES = ROOT / "docs" / "figures"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def machine() -> str:
    """Machine and commit of a measurement in one line."""
    names = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":", 1)[1].strip() for line in names if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {commit()}"


def commit() -> str:
    """Current commit with its date, and a note if package or benchmarks have uncommitted changes."""
    git = ["git", "-C", str(ROOT)]
    shown = subprocess.run([*git, "log", "-1", "--format=%h of %cs"], capture_output=True, text=True)
    if shown.returncode:
        return "not a commit"
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "inertid_ros", "benchmarks"]).returncode
    return f"commit {shown.stdout.strip()}{', with changes' if changed else ''}"


def page_of(section: str) -> Path:
    """Page of docs/benchmarks with the section's markers; index.md if the section is new."""
    pages = sorted(PAGES.glob("*.md"))
    return next((page for page in pages if f"<!-- {section} -->" in page.read_text()), PAGES / "index.md")


def publish(section: str, text: str, file: Path | None = None) -> None:
    """Print the text, and write it between the section's markers in a file, by default :func:`page_of`."""
    print(text, flush=True)
    file = file or page_of(section)
    page = file.read_text() if file.exists() else "# Benchmarks\n"
    block = f"<!-- {section} -->\n{text.strip()}\n<!-- /{section} -->"
    pattern = re.compile(rf"<!-- {re.escape(section)} -->.*?<!-- /{re.escape(section)} -->", re.DOTALL)
    page = pattern.sub(lambda _: block, page) if pattern.search(page) else f"{page.rstrip()}\n\n{block}\n"
    file.parent.mkdir(exist_ok=True)
    file.write_text(page)


def datasets() -> Path | None:
    """Folder of the recorded data sets, or None with a printed notice."""
    folder = Path(os.environ.get("INERTID_DATASETS", ROOT.parent / "shared" / "datasets"))
    if folder.is_dir():
        return folder
    print(f"skipped: no recorded data sets in {folder}; set INERTID_DATASETS to their folder")
    return None
