"""Certificates of docker/certificates.sh, and nginx with docker/nginx.conf on this machine."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.compose.local import free_port, process

ROOT = Path(__file__).parents[3]


class Certificates:
    """A folder of certificates, made by the script."""

    def __init__(self, root: Path, folder: Path, secrets: Path) -> None:
        self._script, self.folder = root / "docker/certificates.sh", folder
        self._env = {"PATH": os.environ["PATH"], "TIPCFLOW_CERTIFICATES": str(folder)}
        self._env["TIPCFLOW_SECRETS"] = str(secrets)

    def make(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([self._script, *words], env=self._env, capture_output=True, text=True, timeout=60)

    @property
    def files(self) -> dict[str, str]:
        """Files of the server and of worker gpu-1, by the names of the secrets."""
        found = {
            name: str(self.folder / name.replace("_", ".")) for name in ("ca_crt", "server_crt", "server_key")
        }
        return found | {name: str(self.folder / "gpu-1/.secrets" / name) for name in ("client_crt", "client_key")}


@contextmanager
def nginx(certificates: Certificates, folder: Path, api_server: int, port: int = 0) -> Iterator[str]:
    """Start nginx with docker/nginx.conf, whose addresses and files are those of this machine; its address.

    Args:
        api_server: port of the server behind it.
        port: 0 takes a free one.
    """
    program, port = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), port or free_port()
    if program is None:  # part of an image
        pytest.skip("nginx is not installed (Debian: apt-get install nginx-light)")
    text = (ROOT / "docker/nginx.conf").read_text()
    for old, new in {
        "listen 8443": f"listen 127.0.0.1:{port}",
        "api-server:8080": f"127.0.0.1:{api_server}",
        "/tmp/": f"{folder}/",
        **{f"/run/secrets/{name}": path for name, path in certificates.files.items()},
    }.items():
        assert old in text or "client" in old
        text = text.replace(old, new)
    (folder / "nginx.conf").write_text(text)
    options = "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"
    words = [program, "-c", folder / "nginx.conf", "-g", options]
    subprocess.run([*words, "-t"], check=True, capture_output=True, timeout=60)
    with process(*words):
        yield f"https://localhost:{port}"
