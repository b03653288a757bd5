"""API reference with one page per package and all its modules, written before Sphinx reads its sources.

One page per module would make three hundred pages.
"""

import ast
import re
from pathlib import Path

from sphinx.application import Sphinx

import inertid_ros

PACKAGE = Path(inertid_ros.__file__).parent
GENERATED = {"action", "msg"}  # by rosidl
# Short annotations as in the code, and dots for default factories.
SIGNATURE = {r"~numpy\.ndarray\[[^()]*?~numpy\.float64\]\]": "Array", r"<factory>": "..."}


def modules(folder: Path) -> list[Path]:
    """Modules of a package that hold more than a docstring."""
    files = sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))
    return [file for file in files if ast.parse(file.read_text(encoding="utf-8")).body]


def packages(folder: Path) -> list[Path]:
    """Packages inside a package."""
    return sorted(file.parent for file in folder.glob("*/__init__.py") if file.parent.name not in GENERATED)


def heading(text: str, underline: str) -> list[str]:
    return [text, underline * len(text), ""]


def page(folder: Path, name: str) -> str:
    """reStructuredText of one package: its docstring, its packages, and its modules with their members."""
    lines = [*heading(name, "="), f".. automodule:: {name}", "   :no-members:", ""]
    inside = packages(folder)
    if inside:
        lines += [".. toctree::", "   :maxdepth: 3", "   :titlesonly:", ""]
        lines += [*(f"   {name}.{package.name}" for package in inside), ""]
    for file in modules(folder):
        lines += [*heading(file.stem, "-"), f".. automodule:: {name}.{file.stem}", ""]
    return "\n".join(lines)


def write(folder: Path, name: str, target: Path) -> set[Path]:
    """Write the changed pages of a package and its inner packages; return their files."""
    file, text = target / f"{name}.rst", page(folder, name)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")
    return {file}.union(*(write(package, f"{name}.{package.name}", target) for package in packages(folder)))


def public_names() -> str:
    """reStructuredText with the names of ``import inertid_ros as ir``, and the first line of each docstring."""
    lines = heading("Python: import inertid_ros as ir", "=")
    lines += ["``dir(ir)`` lists these names; :doc:`/reference/api/inertid_ros` has all modules.", ""]
    for name, path in inertid_ros._PUBLIC.items():
        module, _, attribute = path.rpartition(".")
        body = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")).body
        *_, node = (node for node in body if getattr(node, "name", "") == attribute)
        about = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        lines.append(f"* :py:obj:`ir.{name} <inertid_ros.{path}>`: {about}")
    return "\n".join([*lines, ""])


def write_pages(app: Sphinx) -> None:
    target = Path(app.srcdir) / "reference" / "api"
    target.mkdir(parents=True, exist_ok=True)
    public = target / "python.rst"
    public.write_text(public_names(), encoding="utf-8")
    written = {public, *write(PACKAGE, "inertid_ros", target)}
    interfaces = sorted(Path(app.srcdir).glob("interfaces/*.rst"))  # of rosdoc2: messages and actions
    if interfaces:
        root = target / "inertid_ros.rst"
        pages = "\n".join(f"   /interfaces/{file.stem}" for file in interfaces)
        root.write_text(f"{root.read_text(encoding='utf-8')}\n.. toctree::\n\n{pages}\n", encoding="utf-8")
    for stale in set(target.glob("*.rst")) - written:
        stale.unlink()


def readable(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    for pattern, text in SIGNATURE.items():
        signature, returned = (part and re.sub(pattern, text, part) for part in (signature, returned))
    return signature, returned


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-signature", readable)
    return {"parallel_read_safe": True}
