"""The policy file: XML of the schema 0.2.0 of SROS 2, one enclave for each node."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import quoteattr

from .used_names import ACCESS, Access

FILE = "inertid_ros.policy.xml"
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by python -m inertid_ros.nodes.access_policy security; see docs/networks.md. All else is denied. -->
<policy version="0.2.0">
  <enclaves>
"""
_FOOT = """  </enclaves>
</policy>
"""


def policy_text(nodes: Mapping[tuple[str, str], Mapping[Access, Sequence[str]]]) -> str:
    """Return the policy that allows each node what it uses, and nothing else.

    Parameters
    ----------
    nodes : mapping
        Name and namespace of a node to the names of each access.
    """
    return _HEAD + "".join(_enclave(name, namespace, used) for (name, namespace), used in nodes.items()) + _FOOT


def _enclave(name: str, namespace: str, used: Mapping[Access, Sequence[str]]) -> str:
    path = f"{namespace.rstrip('/')}/{name}"
    lines = [
        f"    <enclave path={quoteattr(path)}>",
        "      <profiles>",
        f"        <profile ns={quoteattr(namespace)} node={quoteattr(name)}>",
    ]
    for element, attribute in ACCESS:
        names = used.get((element, attribute), ())
        if names:
            single = element.removesuffix("s")
            lines.append(f'          <{element} {attribute}="ALLOW">')
            lines += [f"            <{single}>{expression}</{single}>" for expression in names]
            lines.append(f"          </{element}>")
    lines += ["        </profile>", "      </profiles>", "    </enclave>"]
    return "\n".join(lines) + "\n"
