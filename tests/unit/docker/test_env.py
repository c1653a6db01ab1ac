"""docker/env.sh: secrets that no repository holds, made once, for their owner alone."""

import base64
import io
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import paramiko
import pytest
from cryptography.fernet import Fernet

pytestmark = pytest.mark.process


def make(root: Path, path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([root / "docker/env.sh", path], capture_output=True, text=True, timeout=60)


def test_env_file_is_readable_only_by_the_owner(env_file: Path) -> None:
    assert env_file.stat().st_mode & 0o777 == 0o600


def test_two_places_share_nothing(root: Path, env: Mapping[str, str], tmp_path: Path) -> None:
    make(root, tmp_path / "env")
    other = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert other.keys() == env.keys()
    assert not other.items() & env.items()
    assert len(set(env.values())) == len(env)


def test_existing_settings_stay_and_missing_ones_are_added(root: Path, env_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "env"
    lines = env_file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("REDIS_PASSWORD", "NODE_1_"))]
    path.write_text("\n".join(["AIRFLOW_PORT=8081", *kept]))
    path.chmod(0o600)
    assert make(root, path).returncode == 0
    after = path.read_text().splitlines()
    assert after[: len(kept) + 1] == ["AIRFLOW_PORT=8081", *kept]
    added = {line.split("=")[0] for line in after[len(kept) + 1 :]}
    assert added == {"REDIS_PASSWORD", "NODE_1_HOST_KEY", "NODE_1_HOST_KEY_PUB"}
    assert make(root, path).returncode == 0
    assert path.read_text().splitlines() == after


def test_a_file_that_others_may_read_is_not_filled(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.touch(mode=0o644)
    result = make(root, path)
    assert (result.returncode, path.read_text()) == (2, "")
    assert "chmod 600" in result.stderr


def test_files_unreadable_for_containers_are_an_error(root: Path, tmp_path: Path) -> None:
    for folder in ("dags", "configs/chains", "docker"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("env.sh", "redis.sh", "postgres_init.sh"):
        shutil.copy(root / "docker" / name, tmp_path / "docker")
    for hidden in ("docker/redis.sh", "configs/chains"):
        (tmp_path / hidden).chmod(0o700)
        result = make(tmp_path, tmp_path / ".env")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {hidden} is not readable for the containers' users; run chmod")
        assert not (tmp_path / ".env").exists()
        (tmp_path / hidden).chmod(0o755)
    assert make(tmp_path, tmp_path / ".env").returncode == 0


def test_half_a_key_pair_is_not_completed_with_another_half(root: Path, env_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "env"
    lines = [line for line in env_file.read_text().splitlines() if not line.startswith("NODE_LOGIN_KEY_PUB")]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines))
    result = make(root, path)
    assert result.returncode == 2
    assert "half of the pair NODE_LOGIN_KEY" in result.stderr


def test_no_secret_is_printed(root: Path, tmp_path: Path) -> None:
    result = make(root, tmp_path / "env")
    for line in (tmp_path / "env").read_text().splitlines():
        assert line.split("=", 1)[1] not in result.stdout + result.stderr


@pytest.mark.parametrize("name", ["NODE_LOGIN_KEY", "NODE_1_HOST_KEY", "NODE_2_HOST_KEY"])
def test_key_pairs_belong_together(env: Mapping[str, str], name: str) -> None:
    private = paramiko.Ed25519Key.from_private_key(io.StringIO(base64.b64decode(env[name]).decode()))
    assert env[f"{name}_PUB"] == f"{private.get_name()} {private.get_base64()}"


def test_fernet_takes_its_key(env: Mapping[str, str]) -> None:
    key = Fernet(env["AIRFLOW_FERNET_KEY"])
    assert key.decrypt(key.encrypt(b"x")) == b"x"


def test_passwords_need_no_quoting_anywhere(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if "PASSWORD" in name or "SECRET" in name:
            assert value.isalnum()
            assert len(value) == 64
