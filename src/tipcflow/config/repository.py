"""Repositories on GitHub whose changes are certified: `configs/repositories/<name>.yaml`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import load_yaml
from tipcflow.config.yaml_text.strict import read_yaml
from tipcflow.domain.errors import ConfigError

GITHUB = "https://api.github.com"
_HOSTS = ("github.com", "www.github.com", "api.github.com")
# A full run executes all steps of a chain on the full dataset.
WHOLE = "whole_train_whole_infer"
_REFERENCES = {"suite": "suites", "cluster": "clusters", "policy": "policies"}

Glob = Annotated[str, StringConstraints(min_length=1)]
# A normalized name, as in wheels: a build's name is compared with it.
Distribution = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
# The same, the weakest first.
RANKS: tuple[str, ...] = ("none", "read", "triage", "write", "maintain", "admin")


def _api_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ValueError("an https address without login and query, such as https://github.example.com/api/v3")
    if parts.hostname in _HOSTS and url.rstrip("/") != GITHUB:
        raise ValueError(f"the API of github.com is {GITHUB}")
    return url.rstrip("/")


class Approvers(ConfigModel):
    """Who may approve the code of a fork, and start runs of the pull requests of others.

    Attributes:
        permission: the lowest sufficient permission on the repository.
        users: logins that may approve whatever their permission.
    """

    permission: Literal["write", "maintain", "admin"] = "write"
    users: tuple[str, ...] = ()

    def allow(self, login: str, permission: str) -> bool:
        """Whether a user with this permission may approve."""
        named = login.lower() in {user.lower() for user in self.users}
        has_permission = permission in RANKS and RANKS.index(permission) >= RANKS.index(self.permission)
        return bool(login) and (named or has_permission)


class Budget(ConfigModel):
    """Limits of the runs of one pull request.

    Attributes:
        minutes_per_chain: of one chain.
        minutes: of all chains, from the start of the first to the end of the last one.
        nodes: number of nodes that may be used at the same time.
        unknown_minutes: assumed duration of a step without history.
        reserve_minutes: kept for a confirm run.
        drop: globs of legs (`step/leg`) that are dropped if the time is short, the least valuable first.
        keep: globs of chains, the most valuable first; other chains follow in the order of their reasons.
    """

    minutes_per_chain: float = Field(default=15, gt=0)
    minutes: float = Field(default=60, gt=0)
    nodes: int = Field(default=2, ge=1)
    unknown_minutes: float = Field(default=3, gt=0)
    reserve_minutes: float = Field(default=5, ge=0)
    drop: tuple[Glob, ...] = ()
    keep: tuple[Glob, ...] = ()


class Labels(ConfigModel):
    """Labels of a pull request.

    Attributes:
        run: starts a run of a draft.
        skip: no run, and a check that reports the skip.
        every: selects all chains.
        chains: label -> globs of chains that it adds.
    """

    run: str = "tipc"
    skip: str = "tipc:skip"
    every: str = "tipc:all"
    chains: dict[str, tuple[Glob, ...]] = {}


class Selection(ConfigModel):
    """Which chains a change affects, in addition to recorded files and the configs' includes.

    Attributes:
        globs: glob of changed paths -> globs of chains.
        shared: globs of paths that concern every chain; a change of one runs the sentinels.
        sentinels: globs of the chains that run when shared or only unknown files changed.
        ignored: globs of paths that concern no chain (documentation).
    """

    globs: dict[Glob, tuple[Glob, ...]] = {}
    shared: tuple[Glob, ...] = ()
    sentinels: tuple[Glob, ...] = ()
    ignored: tuple[Glob, ...] = ("**/*.md", "docs/**")


class Repository(ConfigModel):
    """One repository.

    Attributes:
        name: `owner/name` on GitHub.
        connection: Airflow connection of the App: login = App id, password = webhook secret, extra
            `private_key` = the App's key in PEM form.
        api_url: address of the API; of GitHub Enterprise `https://HOST/api/v3`.
        app_slug: name of the App in its address, whose comments are ignored (`<slug>[bot]`).
        suite, cluster, policy: files in configs/suites, configs/clusters and configs/policies, read on the
            controller, so a pull request cannot change them.
        mode: mode of the runs.
        chains: globs of the chains that may run.
        branches: globs of base branches whose pull requests are certified.
        pushes: globs of branches whose pushes are certified.
        forks: `approve`: code of a fork waits for approval of its commit; `never`: it does not run.
        builds: framework (distribution, `paddlepaddle-gpu`) -> globs of the chains that certify a build of it.
        check: name of the check run; merge queues require the same name.
        gate: conclusion of runs without evidence: `required`: action_required; `advisory`: neutral, which GitHub
            counts as passed.
        comment: when a pull request gets a comment: `findings`: if the verdict is not a plain pass.
        alerts: `issues`: each cause of alerts of the suite's chains gets an issue.
    """

    schema_version: int = 1
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$")
    connection: str = Field(min_length=1)
    api_url: Annotated[str, AfterValidator(_api_url)] = GITHUB
    app_slug: str = "tipcflow"
    suite: str = Field(min_length=1)
    cluster: str = Field(min_length=1)
    policy: str = "pr"
    mode: str = "lite_train_lite_infer"
    chains: tuple[Glob, ...] = ("**",)
    branches: tuple[Glob, ...] = ("**",)
    pushes: tuple[Glob, ...] = ()
    forks: Literal["approve", "never"] = "approve"
    approvers: Approvers = Approvers()
    budget: Budget = Budget()
    labels: Labels = Labels()
    selection: Selection = Selection()
    builds: dict[Distribution, Annotated[tuple[Glob, ...], Field(min_length=1)]] = {}
    check: str = Field(default="tipcflow", min_length=1, max_length=100)
    gate: Literal["required", "advisory"] = "required"
    comment: Literal["findings", "always", "never"] = "findings"
    alerts: Literal["never", "issues"] = "never"

    def mode_of(self, *, whole: bool) -> str:
        """Mode of a run; `whole`: of one on the full dataset."""
        return WHOLE if whole else self.mode

    @property
    def bot(self) -> str:
        """Login of the App's own comments."""
        return f"{self.app_slug}[bot]"

    @field_validator("budget")
    @classmethod
    def _leaves_time(cls, budget: Budget) -> Budget:
        if budget.reserve_minutes >= budget.minutes:
            raise ValueError("reserve_minutes must be less than minutes")
        if budget.minutes_per_chain > budget.minutes:
            raise ValueError("minutes_per_chain must be at most minutes")
        return budget


class Repositories:
    """All configured repositories."""

    def __init__(self, repositories: Mapping[str, Repository]) -> None:
        self._by_file = dict(repositories)

    def __iter__(self) -> Iterator[Repository]:
        return iter(self._by_file.values())

    def files(self) -> Mapping[str, Repository]:
        """Name of the file, without suffix -> repository."""
        return self._by_file

    def connections(self) -> tuple[str, ...]:
        """The connections of all repositories, each once."""
        return tuple(dict.fromkeys(repository.connection for repository in self._by_file.values()))

    def of(self, connection: str, name: str) -> Repository | None:
        """The repository of that name whose deliveries are signed with the connection's secret."""
        return next(
            (
                repository
                for repository in self._by_file.values()
                if repository.connection == connection and repository.name.lower() == name.lower()
            ),
            None,
        )


def load_repositories(config_dir: Path) -> Repositories:
    """All files of configs/repositories; none if the folder does not exist.

    Raises:
        ConfigError: a file is invalid, names an unknown suite, cluster or policy, or two files have the same
            repository.
    """
    repositories: dict[str, Repository] = {}
    where: dict[str, Path] = {}
    apis: dict[str, Path] = {}
    for path in sorted((config_dir / "repositories").glob("*.yaml")):
        repository = load_repository(path, config_dir)
        # Attempts, approvals and messages are stored by the name alone.
        identity = repository.name.lower()
        if identity in where:
            raise ConfigError(
                f"{where[identity].name} has the same repository",
                file=str(path),
                line=line_of(path, "name"),
                key="name",
                found=repository.name,
                expected="each repository once",
            )
        other = apis.setdefault(repository.connection, path)
        if other != path and repositories[other.stem].api_url != repository.api_url:
            raise ConfigError(
                f"{other.name} uses this connection for {repositories[other.stem].api_url}",
                file=str(path),
                line=line_of(path, "connection"),
                key="connection",
                found=repository.connection,
                expected="a connection per GitHub server",
            )
        where[identity] = path
        repositories[path.stem] = repository
    return Repositories(repositories)


def load_repository(path: Path, config_dir: Path) -> Repository:
    """One file.

    Raises:
        ConfigError: it is invalid, or names an unknown suite, cluster or policy.
    """
    repository = load_yaml(path, Repository)
    for key, folder in _REFERENCES.items():
        name = getattr(repository, key)
        names = sorted(file.stem for file in (config_dir / folder).glob("*.yaml"))
        if name not in names:
            raise ConfigError(
                f"configs/{folder} has no such file",
                file=str(path),
                line=line_of(path, key),
                key=key,
                found=name,
                expected=f"one of {', '.join(names) or 'none'}",
            )
    return repository


def line_of(path: Path, *key: str | int) -> int:
    """1-based line of a key (of keys and list indices), 0 if the file does not have it."""
    _, lines = read_yaml(path.read_text(encoding="utf-8"), file=str(path))
    return lines.get(key, 0)
