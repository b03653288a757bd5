"""Measure the folders of the package and the imports between them.

    python scripts/room_graph.py [--root OTHER]    this checkout, or another checkout

This file has the allowed directions between folders (ORDER, ORDER_WITHIN); test/package/test_rooms.py enforces them.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

HERE = Path(__file__).resolve().parents[1]
PACKAGE = "inertid_ros"
GENERATED = ("msg", "action")  # interfaces that a build puts into the package
SMALL = 50  # lines
IDENTIFY = ("cli/main.py", "cli/identify.py")  # `inertid identify`; main imports the module of the command by its name
LONG, MANY = 60, 6  # lines and parameters of a function
IMPORTS = (ast.Import, ast.ImportFrom)
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")

# A folder may import itself and the folders before it in the list. Folders on one line do not import one another.
ORDER: tuple[tuple[str, ...], ...] = (
    ("core",),
    ("config",),
    ("robot",),
    ("regressors",),
    ("data",),
    ("identification",),
    ("excitation",),
    ("report",),
    ("calibration",),
    ("payload",),
    ("monitoring",),
    ("adaptive_control",),
    ("simulation",),
    ("fleet",),
    ("cli", "ros"),
    ("nodes",),
)
# The allowed directions within a folder; "" are the files that lie in it directly.
ORDER_WITHIN: dict[str, tuple[tuple[str, ...], ...]] = {
    "robot": (("urdf",), ("",)),
    "data": (("",), ("files",), ("screening",), ("preparation",)),
    "identification": (("information",), ("base_parameters",), ("solvers",), ("assessment",), ("",)),
    "excitation": (("",), ("constraints",), ("execution",), ("planning",)),
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One module that imports another.

    Attributes
    ----------
    source, target : str
        Paths of the two files below the package.
    line : int
        Line of the import.
    for_types : bool
        Whether only type checkers execute it.
    """

    source: str
    target: str
    line: int
    for_types: bool = False


def folder_of(file: str) -> str:
    """Folder of a file below the package; empty for the package itself."""
    return str(Path(file).parent).removeprefix(".")


class Package:
    """Files and imports of one checkout.

    Parameters
    ----------
    root : Path
        The checkout.
    """

    def __init__(self, root: Path) -> None:
        self.base = root / PACKAGE
        paths = (path.relative_to(self.base) for path in self.base.rglob("*.py"))
        self.files = sorted(str(path) for path in paths if path.parts[0] not in GENERATED)

    @cached_property
    def imports(self) -> list[Import]:
        """All imports between files of the package, including imports within functions.

        Imports in the package's own ``__init__.py`` are left out, as this file imports public names only at their
        first use.
        """
        return [found for file in self.files if file != "__init__.py" for found in self._imports_of(file)]

    @cached_property
    def modules(self) -> list[str]:
        """All files except ``__init__.py``."""
        return [file for file in self.files if Path(file).name != "__init__.py"]

    @cached_property
    def folders(self) -> dict[str, int]:
        """Number of modules per folder, without folders that hold only folders."""
        return dict(sorted(Counter(map(folder_of, self.modules)).items()))

    @cached_property
    def arrows(self) -> dict[tuple[str, str], list[Import]]:
        """Imports between two folders, by the pair (importing, imported)."""
        found: dict[tuple[str, str], list[Import]] = defaultdict(list)
        for entry in self.imports:
            pair = folder_of(entry.source), folder_of(entry.target)
            if pair[0] != pair[1]:
                found[pair].append(entry)
        return dict(sorted(found.items()))

    @cached_property
    def fan_in(self) -> list[tuple[int, str]]:
        """Pairs of the number of importing modules and the imported module, largest number first."""
        importers = {(entry.source, entry.target) for entry in self.imports}
        counts = Counter(target for _, target in importers)
        return sorted(((count, target) for target, count in counts.items()), key=lambda pair: (-pair[0], pair[1]))

    def lines(self, file: str) -> int:
        """Number of lines of a file."""
        return len((self.base / file).read_text(encoding="utf-8").splitlines())

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Syntax tree of each file."""
        return {file: ast.parse((self.base / file).read_text(encoding="utf-8")) for file in self.files}

    def nodes(self, *types: type[ast.AST]) -> Iterator[tuple[str, Any]]:
        """All nodes of some types, each with its file."""
        return ((file, node) for file, tree in self.trees.items() for node in ast.walk(tree) if isinstance(node, types))

    def code_lines(self, file: str) -> int:
        """Number of lines of a file without docstrings, comments and blank lines."""
        code = self._token_lines(file, comments=False)
        for node in ast.walk(self.trees[file]):
            if is_docstring(node):
                code.difference_update(range(node.lineno, node.lineno + lines_of(node)))
        return len(code)

    def comment_lines(self, file: str) -> int:
        """Number of lines of a file that hold only a comment."""
        return len(self._token_lines(file, comments=True) - self._token_lines(file, comments=False))

    def _token_lines(self, file: str, comments: bool) -> set[int]:
        layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        text = io.StringIO((self.base / file).read_text(encoding="utf-8"))
        return {line for token in tokenize.generate_tokens(text.readline)
            if token.type not in layout and (token.type == tokenize.COMMENT) == comments
            for line in range(token.start[0], token.end[0] + 1)}

    @cached_property
    def constants(self) -> dict[str, int]:
        """Number of modules by the name of a constant."""
        names = Counter(name for file in self.modules for name in {target.id for node in self.trees[file].body
            if isinstance(node, ast.Assign | ast.AnnAssign) for target in ast.walk(node)
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store) and CONSTANT.fullmatch(target.id)})
        return dict(names.most_common())

    @cached_property
    def large_functions(self) -> list[str]:
        """Functions with more than LONG lines or MANY parameters, as ``file::name``."""
        found = []
        for file, node in self.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(parameter.arg not in ("self", "cls") for parameter in parameters)
            if lines_of(node) > LONG or count > MANY:
                found.append(f"{file}::{node.name}")
        return found

    def loaded(self, *starts: str) -> set[str]:
        """Modules that are loaded from some files, with all imports within functions."""
        targets = defaultdict(set)
        for entry in self.imports:
            if not entry.for_types:
                targets[entry.source].add(entry.target)
        found, new = set(), set(starts)
        while new:
            found |= new
            new = {target for file in new for target in targets[file]} - found
        return found & set(self.modules)

    def _imports_of(self, file: str) -> list[Import]:
        own = [PACKAGE, *Path(file).with_suffix("").parts]
        found: dict[str, Import] = {}
        for_types = {inner for node in ast.walk(self.trees[file])
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            for inner in ast.walk(node)}
        for node in sorted(ast.walk(self.trees[file]), key=for_types.__contains__):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = own[: len(own) - node.level] if node.level else []
                module = ".".join([*start, *([node.module] if node.module else [])])
                names = [f"{module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                target = self._file_of(name)
                if target is not None and target != file:
                    found.setdefault(target, Import(file, target, node.lineno, node in for_types))
        return list(found.values())

    def _file_of(self, name: str) -> str | None:
        """Return the file of an imported name; None if the name is not from this package."""
        parts = name.split(".")
        if parts[0] != PACKAGE or parts[1:2] and parts[1] in GENERATED:
            return None
        for end in range(len(parts), 1, -1):  # not the package itself, which holds only public names
            module = Path(*parts[1:end])
            for candidate in (module.with_suffix(".py"), module / "__init__.py"):
                if str(candidate) in self._known:
                    return str(candidate)
        return None

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.files)


def ranks(order: Sequence[Sequence[str]]) -> dict[str, int]:
    """Map each folder to its place in an order."""
    return {folder: place for place, group in enumerate(order) for folder in group}


def allowed(source: str, target: str) -> bool:
    """Return True if ``source`` may import ``target`` by ORDER and ORDER_WITHIN.

    Raises
    ------
    KeyError
        A folder is not in the order.
    """
    if folder_of(source) == folder_of(target):
        return True
    (room, *below), (other, *other_below) = Path(source).parts[:-1], Path(target).parts[:-1]
    if room != other:
        place = ranks(ORDER)
        return place[other] < place[room]
    if room not in ORDER_WITHIN:
        return True  # cycles are searched among all folders
    within = ranks(ORDER_WITHIN[room])
    first, second = (path[0] if path else "" for path in (below, other_below))
    return first == second or within[second] < within[first]


def is_docstring(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Return True for a text that stands as a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def lines_of(node: ast.stmt) -> int:
    """Return the number of lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def measure(package: Package) -> str:
    """Return the figures as Markdown tables."""
    small = sum(package.lines(file) < SMALL for file in package.modules)
    code, comments = (sum(map(count, package.files)) for count in (package.code_lines, package.comment_lines))
    imports = sum(lines_of(node) for _, node in package.nodes(*IMPORTS))
    docstrings = sum(lines_of(node) for _, node in package.nodes(ast.Expr) if is_docstring(node))
    frequent = [f"`{name}` {count}" for name, count in package.constants.items() if count > 2]
    fans = ", ".join(f"`{target}` {count}" for count, target in package.fan_in[:5])
    rows = [
        ("modules", str(len(package.modules))),
        ("folders with modules", f"{len(package.folders)}, the largest of {max(package.folders.values())} files"),
        (f"files under {SMALL} lines", str(small)),
        ("code lines", str(code)),
        ("docstring lines", str(docstrings)),
        ("comment lines", str(comments)),
        ("import lines", f"{imports}, {imports / code:.2%} of the code"),
        ("names of constants in more than two modules", ", ".join(frequent) or "none"),
        (f"functions above {LONG} lines or {MANY} parameters", ", ".join(package.large_functions) or "none"),
        ("modules loaded by `inertid identify`", str(len(package.loaded(*IDENTIFY)))),
        ("modules at the top level", str(package.folders.get("", 0))),
        ("arrows between folders", str(len(package.arrows))),
        ("largest fan-in (importing modules)", fans),
        ("files per folder", ", ".join(f"`{folder or '.'}` {count}" for folder, count in package.folders.items())),
    ]
    return "\n".join(["| measure | figure |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> int:
    """Print the figures of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE, help="checkout to measure")
    package = Package(parser.parse_args().root)
    print(f"{PACKAGE}/: {sum(map(package.lines, package.files))} lines\n\n{measure(package)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
