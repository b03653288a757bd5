"""Pages that a newcomer sees, in headless Chromium: pictures at 1280 and 400 px, light and dark, and checks of each.

    make docs && python benchmarks/screens.py [--only NAME] [--output DIR] [--site DIR] [--tools DIR]

Needs Chromium on the path, ``pip install playwright``, and in the folder of --tools what ``npm install --prefix DIR
axe-core github-markdown-css`` puts there, for contrast and the look of a code host; without the former two it is
skipped. Checked on each page: text that its element cuts, tables that scroll, horizontal scrolling, errors on the
console, requests beyond the page's own files, contrast (WCAG 2 AA); on the site also: every page is two visible links
from the front page, and the search finds the page of each word of WANTED first. Exit status 1 if a check fails.
"""

import argparse
import http.server
import importlib.util
import runpy
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tables import ROOT

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")
PATIENCE_MS = 300_000  # on a busy machine
SITE = {"front": "index.html", "guide": "guides/first_result.html", "configuration": "reference/configuration.html"}
WANTED = {
    "install": "guides/installation.html", "UR5": "robots.html", "csv": "recordings.html", "gripper": "own_robot.html",
}  # fmt: skip
# Text whose element hides what does not fit, tables that scroll in a box, and the width that the page needs.
CUT = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  if (element.querySelector("table") && ["auto", "scroll"].includes(style.overflowX))
    return element.scrollWidth > element.clientWidth + 1;
  return element.childNodes.length && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    && box.width > 2 && box.height > 2 && ["hidden", "clip"].includes(style.overflowX)
    && element.scrollWidth > element.clientWidth + 1 && style.clip === "auto";
}).map((element) => element.textContent.trim().slice(0, 60))"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
LINKS = """() => [...document.querySelectorAll("a[href]")].filter((link) => link.checkVisibility())
  .map((link) => link.href.split("#")[0])"""


def main() -> int:
    """Take all pictures, print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="name of one page")
    parser.add_argument("--output", type=Path, default=Path(".build/screens"), help="folder of pictures")
    parser.add_argument("--site", type=Path, default=ROOT / ".build" / "docs", help="built documentation")
    parser.add_argument("--tools", type=Path, default=Path(), help="folder with node_modules")
    options, _ = parser.parse_known_args()
    if importlib.util.find_spec("playwright") is None or shutil.which("chromium") is None:
        print("pictures of pages: skipped, Chromium or playwright is missing")
        return 0
    if not (options.site / "index.html").exists():
        print(f"pictures of pages: skipped, {options.site} holds no site; run make docs")
        return 0
    from playwright.sync_api import sync_playwright

    options.output.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, served(options.site) as site, sync_playwright() as driver:
        pages = {name: f"{site}/{page}" for name, page in SITE.items()}
        pages |= {name: page.as_uri() for name, page in made(Path(folder), options.tools, options.only).items()}
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, address in pages.items():
            if options.only in ("", name):
                wrong += shoot(browser, name, address, options)
        if options.only in ("", "site"):
            wrong += [*check_search(browser, site), *check_clicks(browser, site, options.site)]
        browser.close()
    print(*wrong or ["all checks passed"], sep="\n")
    return int(bool(wrong))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of a folder on the loopback interface."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def made(folder: Path, tools: Path, only: str) -> dict[str, Path]:
    """Write README as a code host shows it, a motion page, a report and a fleet page; return their files."""
    pages = {}
    for name, write in (("readme", readme), ("report", report), ("motion", motion), ("fleet", fleet)):
        if only in ("", name):
            pages[name] = write(folder / name, tools)
    return pages


def readme(folder: Path, tools: Path) -> Path:
    """README in the style sheet of a code host, without JavaScript."""
    from markdown_it import MarkdownIt

    folder.mkdir()
    sheet = tools / "node_modules" / "github-markdown-css" / "github-markdown.css"
    style = sheet.read_text(encoding="utf-8") if sheet.exists() else ""
    body = MarkdownIt("gfm-like", {"linkify": False}).render((ROOT / "README.md").read_text(encoding="utf-8"))
    page = folder / "readme.html"
    page.write_text(
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<base href='{ROOT.as_uri()}/'><title>README</title><style>{style} body {{ margin: 0 auto; padding: 1rem;"
        f" max-width: 900px }}</style><body class='markdown-body'><main>{body}</main></body></html>",
        encoding="utf-8",
    )
    return page


def report(folder: Path, tools: Path) -> Path:
    """Report of a simulated Panda."""
    from support.recordings.simulated_arms import simulated_case

    from inertid_ros.calibration.calibrate import calibrate

    case = simulated_case("panda")
    return calibrate(case.given, case.train, case.held_out).save(folder) / "report.html"


def motion(folder: Path, tools: Path) -> Path:
    """Page of two planned motions of the arm of the first guide."""
    from inertid_ros.cli.main import main as inertid
    from inertid_ros.simulation.example_robots import packaged_urdf

    folder.mkdir()
    (folder / "robot.urdf").write_text(packaged_urdf("example_arm"), encoding="utf-8")
    command = ["excite", "--quiet", "--urdf", str(folder / "robot.urdf"), "--output", str(folder / "plan")]
    inertid([*command, "--set", "excitation.starts=4", "--set", "excitation.improved=1"])
    return folder / "plan" / "excitation.html"


def fleet(folder: Path, tools: Path) -> Path:
    """Page of the fleet that the tests of this page make up."""
    from inertid_ros.fleet.results import render_fleet_page

    folder.mkdir()
    page = folder / "fleet.html"
    content = runpy.run_path(str(ROOT / "test" / "fleet" / "test_fleet_page.py"))["CONTENT"]
    page.write_text(render_fleet_page(content), encoding="utf-8")
    return page


def shoot(browser: Any, name: str, address: str, options: argparse.Namespace) -> list[str]:
    """Picture of one page in all sizes and schemes; return what is wrong."""
    wrong = []
    axe = options.tools / "node_modules" / "axe-core" / "axe.min.js"
    for width in WIDTHS:
        for scheme in SCHEMES:
            size = {"width": width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
            page, place = context.new_page(), f"{name} at {width} px, {scheme}"
            page.set_default_timeout(PATIENCE_MS)
            said: list[Any] = []
            asked: list[Any] = []
            page.on("console", into(said))
            page.on("pageerror", into(said))
            page.on("request", into(asked))
            page.goto(address, wait_until="load")
            texts = [line if isinstance(line, Exception) else line.text for line in said
                if getattr(line, "type", "error") == "error"]
            wrong += [f"{place}: console: {text}" for text in texts]
            wrong += [f"{place}: request: {request.url}" for request in asked
                if not request.url.startswith(("http://127.0.0.1", "data:", "file:"))]
            page.screenshot(path=options.output / f"{name}_{width}_{scheme}.png")
            wrong += [f"{place}: cut: {text}" for text in page.evaluate(CUT)]
            if (excess := page.evaluate(OVERFLOW)) > 0:
                wrong.append(f"{place}: scrolls {excess} px to the right")
            if axe.exists():
                page.add_script_tag(path=axe)
                found = page.evaluate("() => axe.run({runOnly: ['color-contrast']})")
                wrong += [f"{place}: contrast: {node['html'][:90]} {node['any'][0]['message'][:120]}"
                    for violation in found["violations"] for node in violation["nodes"][:3]]
            context.close()
    return wrong


def into(events: list) -> Callable[[object], None]:
    return lambda event: events.append(event)  # a bound method has no place for what Playwright notes on a handler


def check_search(browser: Any, site: str) -> list[str]:
    """Words whose page the search of the site does not find first."""
    wrong, page = [], browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    for word, wanted in WANTED.items():
        page.goto(f"{site}/search.html?q={word}")
        first = page.wait_for_selector("#search-results li a", timeout=PATIENCE_MS).get_attribute("href")
        page.wait_for_timeout(1500)  # further results are put before
        first = page.locator("#search-results li a").first.get_attribute("href") or ""
        if first.split("?")[0].split("#")[0] != wanted:
            wrong.append(f"search: '{word}' finds {first} first, not {wanted}")
    return wrong


def check_clicks(browser: Any, site: str, folder: Path) -> list[str]:
    """Pages that are not at the end of two visible links from the front page."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)

    def links(address: str) -> set[str]:
        page.goto(address)
        return {link for link in page.evaluate(LINKS) if link.startswith(site)}

    near = links(f"{site}/index.html")
    near |= {target for link in sorted(near) for target in links(link)}
    own = {f"{site}/{file.relative_to(folder)}" for file in folder.rglob("*.html")}
    own -= {f"{site}/{name}.html" for name in ("genindex", "py-modindex", "search", "index")}
    return [f"more than two clicks: {address.removeprefix(site)}" for address in sorted(own - near)
        if "/_" not in address.removeprefix(site)]


if __name__ == "__main__":
    sys.exit(main())
