"""Installation of packages by uv, which takes a fifth of pip's processor time, or by pip.

uv does not read pip's settings, so the set-up passes equivalent settings to uv as variables. If pip has a setting
without an equivalent in uv (`PIP_ALONE`), pip installs the packages.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

# pip's settings and the equivalent variables of uv.
SHARED = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
PIP_ALONE = ("no-index", "trusted-host", "client-cert", "proxy", "keyring-provider", "use-feature", "use-deprecated")


def uv_variables(pip_settings: str) -> dict[str, str] | None:
    """Return variables that give uv the settings of pip, as `pip config list` prints them; None if pip is needed."""
    variables: dict[str, str] = {}
    for line in pip_settings.splitlines():
        name, separator, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if not separator or section not in ("global", "install", ":env:"):
            continue
        if key in PIP_ALONE:
            return None
        if key in SHARED:
            separator = "," if key == "find-links" else " "
            variables[SHARED[key]] = separator.join(" ".join(shlex.split(value)).replace("\\n", " ").split())
    return variables


def uv_command(python: Path, constraints: Path, env: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Install uv by pip; return uv's install command and its environment, or None if pip is needed."""
    pip = [str(python), "-m", "pip"]
    settings = subprocess.run([*pip, "config", "list"], env=env, capture_output=True, text=True, check=False)
    variables = uv_variables(settings.stdout) if settings.returncode == 0 else None
    if variables is None:
        return None
    install = [*pip, "install", "-q", "-c", str(constraints), "uv"]
    if subprocess.run(install, env=env, capture_output=True, check=False).returncode:
        return None
    # Copies instead of links, as the set-up patches files of the wheels, and other environments share uv's cache.
    command = [str(python), "-m", "uv", "pip", "install", "--python", str(python), "--link-mode=copy"]
    return [*command, "--index-strategy=unsafe-best-match"], {**variables, **env}
