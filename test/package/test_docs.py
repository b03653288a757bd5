"""What is written about the package: citations resolve, and examples import."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CITATION = re.compile(r"\[([A-Za-z]+\d{4}[a-z]?)\]_(?!\w)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
IMPORT = re.compile(r"^from (inertid_ros[\w.]*) import (\([^)]*\)|.+)$", re.M)
NAMED = re.compile(r"`(inertid_ros(?:\.\w+)+)`")


def sources(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def test_every_citation_is_in_the_references():
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8"), re.M))
    files = [*sources("inertid_ros", "test", "benchmarks", "examples", "launch"), *PAGES]
    cited = {key: file for file in files for key in CITATION.findall(file.read_text(encoding="utf-8"))}
    assert not {key: str(file) for key, file in cited.items() if key not in keys}
    assert len(cited) > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_imports_of_pages_are_true(page):
    text = page.read_text(encoding="utf-8")
    for module, names in IMPORT.findall(text):
        exec(f"from {module} import {names}", {})
    for name in NAMED.findall(text):
        module, *attributes = _module_and_attributes(name)
        target = importlib.import_module(module)
        for attribute in attributes:
            target = getattr(target, attribute)


def _module_and_attributes(name: str) -> list[str]:
    """``[module, attribute, ...]`` of a dotted name."""
    parts = name.split(".")
    for count in range(len(parts), 1, -1):
        try:
            found = importlib.util.find_spec(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        if found is not None:
            return [".".join(parts[:count]), *parts[count:]]
    raise AssertionError(f"{name}: no such module")
