"""docker/env.sh: secrets that no repository holds, made once, for their owner alone."""

import base64
import io
import json
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import paramiko
import pytest
from cryptography.fernet import Fernet
from tests.unit.docker.conftest import ROOT

from tipcflow.execute.verdict.signature import sign_certificate, verifier
from tipcflow.report.attestation import attested

pytestmark = pytest.mark.process


def make(root: Path, path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([root / "docker/env.sh", path], capture_output=True, text=True, timeout=60)


def everything(path: Path) -> dict[str, str]:
    """Settings of the file, and secrets of the folder next to it."""
    settings = dict(line.split("=", 1) for line in path.read_text().splitlines())
    return settings | {file.name.upper(): file.read_text() for file in (path.parent / ".secrets").iterdir()}


def test_only_the_owner_reaches_the_files(env_file: Path, secrets: Path) -> None:
    assert env_file.stat().st_mode & 0o777 == 0o600
    assert secrets.stat().st_mode & 0o777 == 0o700
    # Users of containers read mounted files, and cannot write them.
    assert {path.stat().st_mode & 0o777 for path in secrets.iterdir()} == {0o444}


def test_two_places_share_nothing(root: Path, env: Mapping[str, str], tmp_path: Path) -> None:
    make(root, tmp_path / "env")
    other = everything(tmp_path / "env")
    assert other.keys() == env.keys()
    assert {name for name, _ in other.items() & env.items()} == {"TIPCFLOW_TAG"}
    assert len(set(env.values())) == len(env)


def test_image_tag_is_the_version_or_the_chosen_one(root: Path, env: Mapping[str, str], tmp_path: Path) -> None:
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert env["TIPCFLOW_TAG"] == version
    path = tmp_path / ".env"
    path.touch(mode=0o600)
    path.write_text("TIPCFLOW_TAG=mine\n")
    assert make(root, path).returncode == 0
    assert everything(path)["TIPCFLOW_TAG"] == "mine"


def test_existing_values_stay_and_missing_ones_are_added(root: Path, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.touch(mode=0o600)
    path.write_text("AIRFLOW_PORT=8081")  # without a line end
    assert make(root, path).returncode == 0
    before = everything(path)
    assert before["AIRFLOW_PORT"] == "8081"
    removed = {"REDIS_PASSWORD", "NODE_1_HOST_KEY", "NODE_1_HOST_KEY_PUB"}
    for name in removed:
        (tmp_path / ".secrets" / name.lower()).unlink(missing_ok=True)
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if "NODE_1" not in line))
    assert make(root, path).returncode == 0
    after = everything(path)
    assert {name for name in after if after[name] != before[name]} == removed
    assert make(root, path).returncode == 0
    assert everything(path) == after


def test_secrets_of_an_older_version_are_moved_to_files(
    root: Path, env: Mapping[str, str], tmp_path: Path
) -> None:
    path = tmp_path / ".env"
    path.touch(mode=0o600)
    keys = {name for name in env if name.startswith("NODE_") and not name.endswith("_PUB")}
    old = {name: base64.b64encode(env[name].encode()).decode() if name in keys else env[name] for name in env}
    # The login of the object store and the signing key have always been files.
    for name in ("TIPCFLOW_SECRETS", "TIPCFLOW_TAG", "OBJECT_STORE", "SIGNING_KEY", "SIGNING_KEY_PUB"):
        del old[name]
    path.write_text("".join(f"{name}={value}\n" for name, value in old.items()))
    assert make(root, path).returncode == 0
    after = everything(path)
    assert {name: after[name] for name in old} == {name: env[name] for name in old}
    left = {line.split("=")[0] for line in path.read_text().splitlines()}
    assert left == {*(f"{name}_PUB" for name in keys), "TIPCFLOW_SECRETS", "TIPCFLOW_TAG"}


def test_folder_that_others_may_enter_is_not_filled(root: Path, tmp_path: Path) -> None:
    (tmp_path / ".secrets").mkdir(mode=0o755)
    result = make(root, tmp_path / ".env")
    assert (result.returncode, list((tmp_path / ".secrets").iterdir())) == (2, [])
    assert "chmod go-rwx" in result.stderr


def test_a_file_that_others_may_read_is_not_filled(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.touch(mode=0o644)
    result = make(root, path)
    assert (result.returncode, path.read_text()) == (2, "")
    assert "chmod go-rwx" in result.stderr


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """Some files of a clone that was made with umask 077."""
    for folder in ("dags", "configs/chains", "docker/access"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("env.sh", "redis.sh", "postgres_init.sh"):
        shutil.copy(root / "docker" / name, tmp_path / "docker")
    shutil.copy(root / "pyproject.toml", tmp_path)
    (tmp_path / "configs/chains/a.txt").touch()
    for path in tmp_path.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    return tmp_path


def test_files_of_any_umask_are_opened_for_containers(checkout: Path) -> None:
    result = make(checkout, checkout / ".env")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("chmod -R a+rX dags configs docker: dags was not readable for the containers'")
    assert {path.stat().st_mode & 0o777 for path in checkout.glob("[!.]*/**/*.txt")} == {0o644}
    opened = [path for path in checkout.glob("[!.]*/**") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in [*opened, checkout / "docker/redis.sh"]} == {0o755}
    assert (checkout / ".secrets").stat().st_mode & 0o777 == 0o700
    assert (checkout / ".env").stat().st_mode & 0o777 == 0o600
    for hidden in ("docker/redis.sh", "configs/chains", "docker/access"):
        (checkout / hidden).chmod(0o750)
        assert f"docker: {hidden} was not" in make(checkout, checkout / ".env").stdout
    assert "chmod" not in make(checkout, checkout / ".env").stdout


@pytest.mark.parametrize("line", ["{}/private", '"{}/private"', "./private", "private"])
def test_secrets_are_in_the_folder_of_the_settings(checkout: Path, line: str) -> None:
    path, folder = checkout / ".env", checkout / "private"
    path.touch(mode=0o600)
    path.write_text(f"TIPCFLOW_SECRETS=none\nTIPCFLOW_SECRETS={line.format(checkout)}\n")
    assert make(checkout, path).returncode == 0
    before = {file.name: file.read_text() for file in folder.iterdir()}
    (folder / "redis_password").unlink()
    assert make(checkout, path).returncode == 0
    after = {file.name: file.read_text() for file in folder.iterdir()}
    assert {name for name in before if after[name] != before[name]} == {"redis_password"}
    assert not [name for name in ("none", ".secrets") if (checkout / name).exists()]
    assert path.read_text().count("TIPCFLOW_SECRETS=") == 2


def test_folder_of_the_environment_is_written_to_the_settings(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = checkout / ".env", checkout / "private"
    monkeypatch.setenv("TIPCFLOW_SECRETS", str(folder))
    assert make(checkout, path).returncode == 0
    assert f"\nTIPCFLOW_SECRETS={folder}\n" in path.read_text()
    assert (folder / "redis_password").is_file()
    assert not (checkout / ".secrets").exists()


def test_files_of_another_owner_are_an_error_with_a_remedy(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "chmod").write_text("#!/bin/sh\nexit 1\n")
    (programs / "chmod").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    result = make(checkout, checkout / ".env")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: dags is not readable for the containers' users; run chmod")
    assert not (checkout / ".env").exists()


def test_missing_private_key_is_not_replaced(root: Path, env: Mapping[str, str], tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.touch(mode=0o600)
    path.write_text(f"NODE_LOGIN_KEY_PUB={env['NODE_LOGIN_KEY_PUB']}\n")
    result = make(root, path)
    assert result.returncode == 2
    private = tmp_path / ".secrets" / "node_login_key"
    assert (
        f"has NODE_LOGIN_KEY_PUB, but the private key {private} is missing; copy it back, or remove"
        in result.stderr
    )


def test_no_secret_is_printed(root: Path, tmp_path: Path) -> None:
    result = make(root, tmp_path / ".env")
    for path in (tmp_path / ".secrets").iterdir():
        assert path.read_text().strip() not in result.stdout + result.stderr


@pytest.mark.parametrize("name", ["NODE_LOGIN_KEY", "NODE_1_HOST_KEY", "NODE_2_HOST_KEY"])
def test_key_pairs_belong_together(env: Mapping[str, str], name: str) -> None:
    private = paramiko.Ed25519Key.from_private_key(io.StringIO(env[name]))
    assert env[f"{name}_PUB"] == f"{private.get_name()} {private.get_base64()}"


def test_signature_of_the_private_key_is_valid_for_the_public_key(secrets: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    certificate.write_text((ROOT / "tests/golden/report/certificate.json").read_text())
    made = json.loads(certificate.read_text())
    signature = attested(json.loads(sign_certificate(made, certificate, secrets / "signing_key").read_text()))
    is_signed = verifier(secrets / "signing_key_pub")
    assert is_signed(signature.signed, signature.signatures[0].value)


def test_public_key_without_its_private_key_is_not_replaced(root: Path, secrets: Path, tmp_path: Path) -> None:
    (tmp_path / ".secrets").mkdir(mode=0o700)
    public = Path(shutil.copy(secrets / "signing_key_pub", tmp_path / ".secrets"))
    result = make(root, tmp_path / ".env")
    assert result.returncode == 2
    private = public.with_name("signing_key")
    assert f"{private} is missing; for a new pair, keep {public} elsewhere" in result.stderr
    assert public.read_text() == (secrets / "signing_key_pub").read_text()


def test_fernet_takes_its_key(env: Mapping[str, str]) -> None:
    key = Fernet(env["AIRFLOW_FERNET_KEY"])
    assert key.decrypt(key.encrypt(b"x")) == b"x"


def test_passwords_need_no_quoting_anywhere(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if name.endswith(("PASSWORD", "SECRET", "SECRET_KEY")):
            assert value.isalnum()
            assert len(value) == 64
