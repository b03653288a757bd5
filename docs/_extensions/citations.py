"""``[Key]_`` in docstrings and Markdown cites the work with this key in references.bib; the label is the key."""

import re
from collections.abc import Iterable, Iterator

from pybtex.database import Entry
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx

CITATION = re.compile(r"\[([A-Za-z]+\d{4}[a-z]?)\]_(?!\w)")


class KeyLabels(BaseLabelStyle):
    """Use keys as labels of a bibliography."""

    def format_labels(self, sorted_entries: Iterable[Entry]) -> Iterator[str]:
        for entry in sorted_entries:
            yield entry.key


class KeyStyle(Style):
    """The plain style with keys in place of numbers."""

    default_label_style = KeyLabels


def in_docstring(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = [CITATION.sub(r":cite:`\1`", line) for line in lines]


def in_markdown(app: Sphinx, document: str, content: list[str]) -> None:
    if app.env.doc2path(document).suffix == ".md":
        content[0] = CITATION.sub(r"{cite}`\1`", content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    register_plugin("pybtex.style.formatting", "keys", KeyStyle)
    app.connect("autodoc-process-docstring", in_docstring, priority=900)  # after numpydoc
    app.connect("source-read", in_markdown)
    return {"parallel_read_safe": True}
