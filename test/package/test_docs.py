"""What is written about the package: citations resolve, examples import, everything public is documented."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import ROOT
from support.sources import IN_ONE_PROCESS, tree

pytestmark = IN_ONE_PROCESS
CITATION = re.compile(r"\[([A-Za-z]+\d{4}[a-z]?)\]_(?!\w)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
IMPORT = re.compile(r"^from (inertid_ros[\w.]*) import (\([^)]*\)|.+)$", re.M)
NAMED = re.compile(r"`(inertid_ros(?:\.\w+)+)`")
SECTIONS = ("Parameters", "Returns", "Raises", "Attributes", "Yields", "Warns", "See Also", "Notes", "Examples")
DEFINED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def sources(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def public_definitions(private: bool = False) -> Iterator[tuple[str, Definition]]:
    """Modules, classes, functions and methods of the package, with a place to report; of private ones if asked for."""
    for file in sources("inertid_ros"):
        place = str(file.relative_to(ROOT))
        yield place, tree(file)
        for node in tree(file).body:
            if isinstance(node, DEFINED) and (private or not node.name.startswith("_")):
                yield f"{place}:{node.lineno} {node.name}", node
                for inner in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(inner, DEFINED) and (private or not inner.name.startswith("_")):
                        yield f"{place}:{inner.lineno} {node.name}.{inner.name}", inner


def section_elements(docstring: str) -> Iterator[tuple[str, str]]:
    """``(section, entry)`` of the lines at the indent of numpydoc's sections."""
    title = ""
    lines = [*docstring.splitlines(), ""]
    for line, after in zip(lines[:-1], lines[1:], strict=True):
        if line in SECTIONS and after and set(after) == {"-"}:
            title = line
        elif title in SECTIONS[:6] and line and not line.startswith(" ") and set(line) != {"-"}:
            yield title, line


def parameters(node: Definition) -> set[str]:
    """Names that a call accepts; none where a class inherits them."""
    if isinstance(node, ast.ClassDef):
        if node.bases:
            return set()
        start = [entry for entry in node.body if isinstance(entry, ast.FunctionDef) and entry.name == "__init__"]
        fields = {ast.unparse(entry.target) for entry in node.body if isinstance(entry, ast.AnnAssign)}
        return fields.union(*map(parameters, start))
    if isinstance(node, ast.Module):
        return set()
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {argument.arg for argument in named if argument is not None}


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


def test_classes_and_functions_have_a_docstring():
    """The name of a method or property, its base class, or ``main`` of a node may say all that there is to say."""
    missing = [
        place
        for place, node in public_definitions()
        if not ast.get_docstring(node)
        and re.fullmatch(r"(?!main$)\w+", place.split(" ")[-1])
        and not any(ast.unparse(entry) == "overload" for entry in getattr(node, "decorator_list", []))
    ]
    assert not missing, "\n".join(missing)


def test_sections_of_docstrings_are_numpydoc():
    """Elements of sections are ``name : type`` (``name`` alone under Raises), their description indented below."""
    wrong = [
        f"{place}: {entry}"
        for place, node in public_definitions()
        for title, entry in section_elements(ast.get_docstring(node) or "")
        if re.match(r"[*\w][\w, *.\[\]`]*(?<! ):(\s|$)", entry) or (title == "Raises" and " : " in entry)
    ]
    assert not wrong, "\n".join(wrong)


def test_documented_parameters_are_those_of_the_signature():
    wrong = []
    for place, node in public_definitions():
        documented = [
            name.strip("* ")
            for title, entry in section_elements(ast.get_docstring(node) or "")
            for name in entry.split(" : ")[0].split(",")
            if title == "Parameters"
        ]
        known = parameters(node)
        wrong += [f"{place}: {name}" for name in documented if known and name not in known]
    assert not wrong, "\n".join(wrong)
