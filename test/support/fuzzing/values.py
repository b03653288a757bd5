"""Values and bytes that readers stumble over, and changes of bytes and of plain data."""

import random
import re
from typing import Any

NUMBERS = (
    "0", "-0", "1", "-1", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "1e400", "2147483648",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 400, "1_000", "0x10", "1e", "",
    " ", "1:60", "true", "1,5",
)  # fmt: skip
NAMES = (
    "", " ", "a\nb", "a\x1b[31mb", "..", "../../etc/passwd", "/etc/passwd", "~", "a" * 300, "a/" * 200, "\u202etxet",
    "\u0301", "null", "<<", "a.b", "*", "%s%n", "{0}", "joint0", "link0", "package://", "file://", "model:///", "NaN",
)  # fmt: skip
DATA: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, float("nan"), float("inf"), 10**400, 2**63, 1e-320, "", "a\nb", "1e5", [], {}, [[]],
    [None], {"": 0}, [[1.0]], "nan", [1, [2]], {"a": {"b": {}}}, "\x1b[0m", -(2**63), "x" * 3000, [0] * 300,
    "2001-13-99",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
_INTEGERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)


def number(rng: random.Random) -> str:
    """A number that readers stumble over, or one of any size: squares of some overflow or underflow."""
    return rng.choice(NUMBERS) if rng.random() < 0.7 else repr(rng.choice((-1, 1)) * 10.0 ** rng.uniform(-320, 308))


def changed_bytes(content: bytes, rng: random.Random, others: list[bytes], words: tuple[bytes, ...] = ()) -> bytes:
    """Content with one to four changes of bytes, words or numbers."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = _changed_once(content, rng, others, words)
    return content


def _changed_once(content: bytes, rng: random.Random, others: list[bytes], words: tuple[bytes, ...]) -> bytes:
    start = rng.randrange(len(content) + 1)
    stop = min(len(content), start + rng.choice((1, 1, 2, 4, 8, 32, 200, 2000)))
    match rng.randrange(9):
        case 0:
            return content[:start] + bytes([rng.randrange(256)]) + content[start + 1 :]
        case 1:
            return content[:start] + content[stop:]
        case 2:
            return content[:stop] + content[start:stop] * rng.choice((1, 1, 2, 30)) + content[stop:]
        case 3:
            word = rng.choice(words) if words else bytes([rng.randrange(256)])
            return content[:start] + word + content[start:]
        case 4:
            found = list(_NUMBER.finditer(content))
            if not found:
                return content[:start]
            place = rng.choice(found)
            return content[: place.start()] + number(rng).encode() + content[place.end() :]
        case 5:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            return content[:start] + other[cut : cut + rng.choice((4, 40, 400, 70000))] + content[stop:]
        case 6:
            size = rng.choice((2, 4, 8))
            value = rng.choice(_INTEGERS) & (2 ** (8 * size) - 1)
            return content[:start] + value.to_bytes(size, rng.choice(("little", "big"))) + content[start + size :]
        case 7:
            return content[:start]
        case _:
            where = rng.randrange(len(content) + 1)
            piece = content[start:stop]
            return content[:where] + piece + content[where:]


def changed_data(content: Any, rng: random.Random) -> Any:
    """Plain data with one value, key or item changed, removed, repeated or moved."""
    if isinstance(content, dict) and content and rng.random() < 0.93:
        key = rng.choice(list(content))
        match rng.randrange(12):
            case 0:
                return {k: v for k, v in content.items() if k != key}
            case 1:
                return content | {rng.choice((*NAMES, 1, None, 2.5, True)): content[key]}
            case 2:
                return content | {key: content[rng.choice(list(content))]}
        return content | {key: changed_data(content[key], rng)}
    if isinstance(content, list) and content and rng.random() < 0.93:
        index = rng.randrange(len(content))
        match rng.randrange(10):
            case 0:
                return content[:index] + content[index + 1 :]
            case 1:
                return content[:index] + [content[index]] * rng.choice((2, 3, 100)) + content[index:]
        return [*content[:index], changed_data(content[index], rng), *content[index + 1 :]]
    return rng.choice((*DATA, *NAMES, *NUMBERS)) if rng.random() < 0.7 else 10.0 ** rng.uniform(-320, 308)
