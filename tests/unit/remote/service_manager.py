"""A real systemd with a user's service manager, in namespaces of its own."""

import os
import shlex
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from tests.support.programs import missing

SYSTEMD = Path("/lib/systemd/systemd")
USER = 65534  # the Unix user `nobody`
WAIT_S = 30.0

# /tmp and other folders that systemd cleans at boot are empty file systems of the namespace, and its units for
# cleaning and for devices are masked: the machine outside must not notice.
BOOT = """
set -e
mount --make-rprivate /
mount -t proc proc /proc
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind "$1" /mnt
for folder in /run /tmp /var/tmp /var/log /var/lib/systemd /etc/systemd/system; do
    mount -t tmpfs tmpfs $folder
done
mkdir -p "$1"
mount --bind /mnt "$1"
umount /mnt
mount -o remount,bind,ro /
mkdir -p /run/lock /run/systemd/system
for unit in udevd tmpfiles-setup tmpfiles-clean tmpfiles-setup-dev sysctl modules-load random-seed; do
    ln -s /dev/null /run/systemd/system/systemd-$unit.service
done
export container=other
exec /lib/systemd/systemd --system --unit=basic.target --log-target=console --show-status=0
"""
START_USER = f"""
systemctl start dbus.service
install -d -m 700 -o {USER} /run/user/{USER}
systemctl start user@{USER}.service
"""


class ServiceManager:
    """Boots systemd, starts the service manager of `nobody`, and runs commands as that user.

    Args:
        folder: the only folder that commands may write, except /tmp, which is empty and separate.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or not SYSTEMD.exists():
            missing("a service manager needs root and systemd (Debian: apt-get install systemd)")
        spaces = ["unshare", "--kill-child", "--pid", "--fork", "--mount", "--cgroup", "--ipc", "--uts", "--net"]
        self.log = self.folder.with_name("systemd.log")
        self.process = subprocess.Popen(
            [*spaces, "bash", "-c", BOOT, "boot", self.folder], stdout=self.log.open("w"), stderr=subprocess.STDOUT
        )
        end = time.monotonic() + WAIT_S
        while self._inside("systemctl", "is-active", "basic.target").returncode != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                self.__exit__(None, None, None)
                pytest.fail(f"systemd is not ready: {self.log.read_text()}")
            time.sleep(0.1)
        done = self._inside("bash", "-ec", START_USER)
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def run(self, *command: str | Path) -> str:
        """Run a command as the user, outside the user's service manager; return its output."""
        user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        done = self._inside(*user, "env", "-C", "/", f"XDG_RUNTIME_DIR=/run/user/{USER}", *command)
        assert done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stderr}"
        return done.stdout

    def _inside(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        enter = ["nsenter", "-t", *children[:1], "-p", "-m", "-C", "-i", "-u", "-n"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, check=False, timeout=60)
