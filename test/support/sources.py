"""Python files of the package, parsed once for all tests that look at them."""

import ast
from functools import cache
from pathlib import Path

import pytest

IN_ONE_PROCESS = pytest.mark.xdist_group("sources")  # of the modules that use this one


@cache
def tree(file: Path) -> ast.Module:
    """Syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """All nodes of that tree."""
    return tuple(ast.walk(tree(file)))
