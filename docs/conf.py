"""How Sphinx builds the documentation: ``make docs``, or rosdoc2, which copies this folder to a place of its own."""

import importlib.util
import re
import sys
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
if importlib.util.find_spec("inertid_ros") is None:  # not installed: the source tree
    sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path.cwd())]
import inertid_ros  # noqa: E402

project = "inertid_ros"
author = "inertid_ros maintainers"
project_copyright = "inertid_ros maintainers, Apache License 2.0"
version = release = inertid_ros.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinxcontrib.bibtex", "sphinx_copybutton", "sphinx_design",
    "api_pages", "citations", "sections",
]  # fmt: skip
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
# What rosdoc2 generates besides: the API once more, and the documents of the repository with links that lead nowhere.
exclude_patterns = ["_extensions", "inertid_ros*.rst", "modules.rst", "standards.rst", "standard_docs", "__*"]
rosdoc2_settings = {"enable_autodoc": False}  # it is on, and mocks more than rosdoc2 would
smartquotes = False
html_copy_source = False
html_theme = "furo"
html_title = f"inertid_ros {release}"
html_favicon = "_static/favicon.svg"
html_static_path, html_css_files, html_js_files = ["_static"], ["site.css"], ["tables.js"]
copybutton_exclude = ".linenos, .gp, .go"

# What the modules import and the builder's machine lacks; they are documented all the same.
PACKAGE = Path(inertid_ros.__file__).parent
IMPORTED = {
    name
    for file in PACKAGE.rglob("*.py")
    for name in re.findall(r"^\s*(?:from|import) ([a-z_]\w+)", file.read_text(encoding="utf-8"), re.M)
} | {"inertid_ros.msg", "inertid_ros.action"}
# The folder of the launch files looks like the library of that name.
autodoc_mock_imports = sorted(name for name in IMPORTED if name == "launch" or importlib.util.find_spec(name) is None)
_MockObject.__or__ = lambda self, other: self  # annotations such as `Time | Duration`
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
autosummary_generate = False  # numpydoc brings autosummary along

myst_heading_anchors = 3

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "keys"  # of citations.py: a label is its key
