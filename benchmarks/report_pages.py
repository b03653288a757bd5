"""Pages of results in headless Chromium: size, requests, HTML, accessibility, and pictures.

    python benchmarks/report_pages.py [--only NAME] [--output DIR] [--tools DIR] [--figures]

Chromium must be on the path. Validity needs html-validate and accessibility needs axe-core, in a folder made by
``npm install --prefix DIR axe-core html-validate``; without this folder both checks are skipped. With --figures the
pictures of docs/report.md (simulated robots only) are made again.
"""

import argparse
import json
import logging
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from studies.report_cases import cases
from tables import FIGURES as DOCS_FIGURES, machine, publish, table

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
DARK = "--blink-settings=preferredColorScheme=0"
VIEWS = {"1280": ((1280, 2400), ()), "400": ((400, 3200), ()), "1280_dark": ((1280, 2400), (DARK,)),
         "400_dark": ((400, 3200), (DARK,))}  # fmt: skip
# Pictures of docs/report.md: case, visible section, size, flags.
FIGURES = {
    "report_panda": ("panda", "", (1000, 820), ()),
    "report_curves": ("panda", "predictions", (1000, 640), ()),
    "report_bad": ("bad", "", (1000, 820), ()),
    "report_bad_narrow": ("bad", "", (400, 1000), (DARK,)),
}
LARGEST_KB = 400
_AXE = """<script>%s</script><script>axe.run().then(function (found) { document.documentElement.setAttribute(
"data-axe", JSON.stringify(found.violations.map(function (v) { return [v.id, v.impact, v.nodes.length]; }))); });
</script></body>"""


def main() -> None:
    """Make every page, check it, photograph it; publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="name of one case")
    parser.add_argument("--output", type=Path, default=Path("report_pages"), help="folder of results and pictures")
    parser.add_argument("--tools", type=Path, help="folder with node_modules of html-validate and axe-core")
    parser.add_argument("--figures", action="store_true", help="make the pictures of docs/report.md")
    options, _ = parser.parse_known_args()
    logging.getLogger("inertid_ros").setLevel(logging.ERROR)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    options.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, make in cases():
        if options.only and name != options.only:
            continue
        outcome = make()
        began = time.process_time()
        page = outcome.save(options.output / name, force=True) / "report.html"
        seconds = time.process_time() - began
        row = [name, outcome.gate.verdict.value, f"{page.stat().st_size / 1000:.0f}", f"{seconds:.2f}"]
        rows.append([*row, *(_checks(chromium, page, options.tools) if chromium else ["–"] * 4)])
        if chromium:
            for view, (size, flags) in VIEWS.items():
                photograph(chromium, page, options.output / f"{name}_{view}.png", size, flags)
            for figure, (case, section, size, flags) in FIGURES.items() if options.figures else ():
                if case == name:
                    photograph(chromium, page, DOCS_FIGURES / f"{figure}.png", size, flags, section)
    header = ["robot", "verdict", "page [kB]", "written in [s]", "requests", "HTML errors", "accessibility", "sheets"]
    text = table(header, rows)
    if options.only:
        print(text)
        return
    publish(
        "report pages",
        "## Pages of results\n\nIn headless Chromium: requests beyond the page itself, errors of html-validate (preset"
        " standard), serious or critical findings of axe-core, light and dark together (minor findings in brackets),"
        f" sheets in print. Target: at most {LARGEST_KB} kB per page."
        f"\n\n{text}\n\n{machine()}",
    )


def _checks(chromium: str, page: Path, tools: Path | None) -> list[str]:
    sheets = print_sheet(chromium, page, page.parent.with_suffix(".pdf"))
    asked = len(requests(chromium, page))
    return [str(asked), _html_errors(page, tools), _violations(chromium, page, tools), str(sheets)]


def photograph(
    chromium: str,
    page: Path,
    picture: Path,
    size: tuple[int, int],
    flags: tuple[str, ...] = (),
    section: str = "",
) -> None:
    """Picture of the top of a page, or of one of its sections."""
    text = page.read_text()
    if section:
        text = text.replace("</head>", f"<style>h1, nav, section:not(#{section}) {{ display: none }}</style></head>", 1)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(text)
        _run(chromium, copy, f"--window-size={size[0]},{size[1]}", f"--screenshot={picture.absolute()}", *flags)


def print_sheet(chromium: str, page: Path, file: Path) -> int:
    """Print a page; return the number of sheets."""
    _run(chromium, page, "--no-pdf-header-footer", f"--print-to-pdf={file.absolute()}")
    return len(re.findall(rb"/Type\s*/Page\b", file.read_bytes()))


def requests(chromium: str, page: Path) -> list[str]:
    """Requested addresses beyond the page itself, by the network log, without the browser's own requests."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        return sorted(_asked(chromium, page) - _asked(chromium, empty))


def _asked(chromium: str, page: Path) -> set[str]:
    """Requested addresses, without queries, of a browser with this page."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "net.json"
        _run(chromium, page, f"--log-net-log={log}", "--dump-dom")
        return set(re.findall(r'"url":"((?:https?|wss?|ftp)://[^"?]*)', log.read_text()))


def _html_errors(page: Path, tools: Path | None) -> str:
    command = tools and tools / "node_modules" / ".bin" / "html-validate"
    if not command or not command.exists():
        return "–"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "html.json"
        subprocess.run([command, "--preset", "standard", "--formatter", f"json={report}", page], capture_output=True)
        return str(sum(result["errorCount"] for result in json.loads(report.read_text())))


def _violations(chromium: str, page: Path, tools: Path | None) -> str:
    """Serious and critical findings of axe-core, minor findings in brackets, without the page's security policy."""
    script = tools and tools / "node_modules" / "axe-core" / "axe.min.js"
    if not script or not script.exists():
        return "–"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    grave = others = 0
    for flags in ((), (DARK,)):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "page.html"
            copy.write_text(text.replace("</body>", _AXE % script.read_text().replace("</script>", "<\\/script>")))
            shown = _run(chromium, copy, "--dump-dom", "--virtual-time-budget=60000", *flags)
        found = re.search(r'data-axe="([^"]*)"', shown)
        if not found:
            return "not run"
        for rule, impact, nodes in json.loads(found[1].replace("&quot;", '"')):
            print(f"{page.parent.name}: {rule} ({impact}) {nodes}")
            grave, others = grave + (impact in ("serious", "critical")), others + (impact in ("minor", "moderate"))
    return f"{grave} ({others})"


def _run(chromium: str, page: Path, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *FLAGS, f"--user-data-dir={profile}", *arguments, page.absolute().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


if __name__ == "__main__":
    main()
