"""What installs the packages: uv, which takes a fifth of pip's processor time, or pip.

uv reads none of pip's settings, so those that it has under another name are handed over; with any other setting that
says where packages come from, pip installs them itself.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

# pip's settings and the variables by which uv takes the same.
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
    """Variables that give uv the settings of pip, as `pip config list` prints them; None where pip is needed."""
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
    """Command that installs by uv and its environment, uv itself installed by pip; None where pip has to do it."""
    pip = [str(python), "-m", "pip"]
    settings = subprocess.run([*pip, "config", "list"], env=env, capture_output=True, text=True, check=False)
    variables = uv_variables(settings.stdout) if settings.returncode == 0 else None
    if variables is None:
        return None
    install = [*pip, "install", "-q", "-c", str(constraints), "uv"]
    if subprocess.run(install, env=env, capture_output=True, check=False).returncode:
        return None
    # Copies, since the files of the wheels are patched and uv's cache is shared with other environments.
    command = [str(python), "-m", "uv", "pip", "install", "--python", str(python), "--link-mode=copy"]
    return [*command, "--index-strategy=unsafe-best-match"], {**variables, **env}
