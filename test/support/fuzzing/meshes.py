"""Changes of mesh files: of their bytes, words, numbers and single-precision values."""

import random
import re
import struct

from support.robots.mesh_texts import RIGHT

from .values import NUMBERS, changed_bytes

WORDS = (
    b"v 0 0 0\n", b"f 1 2 3\n", b"f 1/1/1 2/2/2 -1//-1\n", b"f 1 1 1\n", b"mtllib /dev/zero\n", b"usemtl a\n", b"g\n",
    b"solid ", b"endsolid", b"facet normal", b"outer loop", b"endloop", b"vertex nan nan nan\n", b"vertex 1e38 0 0\n",
    b'<instance_node url="#a"/>', b'<node id="a">', b"</node>", b'<instance_geometry url="#g"/>', b'count="999999999"',
    b'stride="0"', b'source="#p"', b'offset="7"', b"<p>-1 9 99999999</p>", b"<matrix>nan</matrix>", b"<scale>1e30 1 1",
    b'<unit meter="1e-30"/>', b'<input semantic="POSITION" source="#v"/>', b"<polylist>", b"&lt;", b"<!--", b"]]>",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+\.?\d*(?:e[-+]?\d+)?")
_FEW = ("0", "1", "2", "3", "7", "0.1", "-0.05", "1e-9", "1e6", "1e37")
_SINGLES = (float("nan"), float("inf"), -float("inf"), 3.4e38, 1e37, 1e-45, 0.0, -1.0, 1e3)
_HEADER = 84  # bytes of a binary STL before its triangles


def changed(content: bytes, rng: random.Random) -> bytes:
    """Another content of a mesh file, most of which is as it was."""
    if rng.random() < 0.4:
        return changed_bytes(content, rng, list(RIGHT.values()), WORDS)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if content[:6] == b"binary" and len(content) >= _HEADER + 50:
            at = _HEADER + 50 * rng.randrange((len(content) - _HEADER) // 50) + 4 * rng.randrange(12)
            content = content[:at] + struct.pack("<f", rng.choice(_SINGLES)) + content[at + 4 :]
        else:
            content = _with_another_line(content, rng)
    return content


def _with_another_line(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            lines[at] = lines[other]
        case 1:
            lines.insert(at, lines[other] + b" ")
        case 2:
            lines.insert(at, rng.choice(WORDS))
        case _:
            numbers = list(_NUMBER.finditer(lines[at]))
            if numbers:
                place, number = rng.choice(numbers), rng.choice((*_FEW, *NUMBERS)).encode()
                lines[at] = lines[at][: place.start()] + number + lines[at][place.end() :]
    return b"\n".join(lines)
