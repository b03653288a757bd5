"""Commands and Python code of the README and the guides, as their text has them, and a way to run them in a folder."""

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from support.paths import ROOT

from inertid_ros.cli import main as cli

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md")))
NOT_RUN = {
    "hardware": "needs a robot and its driver",
    "ROS": "needs an installation of ROS 2, with ros2 launch or other packages",
    "installs": "changes the machine",
    "slow": "takes long; run by benchmarks/guide_commands.py",
    "make": "sets up the checkout itself; the tests run in what it has set up",
    "excerpt": "lines of Python code that is not shown in whole",
}
"""Why a block may be left out; a comment such as ``<!-- not run: hardware -->`` before it says so."""

FIRST = ROOT / "docs" / "guides" / "first_result.md"
_RECORDED = {"run1_bag": "run1_bag", "run2_bag": "run2_bag"}
FILES = {
    "README.md": {**_RECORDED, "robot.urdf": "robot.urdf", "box_bag": "box_bag", "result": "other_result"},
    "own_arm.md": {**_RECORDED, "robot.urdf": "my_robot.urdf"},
    "bad_result.md": {**_RECORDED, "robot.urdf": "robot.urdf", "result": "result"},
    "controllers.md": {"result": "result"},
}
"""Of the files that the first guide makes those that other pages begin with, and their names there."""

_BLOCK = re.compile(
    r"^ *(?:<!-- not run: (?P<reason>[^>]*?) -->\n+ *)?```(?P<language>bash|python)\n(?P<text>.*?)^ *```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A block of commands or of Python code of a page.

    Attributes
    ----------
    page : Path
    line : int
        Of its first line.
    language : str
        ``bash`` or ``python``.
    text : str
    reason : str
        A key of :data:`NOT_RUN`; empty where it runs.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    lines = [text.count("\n", 0, block.start("text")) + 1 for block in found]
    return [
        Block(page, line, block["language"], block["text"], block["reason"] or "")
        for line, block in zip(lines, found, strict=True)
    ]


def begin(page: Path, first: Path, folder: Path) -> None:
    """Copy the files that a page begins with from the folder of the first guide."""
    for source, name in FILES.get(page.name, {}).items():
        copy = shutil.copytree if (first / source).is_dir() else shutil.copyfile
        copy(first / source, folder / name)


def run(block: Block, folder: Path) -> str:
    """Run a block in a folder and return what it prints.

    ``inertid`` and modules of the package run in this process, so that they need not be imported each time; what else
    there is runs in a shell.

    Raises
    ------
    AssertionError
        A command ends with another status than 0.
    """
    printed = io.StringIO()
    with _inside(folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
        else:
            for command in _commands(block.text):
                status = _status(command, printed)
                assert status == 0, f"{block}: '{command}' ends with status {status}\n{printed.getvalue()}"
    return printed.getvalue()


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Make it the present folder (``contextlib.chdir`` needs Python 3.11)."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _commands(text: str) -> Iterator[str]:
    """Commands of a block, with the lines that continue them; here-documents stay whole."""
    lines = iter(text.splitlines())
    for line in lines:
        while line.endswith("\\"):
            line = line[:-1] + next(lines).lstrip()
        if end := re.search(r"<<'?(\w+)'?$", line):
            for further in lines:
                line += f"\n{further}"
                if further == end[1]:
                    break
        if line.strip() and not line.startswith("#"):
            yield line


def _status(command: str, printed: io.StringIO) -> int:
    words = shlex.split(command, comments=True) if "<<" not in command else [""]
    if words[0] == "inertid":
        return cli.main(words[1:])
    if words[:2] == ["python", "-m"]:
        with mock.patch.object(sys, "argv", words[2:]):
            return _run_module(words[2])
    done = subprocess.run(["bash", "-euc", command], capture_output=True, text=True, check=False, timeout=60)
    printed.write(done.stdout + done.stderr)
    return done.returncode


def _run_module(name: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # another test may have imported it already
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=False)
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0
