"""The key `account` on a Slurm whose slurmdbd knows which accounts a user may use."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm import accounts as with_accounts
from tests.slurm.accounts import SlurmWithAccounts
from tests.support.programs import missing
from tests.support.slurm import SlurmSite

from tipcflow.domain import Status

pytestmark = [pytest.mark.slurm, pytest.mark.full]
# sbatch itself takes less than a second; a run that repeated its request would wait for `--wait-minutes`.
REFUSED_S = 60


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmWithAccounts]:
    if problem := with_accounts.missing():
        missing(problem)
    with SlurmWithAccounts(tmp_path_factory.mktemp("accounts") / "s") as running:
        yield running


@pytest.fixture
def site(accounts: SlurmWithAccounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmSite:
    monkeypatch.setenv("SLURM_CONF", str(accounts.conf))
    return SlurmSite(tmp_path, accounts)


def test_run_passes_on_an_account_of_its_user(site: SlurmSite) -> None:
    site.configure_cluster(account="ml")
    done = site.run()
    assert done.code == 0, done.output
    job = site.slurm.run("squeue", "--states=all", "--noheader", "--format=%a %T", "--sort=-i").splitlines()[0]
    assert job.split()[0] == "ml"
    site.slurm.await_idle()
    assert site.left_behind() == []


def test_refused_account_is_named_by_one_config_error(site: SlurmSite, tmp_path: Path) -> None:
    site.replace_program(tmp_path / "bin", "sbatch", f'echo once >> {tmp_path}/calls; exec "$REAL" "$@"')
    site.configure_cluster(account="absent")
    begun = time.monotonic()
    done = site.run("--wait-minutes", "10")
    assert time.monotonic() - begun < REFUSED_S
    assert (done.code, done.run.status) == (2, Status.CONFIG_ERROR), done.output
    assert done.run.reason == (
        "local: account: Slurm refuses the request: "
        "Invalid account or account/partition combination specified; found 'absent'"
    )
    assert (tmp_path / "calls").read_text() == "once\n", "the request is not repeated"
    assert site.left_behind() == []
