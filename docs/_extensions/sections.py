"""A Markdown page with ``<!-- section -->`` is a section, with the pages that its list items or rows link first.

Code hosts show such a page as a list of links; Sphinx also takes it as a hidden ``toctree``.
"""

import re

from sphinx.application import Sphinx

MARK = "<!-- section -->"
FIRST_LINK = re.compile(r"^[*|] \[[^\]]*\]\(([\w./-]+?)(?:\.md)?\)", re.M)


def add_contents(app: Sphinx, document: str, content: list[str]) -> None:
    if MARK in content[0]:
        pages = FIRST_LINK.findall(content[0].partition(MARK)[2])
        content[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True}
