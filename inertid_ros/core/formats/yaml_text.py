"""YAML from outside: plain data, in time and memory that grow with the text alone.

PyYAML's loaders recurse, in C until the process crashes; let a few aliases stand for billions of values; construct
dates and sets that nobody here wants; keep the last of repeated keys; and raise whatever their converters meet. So its
parser's events are put together here, on a stack of their own.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from inertid_ros.core.errors import FormatError

MAX_DEPTH = 50  # of nesting
MAX_ALIASED = 100_000  # values that aliases may add to those written out
_MAX_NUMBER = 400  # characters; the longest decimal that a float has is shorter
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, and not always built in
_PREFIX = "tag:yaml.org,2002:"
_TEXT = ("str", "timestamp", "value")  # a date stays text
_MERGE = object()


def read_yaml(text: str) -> Any:
    """Mappings, lists, text, numbers, truth values and None of one YAML document; None of an empty one.

    Raises
    ------
    FormatError
        It is not YAML, is more than one document, repeats a key, has other tags, is nested deeper than
        :data:`MAX_DEPTH`, or its aliases stand for more than :data:`MAX_ALIASED` values or for themselves.
    """
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"is not YAML{f' in line {mark.line + 1}' if mark else ''}") from None
    except UnicodeEncodeError:
        raise FormatError("is not YAML: it holds characters that are not text") from None
    return builder.content


class _Container:
    """A list or mapping that is not complete yet; ``size`` counts the values in it, those of aliases included."""

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value, self.anchor, self.size = value, anchor, 1
        self.merged: list[Any] = []
        self.has_key, self.key = False, None

    def add(self, value: Any, line: int) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif not self.has_key:
            if isinstance(value, list | dict):
                raise FormatError(f"has a list or mapping as a key in line {line}")
            if value in self.value:
                raise FormatError(f"repeats key '{value}' in line {line}")
            self.has_key, self.key = True, value
        else:
            self.has_key = False
            if self.key is _MERGE:
                self.merged += value if isinstance(value, list) else [value]
            else:
                self.value[self.key] = value

    def complete(self, line: int) -> Any:
        if not self.merged:
            return self.value
        if not all(isinstance(each, Mapping) for each in self.merged):
            raise FormatError(f"merges what is no mapping before line {line}")
        merged: dict[Any, Any] = {}
        for each in reversed(self.merged):  # the first one has the last word, after the mapping itself
            merged |= each
        return merged | self.value


class _Builder:
    """Events to content."""

    def __init__(self) -> None:
        self.content: Any = None
        self._open: list[_Container] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents = self._aliased = 0
        self._resolver = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.ScalarEvent():
                self._add(self._scalar(event, line), 1, event.anchor, line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                value: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
                kind = "seq" if isinstance(value, list) else "map"
                if event.tag not in (None, "!", _PREFIX + kind):
                    raise FormatError(f"has the tag {event.tag} in line {line}, which is not allowed")
                if len(self._open) == MAX_DEPTH:
                    raise FormatError(f"is nested deeper than {MAX_DEPTH} in line {line}")
                self._open.append(_Container(value, event.anchor))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                self._add(done.complete(line), done.size, done.anchor, line)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise FormatError(f"holds a second document from line {line} on")

    def _add(self, value: Any, size: int, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if self._open:
            self._open[-1].add(value, line)
            self._open[-1].size += size
        else:
            self.content = value

    def _alias(self, name: str, line: int) -> None:
        if name not in self._anchors:
            raise FormatError(f"uses *{name} in line {line}, which is not complete before it")
        value, size = self._anchors[name]
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise FormatError(f"has aliases that stand for more than {MAX_ALIASED} values in line {line}")
        self._add(value, size, None, line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Any:
        text, tag = event.value, event.tag
        if tag is None:
            tag = self._resolver.resolve(yaml.ScalarNode, text, event.implicit)
        kind = "str" if tag == "!" else str(tag).removeprefix(_PREFIX)
        if kind in _TEXT:
            return text
        if kind == "merge" and self._open and not self._open[-1].has_key:
            return _MERGE
        if kind == "null":
            return None
        if kind not in ("int", "float", "bool"):
            raise FormatError(f"has the tag {tag} in line {line}, which is not allowed")
        try:
            if len(text) > _MAX_NUMBER:
                raise ValueError
            convert = getattr(self._constructor, f"construct_yaml_{kind}")
            return convert(yaml.ScalarNode(tag, text))
        except (ValueError, LookupError, OverflowError):
            raise FormatError(f"has '{text[:20]}' for {kind} in line {line}") from None
