"""Words that the glossary replaced do not come back: code, comments, messages and documentation use the field's terms.

The words, and what stands in their place, are the column "formerly" of docs/glossary.md, where alone they remain.
"""

import re

import pytest
from support.paths import ROOT

FOLDERS = ("inertid_ros", "test", "benchmarks", "docs", "examples", "launch", "config", "msg", "action", "scripts")
SUFFIXES = {".py", ".md", ".yaml", ".msg", ".action", ".html", ".j2", ".css", ".in"}
EXEMPT = {"docs/glossary.md", "test/package/test_vocabulary.py"}
# Names that are not ours to choose: of other libraries, keys of report.json and of the configuration, and folders of
# the time before.
FOREIGN = re.compile(
    r'solve_triangular|overflow="fold"|sorted_entries|"statements"|report\.statements|`simulation/standing`'
    r'|identify\.spread|options\.spread|"?spread"?[=:]|spread\.<name>|`?spread_link_names|`statements'
)
# Underscores separate words too; "(?<!...)" names the full terms that contain a word and stay.
WORDS = {
    "loudness": r"loud(ly)?|speaks?",
    "obtained": r"(?<!to )(?<!be )come by|came by",
    "fresh": r"(has )?told of late|of late",
    "invalid": r"what was measured is none",
    "prior": r"beliefs?|believ(e|es|ed|ing)|doubt(s|ed|ing)?",
    "without outliers": r"judged",
    "raise priority": r"hurry",
    "retries": r"patiently",
    "received": r"heard",
    "legged robots on force plates": r"standing",
    "whatever fails": r"whatever dies",
    "incremental QR": r"square root update|square_root",
    "R factor": r"triangular",
    "convex program": r"(?<!convex )(?<!quadratic )(?<!convex_)(?<!quadratic_)(?<!semidefinite )programs?",
    "MAP problem, planning problem": r"(?<=class )Problem",
    "identifiability": r"statements?",
    "equation type, motion type, format": r"kinds",
    "cross-validation": r"folds?",
    "lever arm, accessible motion": r"reach|reaches",
    "regrouping": r"carry",
    "elements, named values": r"entries",
    "spread of the prior": r"(?<!prior )(?<!prior_)spread",
}


def files() -> list[str]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    found += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "QUALITY_DECLARATION.md")]
    names = (str(path.relative_to(ROOT)) for path in found if path.is_file() and "_build" not in path.parts)
    return sorted(name for name in names if name not in EXEMPT)


def split_camel_case(text: str) -> str:
    """``MapProblem`` as ``Map_Problem``, so that the words in a class's name are seen."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Of all files, line by line, without foreign names."""
    contents = {name: (ROOT / name).read_text(encoding="utf-8") for name in files()}
    return {name: split_camel_case(FOREIGN.sub("", content)) for name, content in contents.items()}


@pytest.mark.parametrize("term", WORDS)
def test_replaced_words_do_not_come_back(term: str, texts: dict[str, str]) -> None:
    pattern = re.compile(rf"(?<![A-Za-z])(?:{WORDS[term]})(?![A-Za-z])", re.IGNORECASE)
    found = []
    for name, text in texts.items():
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start())
            found.append(f"{name}:{number + 1}: {text.splitlines()[number].strip()}")
    assert not found, f"write '{term}' instead (docs/glossary.md):\n" + "\n".join(found)
