"""Measure the folders of the package and the imports between them.

    python scripts/room_graph.py [--root OTHER]    this checkout, or another checkout

This file has the allowed directions between folders (ORDER, ORDER_WITHIN); test/package/test_rooms.py enforces them.
"""

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PACKAGE = "inertid_ros"
GENERATED = ("msg", "action")  # interfaces that a build puts into the package
SMALL = 50  # lines

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
    """

    source: str
    target: str
    line: int


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

    def code_lines(self, file: str) -> int:
        """Number of lines of a file without docstrings, comments and blank lines."""
        text = (self.base / file).read_text(encoding="utf-8")
        layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        code: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in layout | {tokenize.COMMENT}:
                code.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return len(code)

    def _imports_of(self, file: str) -> list[Import]:
        own = [PACKAGE, *Path(file).with_suffix("").parts]
        found: dict[str, Import] = {}
        for node in ast.walk(ast.parse((self.base / file).read_text(encoding="utf-8"))):
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
                    found.setdefault(target, Import(file, target, node.lineno))
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


def best_order(folders: Sequence[str], arrows: Mapping[tuple[str, str], Sequence[Import]]) -> list[str]:
    """Return an order of folders, lowest first, in which few arrows run back up; without a cycle, none does."""
    order, fewest = _greedy_order(folders, arrows), len(arrows) + 1
    while (count := len(back_arrows(order, arrows))) < fewest:
        fewest = count
        for folder in folders:
            rest = [other for other in order if other != folder]
            tried = [[*rest[:place], folder, *rest[place:]] for place in range(len(rest) + 1)]
            order = min(tried, key=lambda candidate: len(back_arrows(candidate, arrows)))
    return order


def _greedy_order(folders: Sequence[str], arrows: Mapping[tuple[str, str], Sequence[Import]]) -> list[str]:
    """Repeatedly take a folder that imports none of the remaining folders. If there is none, take the folder with the
    smallest difference between imported and importing folders (P. Eades, X. Lin, W. F. Smyth, 1993)."""
    left, order = list(folders), []
    while left:
        between = [pair for pair in arrows if set(pair) <= set(left)]
        imported, importing = Counter(pair[1] for pair in between), Counter(pair[0] for pair in between)
        chosen = min(left, key=lambda folder: (importing[folder] > 0, importing[folder] - imported[folder]))
        order.append(chosen)
        left.remove(chosen)
    return order


def back_arrows(order: Sequence[str], arrows: Mapping[tuple[str, str], Sequence[Import]]) -> list[tuple[str, str]]:
    """Return the arrows (importing, imported) from a folder to a folder above it in an order."""
    place = {folder: index for index, folder in enumerate(order)}
    return [(source, target) for source, target in arrows if place[target] > place[source]]


def measure(package: Package) -> str:
    """Return the figures as Markdown tables."""
    small = sum(package.lines(file) < SMALL for file in package.modules)
    back = back_arrows(best_order(list(package.folders), package.arrows), package.arrows)
    fans = ", ".join(f"`{target}` {count}" for count, target in package.fan_in[:5])
    largest = max(package.folders.values())
    rows = [
        ("modules", str(len(package.modules))),
        ("folders with modules", f"{len(package.folders)}, the largest of {largest} files"),
        (f"files under {SMALL} lines", str(small)),
        ("modules at the top level", str(package.folders.get("", 0))),
        ("arrows between folders", str(len(package.arrows))),
        ("arrows that run back up", f"{len(back)}" + "".join(f"<br>`{a or '.'}` → `{b or '.'}`" for a, b in back)),
        ("largest fan-in (importing modules)", fans),
        ("files per folder", ", ".join(f"`{folder or '.'}` {count}" for folder, count in package.folders.items())),
    ]
    return "\n".join(["| measure | figure |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> int:
    """Print the figures of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HERE, help="checkout to measure")
    package = Package(parser.parse_args().root)
    lines, code = (sum(map(count, package.files)) for count in (package.lines, package.code_lines))
    print(f"{PACKAGE}/: {lines} lines, {code} of them code\n\n{measure(package)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
