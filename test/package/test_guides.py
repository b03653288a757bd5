"""Commands and Python code of the README and of every guide run as they are written, on small simulated robots."""

import html
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.guides import FIRST, NOT_RUN, PAGES, begin, blocks, run
from support.paths import ROOT
from support.quick_outputs import drawn
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.example_robots import without_geometry

from inertid_ros.calibration import planning
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.report.pages import render_page
from inertid_ros.report.report_content import report_content

ASKED_FOR = {
    "guides/first_result.md": "from a bag to a result",
    "guides/own_arm.md": "Your own arm",
    "guides/own_humanoid.md": "force plates",
    "guides/bad_result.md": "My result is bad",
    "guides/viewers.md": "RViz, PlotJuggler and Foxglove",
    "guides/migration.md": "Coming from another package",
    "guides/platforms.md": "Tested and untested platforms",
    "guides/installation.md": "Installation",
    "own_robot.md": "inertid init",
    "recordings.md": "CSV",
    "reference/commands.md": "Commands",
    "report.md": "Reading the report",
    "reference/files.md": "Files",
}
"""Pages below docs, and what their titles have to say."""


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the commands of the first guide have run."""
    folder = tmp_path_factory.mktemp("first_result")
    with drawn():
        for block in blocks(FIRST):
            if not block.reason:
                run(block, folder)
    return folder


def test_the_first_guide_comes_to_a_result_that_may_be_used(arm: Path) -> None:
    assert "verdict: use\n" in (arm / "result" / "parameters.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if page != FIRST], ids=lambda page: page.name)
def test_what_a_page_shows_runs(page: Path, arm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planning.planner.plan_excitation

    def plan_quickly(model: Any, limits: Any, start: Any, options: ExcitationOptions, *further: Any) -> Any:
        return plan(model, limits, start, attrs.evolve(options, starts=4, improved=1, iterations=5), *further)

    monkeypatch.setattr(planning.planner, "plan_excitation", plan_quickly)
    begin(page, arm, tmp_path)
    for urdf in tmp_path.glob("*.urdf"):  # without distances a motion is planned in a fifth of the time
        urdf.write_text(without_geometry(urdf.read_text(encoding="utf-8")), encoding="utf-8")
    for block in blocks(page):
        if not block.reason:
            run(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_that_do_not_run_say_why(page: Path) -> None:
    found = blocks(page)
    assert [str(block) for block in found if block.reason and block.reason not in NOT_RUN] == []
    text = page.read_text(encoding="utf-8")
    shown = len(re.findall(r"^ *```(?:bash|python|sh|shell|console)$", text, re.M))
    assert shown == len(found), "a block that is not found is not run"
    assert not re.search(r"^ *```\n *(?:cd|docker|inertid|make|pip|python|ros2) ", text, re.M), "commands are bash"


@pytest.mark.parametrize("page", ASKED_FOR)
def test_what_users_ask_for_has_a_page(page: str) -> None:
    """Its title says so, and a section of the start page of the documentation leads to it."""
    title = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n")[0]
    assert title.startswith("# ") and ASKED_FOR[page] in title
    index = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8").partition(".. toctree::")[2]
    sections = [ROOT / "docs" / f"{name}.md" for name in re.findall(r"^   ([a-z_/]+)$", index, re.M)]
    links = [(section.parent / link).resolve() for section in sections
        for link in re.findall(r"\]\((\S+?)\)", section.read_text(encoding="utf-8"))]  # fmt: skip
    assert (ROOT / "docs" / page).resolve() in links


def test_every_section_of_the_report_is_explained() -> None:
    page = html.unescape(render_page(report_content(calibrated_case()[1])))
    sections = re.findall(r'<li><a href="#\w+">(\d+) (.*?)</a></li>', page)
    text = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    explained = re.findall(r"^(\d+)\. \*\*(.*?)\.?\*\*", text, re.M)
    assert explained == sections and len(sections) == 12


def test_pages_show_something_to_run() -> None:
    assert sum(not block.reason for page in PAGES for block in blocks(page)) >= 15
