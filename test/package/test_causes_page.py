"""docs/guides/bad_result.md: the table of messages, and messages that a user can find in the sources."""

import ast
import re
import subprocess
import sys

from support.paths import ROOT
from support.sources import IN_ONE_PROCESS, nodes

from inertid_ros.core.findings import CAUSES, SYMPTOMS, remedy_for

pytestmark = IN_ONE_PROCESS
PAGE = (ROOT / "docs" / "guides" / "bad_result.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "inertid_ros"


def test_the_page_is_that_of_the_table() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "causes_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_cause_stands_on_the_page_once() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE.partition("<!-- causes start -->")[2], re.M) == list(CAUSES)
    assert len(CAUSES) == sum(map(len, SYMPTOMS.values())), "a cause has one symptom"


def test_remedies_of_messages_come_from_the_table() -> None:
    """Where findings are made no remedy is a text of its own."""
    own = []
    for file in sorted(LIBRARY.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not re.search(r"^from inertid_ros\.core\.findings import .*\bFinding\b", text, re.M):
            continue
        for node in nodes(file):
            given = None
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and len(node.args) > 3:
                given = node.args[3]
            elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "remedy" for target in node.targets):
                given = node.value
            if isinstance(given, ast.Constant | ast.JoinedStr):
                own.append(f"{file.relative_to(ROOT)}:{given.lineno}")
    assert own == [], "use remedy_for"


def test_a_remedy_is_filled_in() -> None:
    assert remedy_for("time_unit", factor="1000", unit="milliseconds").startswith("divide the stamps by 1000 (")
    assert remedy_for("effort_current", "estimated", scales="{a: 2}").endswith("of every joint (about {a: 2})")
    assert remedy_for("delay", "removed") != remedy_for("delay")


def test_every_remedy_that_the_library_asks_for_exists() -> None:
    asked = set()
    for file in LIBRARY.rglob("*.py"):
        for node in nodes(file):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "remedy_for":
                words = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
                if words and words[0] in CAUSES and len(words) == len(node.args):
                    values = sorted(keyword.arg or "" for keyword in node.keywords)
                    asked.add((words[0], words[1] if len(words) > 1 else "", *values))
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "with_remedy":
                keywords = {keyword.arg or "": keyword.value for keyword in node.keywords}
                words = [node.args[0], keywords.pop("case", ast.Constant(""))]
                if all(isinstance(word, ast.Constant) for word in words) and "" not in keywords:
                    asked.add((*(word.value for word in words), *sorted(set(keywords) - {"recording"})))
    for cause, case, *values in asked:
        assert remedy_for(cause, case, **dict.fromkeys(values, "x")), (cause, case)
    assert len(asked) > 20


def test_messages_that_are_quoted_are_in_the_sources() -> None:
    table = PAGE.partition("| message | what to do |")[2].partition("\n\n")[0]
    quoted = re.findall(r"^\| `(.*?)` \|", table, re.M)
    sources = "\n".join(file.read_text(encoding="utf-8") for file in LIBRARY.rglob("*.py"))
    parts = [piece.strip() for text in quoted for piece in text.split("...") if piece.strip()]
    assert len(parts) >= 5
    assert [part for part in parts if part not in sources] == []
