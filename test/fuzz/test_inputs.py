"""Content from outside: whatever it holds, a reader returns or raises one line, in bounded time and memory.

The corpus holds inputs that once did something else, and their like; ``benchmarks/fuzzing.py`` looks for more of them.
"""

import random
from pathlib import Path

import pytest
from support.fuzzing.bounds import check, check_message
from support.fuzzing.targets import targets

from inertid_ros.core.errors import InertidError

CORPUS = Path(__file__).parent / "corpus"
INPUTS = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*"))
TARGETS = {target.name: target for target in targets() if target.name != "result"}  # that takes a calibration
CHANGED = 25  # of each target
LARGE = {  # too large for files
    "brackets that stay open": ("plan", b"[" * 60_000),  # PyYAML's parser in C crashed the process
    "brackets in a configuration": ("configuration", b"robot: " + b"[" * 30_000 + b"]" * 30_000),
    "deep mappings": ("configuration", b"".join(b" " * i + b"a:\n" for i in range(340))),
    "a key of 60 kB": ("configuration", b"a" * 60_000 + b": 1"),
    "metadata that a library reads for minutes": ("bag_metadata", b"- [a, b, c, d]\n" * 4000),
    "control characters, each four in a message": ("formula", b"v*" + b"\x01" * 4000),
    "brackets that stay open in a column": ("table", b"time,a_position" + b"[" * 60_000 + b"\n0,1\n"),
    "blanks in the name of a column": ("table", b"time,a" + b" " * 60_000 + b"_position\n0,1\n"),
    "many columns of seconds": ("table", b",".join(b"%dsecs" % i for i in range(7000)) + b",a_position\n"),
    "elements in elements": ("urdf", b"<robot>" + b"<a>" * 20_000),
    "joints that mimic one another": (
        "urdf",
        b'<robot name="r"><link name="l"/>%s</robot>'
        % b"".join(
            b'<link name="l%d"/><joint name="j%d" type="continuous"><parent link="l"/><child link="l%d"/>'
            b'<mimic joint="j%d"/></joint>' % (i, i, i, i + 1)
            for i in range(530)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", INPUTS, ids=str)
def test_corpus(path):
    check(TARGETS[path.parts[0]].read, (CORPUS / path).read_bytes())


@pytest.mark.parametrize("name", LARGE)
def test_large_inputs(name):
    target, content = LARGE[name]
    check(TARGETS[target].read, content)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name):
    target, rng = TARGETS[name], random.Random(name)
    accepted = [check(target.read, seed) for seed in target.seeds]
    assert any(accepted)
    for _ in range(CHANGED):
        check(target.read, target.changed(rng.choice(target.seeds), rng))


def test_messages_are_one_line():
    """Whatever names they quote; a terminal's control sequences are shown, not obeyed."""
    message = str(InertidError("joint 'a\nb': \x1b[31m is \u202e red; " + "x" * 100_000 + " the remedy"))
    check_message(message)
    assert "a b" in message and "\\x1b[31m" in message and message.endswith("the remedy")
