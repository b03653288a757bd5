"""Write the causes of bad results into docs/guides/bad_result.md, from the table of messages.

    python scripts/causes_page.py            write
    python scripts/causes_page.py --check    exit status 1 if the page is out of date
"""

import argparse
import re
import sys
from pathlib import Path

from inertid_ros.core.findings import SYMPTOMS, Cause

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "bad_result.md"
START, END = "<!-- causes start -->\n", "<!-- causes end -->"


def causes() -> str:
    """Return the generated part of the page: a section for every symptom, a row for every cause."""
    parts = []
    for symptom, found in SYMPTOMS.items():
        rows = [f"| `{name}` | {cell(cause.meaning)} | {remedies(cause)} |" for name, cause in found.items()]
        parts.append("\n".join([f"### {symptom}\n", "| cause | what it means | what to do |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def remedies(cause: Cause) -> str:
    """Return all remedies of a cause, each with its case; a remedy that another remedy begins with is not repeated."""
    texts = cause.remedies.items()
    shown = {case: text for case, text in texts if not any(text != o and o.startswith(text) for _, o in texts)}
    labels = {case: f"*{case.replace('_', ' ')}:* " if case and len(shown) > 1 else "" for case in shown}
    return "<br>".join(labels[case] + cell(text) for case, text in shown.items())


def cell(text: str) -> str:
    """Return the text of a table's cell; placeholders of messages are italic, tags of URDFs are code."""
    text = re.sub(r"'?\{(\w+)\}'?", r"*\1*", text).replace("{{", "{").replace("}}", "}")
    return re.sub(r"(<\w+>)", r"`\1`", text)


def page() -> str:
    """Return the page with the new generated part."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return before + START + causes() + END + rest.partition(END)[2]


def main() -> int:
    """Write or check the page; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit status 1 if the page is out of date")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.name}: out of date; run python scripts/causes_page.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
