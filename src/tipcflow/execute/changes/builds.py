"""The chains that certify a build of a framework: `builds` of the files in configs/repositories."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcflow.config.repository import Repository, line_of, load_repositories
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.changes.choose import catalog, unsupported
from tipcflow.execute.node.builds import pinned
from tipcflow.execute.node.preflight import parse_framework
from tipcflow.execute.source.wheel import name_build
from tipcflow.selection.globs import matches

# Maximum number of chains that an error lists as examples.
_SHOWN = 5


@dataclass(frozen=True)
class BuildChain:
    """A chain that certifies a build, and the params of its run.

    Attributes:
        repository: `owner/name`.
    """

    chain: str
    repository: str
    mode: str
    cluster: str
    policy: str


def requested_build(framework: str, wheel: str, sha256: str, *, home: Path, hosts: str) -> FrameworkBuild:
    """Return the build that params of a run name; nothing is fetched.

    Args:
        framework: `NAME==VERSION`, or '' with a wheel.
        wheel, sha256, home, hosts: as for `name_build`.

    Raises:
        ConfigError: none or two builds, a requirement that does not name one release, or an invalid wheel.
    """
    if bool(framework) == bool(wheel):
        raise ConfigError(
            "names one build of a framework",
            key="--framework",
            found=" ".join(filter(None, (framework, wheel))) or "none",
            expected="NAME==VERSION, or --framework-wheel",
        )
    if wheel:
        return name_build(wheel, sha256, home=home, hosts=hosts)
    if sha256:
        raise ConfigError("has no effect without a wheel", key="--sha256", found=sha256)
    build = pinned(parse_framework(framework))
    if build is None:
        raise ConfigError(
            "does not name one release", key="--framework", found=framework, expected="NAME==VERSION"
        )
    return build


def chains_of_build(framework: str, config_dir: Path) -> tuple[BuildChain, ...]:
    """The chains that certify a build, in the order of the globs; a chain of two repositories with equal params
    runs once.

    Args:
        framework: normalized name of the distribution, as in `FrameworkBuild.name`.

    Raises:
        ConfigError: a file is invalid, no file has this framework, the suite has another one, or a glob matches no
            chain.
    """
    files = {name: declared for name, declared in load_repositories(config_dir).files().items() if declared.builds}
    if not files:
        raise ConfigError(
            "no repository declares the chains of a framework build",
            file=str(config_dir / "repositories"),
            key="builds",
            expected="builds: {paddlepaddle: [suite/model/file]}",
            hint="or name the chains in the command",
        )
    frameworks = {name for declared in files.values() for name in declared.builds}
    if framework not in frameworks:
        raise ConfigError(
            "no repository declares the chains of this framework",
            file=str(config_dir / "repositories"),
            key="builds",
            found=framework,
            expected=f"one of {', '.join(sorted(frameworks))}",
        )
    chains: dict[tuple[str, str, str, str], BuildChain] = {}
    for name, repository in files.items():
        path = config_dir / "repositories" / f"{name}.yaml"
        for chain in _declared(repository, framework, path, config_dir):
            made = BuildChain(chain, repository.name, repository.mode, repository.cluster, repository.policy)
            chains.setdefault((chain, made.mode, made.cluster, made.policy), made)
    return tuple(chains.values())


def _declared(repository: Repository, framework: str, path: Path, config_dir: Path) -> Sequence[str]:
    globs = repository.builds.get(framework, ())
    if not globs:
        return ()
    suite = load_suite(repository.suite, config_dir)
    if not framework.startswith(suite.framework):
        raise ConfigError(
            f"suite {suite.name} does not use this framework",
            file=str(path),
            line=line_of(path, "builds", framework),
            key="builds",
            found=framework,
            expected=suite.framework,
        )
    known = [
        name
        for name, file in catalog(suite.name, config_dir)
        if matches(name, repository.chains) and not unsupported(file, repository.mode, suite)
    ]
    chosen: dict[str, None] = {}
    for index, glob in enumerate(globs):
        matching = [name for name in known if matches(name, (glob,))]
        if not matching:
            raise ConfigError(
                f"matches no chain of the repository that supports mode {repository.mode}",
                file=str(path),
                line=line_of(path, "builds", framework, index),
                key=f"builds.{framework}",
                found=glob,
                expected=f"a glob of {', '.join(known[:_SHOWN])}" if known else "a chain in configs/chains",
            )
        chosen |= dict.fromkeys(matching)
    return tuple(chosen)
