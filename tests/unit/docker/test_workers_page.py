"""Commands of docs/tutorial/workers.md, as they are written there; ssh and docker-compose stay on this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.support.installed.operations_page import ROOT, blocks, shell
from tests.support.programs import need
from tests.unit.docker.conftest import compose

pytestmark = pytest.mark.process
PAGE = ROOT / "docs/tutorial/workers.md"
MONTH_S = 30 * 24 * 3600


class Machines:
    """A main machine whose certificates end within a day, and the checkout of worker gpu-1."""

    def __init__(self, folder: Path, secrets: Path) -> None:
        self.main, self.worker = folder / "main", folder / "worker"
        self._programs = folder / "programs"
        for made in (self.main / "docker", self.worker, self._programs):
            made.mkdir(parents=True)
        shutil.copytree(secrets, self.main / ".secrets")
        self._program("docker-compose", 'echo "$PWD $*" >>"$(dirname "$0")/calls"')
        self._program("ssh", 'shift; exec bash -c "$*"')
        script = self.main / "docker/certificates.sh"
        text = (ROOT / "docker/certificates.sh").read_text()
        assert " days=397 " in text
        script.write_text(text.replace(" days=397 ", " days=1 "))
        script.chmod(0o755)
        for words in (("server", "localhost", "127.0.0.1"), ("worker", "gpu-1")):
            subprocess.run([script, *words], check=True, capture_output=True, timeout=60)
        script.write_text(text)

    @property
    def calls(self) -> list[str]:
        return (self._programs / "calls").read_text().splitlines()

    def run(self, text: str) -> str:
        env = {"PATH": f"{self._programs}:{os.environ['PATH']}"}
        return shell(text.replace("/srv/tipcflow", str(self.worker)), env, cwd=self.main)

    def _program(self, name: str, text: str) -> None:
        (self._programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (self._programs / name).chmod(0o755)


@pytest.fixture
def machines(secrets: Path, tmp_path: Path) -> Machines:
    need("openssl")
    return Machines(tmp_path, secrets)


@pytest.mark.parametrize(
    ("files", "pages"),
    [
        (["docker-compose.yaml", "compose.tls.yaml"], ["compose.md", "workers.md"]),
        (["compose.worker.yaml"], ["workers.md"]),
    ],
)
def test_every_variable_is_documented(env_file: Path, files: list[str], pages: list[str]) -> None:
    used = {name for file in files for name in re.findall(r"(?<!\$)\$\{(\w+)", (ROOT / file).read_text())}
    text = "".join((ROOT / "docs/tutorial" / page).read_text() for page in pages)
    generated = {line.partition("=")[0] for line in env_file.read_text().splitlines()}
    assert len(used) > 20
    assert used - generated - set(re.findall(r"\w+", "".join(re.findall(r"`[A-Z_]+`", text)))) == set()


def test_machines_may_share_a_folder_of_objects(env_file: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "env"
    names = "MAIN_HOST=main\nWORKER_HOST=gpu-1\nOBJECTS_FOLDER=/srv/objects\nWORKER_OBJECTS=/srv/objects\n"
    chosen.write_text(env_file.read_text() + names)
    mounts = {}
    for file in ("docker-compose.yaml", "compose.worker.yaml"):
        shown = compose(ROOT, None, "--env-file", str(chosen), "--file", file, "config")
        for name, service in yaml.safe_load(shown.stdout)["services"].items():
            at = [str(each) for each in service.get("volumes", ()) if ":/var/lib/tipcflow-objects" in str(each)]
            mounts |= {f"{file} {name}": each for each in at}
    mount = "/srv/objects:/var/lib/tipcflow-objects"
    assert mounts == {
        "docker-compose.yaml api-server": f"{mount}:ro",
        "docker-compose.yaml triggerer": f"{mount}:rw",
        "docker-compose.yaml worker": f"{mount}:rw",
        "compose.worker.yaml worker": f"{mount}:rw",
    }


def is_valid_for_a_month(certificate: Path) -> bool:
    words = ["openssl", "x509", "-noout", "-checkend", str(MONTH_S), "-in", certificate]
    return subprocess.run(words, stdout=subprocess.DEVNULL, timeout=60).returncode == 0


def test_certificate_of_the_main_machine_is_renewed(machines: Machines) -> None:
    ends, renew = blocks("Certificates", PAGE)
    shown = [line.split()[0] for line in machines.run(ends).splitlines() if "notAfter=" in line]
    assert shown == [".certificates/ca.crt", ".certificates/server.crt", ".certificates/gpu-1/.secrets/client_crt"]
    certificate = machines.main / ".certificates/server.crt"
    assert not is_valid_for_a_month(certificate)
    machines.run(renew)
    assert is_valid_for_a_month(certificate)
    words = ["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", certificate]
    names = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "DNS:localhost, IP Address:127.0.0.1" in names
    (call,) = machines.calls
    assert call.endswith(" up -d --no-deps --force-recreate postgres redis proxy")


def test_worker_gets_no_url_with_an_ipv6_address(machines: Machines) -> None:
    """IPv6 addresses after the first name are for browsers; older certificates have them as the first one."""
    words = [machines.main / "docker/certificates.sh"]
    names = machines.main / ".certificates/server.names"
    subprocess.run([*words, "server", "localhost", "2001:db8::1"], check=True, capture_output=True, timeout=60)
    assert names.read_text() == "localhost 2001:db8::1\n"
    names.write_text("2001:db8::1 localhost\n")
    done = subprocess.run([*words, "worker", "gpu-2"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "server.names: found the IPv6 address 2001:db8::1, expected a host name" in done.stderr


def test_worker_gets_a_new_certificate_and_new_secrets(machines: Machines) -> None:
    copy = blocks("Worker", PAGE)[1]
    (renew,) = blocks("Renew a worker", PAGE)
    machines.run(copy)
    given = machines.worker / ".secrets"
    assert not is_valid_for_a_month(given / "client_crt")
    path = machines.main / ".secrets/redis_password"
    path.unlink()
    path.write_text("new-word")
    # The files of the first copy are read-only.
    machines.run(renew)
    assert is_valid_for_a_month(given / "client_crt")
    assert (given / "redis_password").read_text() == "new-word"
    assert given.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in given.iterdir()} == {0o444}
    assert (machines.worker / ".env").stat().st_mode & 0o777 == 0o600
    assert machines.calls == [f"{machines.worker} -f compose.worker.yaml up -d --force-recreate"]


def test_later_calls_keep_the_ports_of_the_main_machine_open(
    env: Mapping[str, str], env_file: Path, machines: Machines, tmp_path: Path
) -> None:
    """docker-compose without -f has the services of both files, because .env names them."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("docker-compose.yaml", "compose.tls.yaml", "compose.worker.yaml", "configs"):
        (checkout / name).symlink_to(ROOT / name)
    shutil.copy(env_file, checkout / ".env")
    lines = [line for block in blocks("Main machine", PAGE) for line in block.splitlines() if ">>.env" in line]
    assert env["TIPCFLOW_TAG"] in (checkout / ".env").read_text()
    shell("\n".join(lines), {}, cwd=checkout)
    services = yaml.safe_load(compose(checkout, None, "config").stdout)["services"]
    assert "proxy" in services
    assert "5432:5432" in str(services["postgres"]["ports"])
    shutil.copy(machines.main / ".certificates/gpu-1/.env", checkout / ".env")
    assert set(yaml.safe_load(compose(checkout, None, "config").stdout)["services"]) == {"worker"}
