"""JSON from outside: every key once, and no depth that ends in a recursion error."""

import json
from typing import Any

from inertid_ros.core.errors import FormatError


def read_json(text: str) -> Any:
    """Content of one JSON text; numbers are finite.

    Raises
    ------
    FormatError
        It is not JSON, repeats a key, holds NaN or an infinite number, or is nested too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise FormatError(f"is not JSON in line {error.lineno}") from None
    except RecursionError:
        raise FormatError("is nested too deep") from None
    except FormatError:
        raise
    except ValueError:  # a whole number of thousands of digits
        raise FormatError("holds a number that is too long") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise FormatError(f"repeats key '{name}'")
        content[name] = value
    return content


def _constant(text: str) -> Any:
    raise FormatError(f"holds {text}, which is no number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise FormatError(f"holds {text[:20]}, which is too large")
    return value
