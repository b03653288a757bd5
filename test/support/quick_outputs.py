"""Files that tests write: on no disk yet, and pages without their plots, which take as long as a small fit."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import pytest

from inertid_ros.report import drawing, pages


def _blank(width: float, height: float, label: str, _draw: object) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}"></svg>'


@contextmanager
def drawn() -> Iterator[None]:
    """Pages with their plots, in tests of other folders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "svg", drawing.svg)
        yield


@pytest.fixture(scope="module", autouse=True)
def pages_without_plots(request: pytest.FixtureRequest) -> Iterator[None]:
    """Before the fixtures of the module, as some of these write results; tests of reports look at plots."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "report":
            patch.setattr(pages, "svg", _blank)
        yield


@pytest.fixture(scope="session", autouse=True)
def files_not_synced() -> Iterator[None]:
    """Leave it to the system when files of this process come to the disk: no test pulls the plug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield
