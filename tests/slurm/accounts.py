"""A Slurm with accounts: slurmdbd on a MariaDB of its own, and a slurmctld that refuses jobs of other accounts."""

import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path

from tests.support import slurm
from tests.support.certify import wait_for
from tests.support.slurm import LocalSlurm

PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db", "my_print_defaults")
# Not those of the Slurm without accounts, which may run at the same time.
PORT, DBD_PORT, SQL_PORT = 17100, 17201, 17202
# Creation of the tables by slurmdbd, on a busy machine, seconds.
_READY_S = 120

_ACCOUNTING = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageEnforce=associations"""

_DBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


def missing() -> str:
    """Return what this machine lacks for a Slurm with accounts, '' if nothing."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    absent = [name for name in PROGRAMS if not shutil.which(name, path=places)]
    own = (
        f"not installed: {', '.join(absent)} (Debian: slurmdbd mariadb-server-core mariadb-client-core)"
        if absent
        else ""
    )
    return slurm.missing() or own


class SlurmWithAccounts(LocalSlurm):
    """A running Slurm in which user root may use the accounts `root` and `ml`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, names=("n1", "n2"), port=PORT)
        self.accounting = _ACCOUNTING.format(folder=folder, port=DBD_PORT)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for name in ("slurmdbd", "mariadbd"):
            self.stop(name)

    def _start_accounting(self) -> None:
        self._start_database(password := secrets.token_hex(16))
        conf = self.folder / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text(_DBD_CONF.format(folder=self.folder, port=DBD_PORT, sql_port=SQL_PORT, password=password))
        self._spawn("slurmdbd", ["slurmdbd", "-D"])
        deadline = time.monotonic() + _READY_S
        while "tipcflow" not in self.run("sacctmgr", "-i", "add", "cluster", "tipcflow", check=False):
            assert time.monotonic() < deadline, (self.folder / "slurmdbd.out").read_text()[-4000:]
            time.sleep(0.5)
        self.run("sacctmgr", "-i", "add", "account", "ml", "cluster=tipcflow")
        self.run("sacctmgr", "-i", "add", "user", "root", "account=ml", "cluster=tipcflow")

    def _start_database(self, password: str) -> None:
        data, once = self.folder / "mysql", self.folder / "once.sql"
        words = ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_READY_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        once.touch(mode=0o600)
        once.write_text(
            f"CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}';\n"
            "GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';\n"
        )
        socket = self.folder / "mysql.socket"
        words = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={socket}"]
        words += ["--bind-address=127.0.0.1", f"--port={SQL_PORT}", "--skip-name-resolve", f"--init-file={once}"]
        words += [f"--pid-file={self.folder}/mariadbd.pid"]
        self._spawn("mariadbd", words)
        wait_for(socket.exists, what="MariaDB")
