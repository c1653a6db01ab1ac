"""Copies params files of a suite's checkout into configs/chains."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tipcflow.config.suite import Suite
from tipcflow.domain import Compat, ConfigError
from tipcflow.domain.run.names import ChainName
from tipcflow.params.kinds import recognise
from tipcflow.plan import build_plan, file_modes

# Why a file is refused: its encoding, its kind of script, no mode in which it can be planned, or another file with
# the same chain.
Cause = Literal["", "encoding", "kind", "plan", "duplicate"]


@dataclass(frozen=True)
class Imported:
    """One params file of the suite.

    Attributes:
        file: relative to the suite's root.
        chain: the chain's name, '' if the file is refused.
        kind: the kind of the suite's script that reads it.
        state: `new`, `unchanged`, `updated`, `differs` (kept), or `refused`.
        modes: the modes in which it can be planned.
        reason: why the file is refused.
        cause: the kind of that reason, '' if the file is a chain.
    """

    file: str
    kind: str
    state: str
    chain: str = ""
    modes: tuple[str, ...] = ()
    reason: str = ""
    cause: Cause = ""

    @property
    def runs(self) -> bool:
        """Whether the file is a chain."""
        return self.state != "refused"

    @property
    def is_broken(self) -> bool:
        """Whether the file is of a supported kind and cannot be planned as a chain of its own."""
        return self.cause in ("plan", "duplicate")

    def as_json(self) -> dict[str, object]:
        """The file for --json."""
        return asdict(self)


def import_files(suite: Suite, repo: Path, chains: Path, *, update: bool) -> list[Imported]:
    """Copy supported files to `chains`/<model>/<name>, byte for byte.

    Args:
        suite: provides dialects and globs of params files.
        repo: the suite's root.
        chains: the folder of the suite's chains; created if missing.
        update: replace files that differ.

    Raises:
        ConfigError: the globs match nothing, or a file cannot be read or written.
    """
    paths = list(_params_files(suite, repo))
    if not paths:
        raise ConfigError(
            "the suite has no params files",
            key="REPO",
            found=str(repo),
            expected=f"files such as {', '.join(suite.params)}",
        )
    taken: dict[str, str] = {}
    files = []
    for path in paths:
        name = path.relative_to(repo).as_posix()
        try:
            files.append(_import_file(suite, path, name, chains, taken, update=update))
        except OSError as error:
            raise ConfigError(f"cannot be copied: {error.strerror}", file=str(error.filename or path)) from error
    return files


def left_over(files: Sequence[Imported], chains: Path) -> list[str]:
    """Files in `chains` that the suite no longer has, as relative paths; they are not removed."""
    ours = {f"{ChainName.parse(file.chain).in_suite}.txt" for file in files if file.runs}
    below = (path.relative_to(chains).as_posix() for path in sorted(chains.rglob("*.txt")))
    return [name for name in below if name not in ours]


def _params_files(suite: Suite, repo: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    for pattern in suite.params:
        for path in sorted(repo.glob(pattern)):
            if path.is_file() and path not in seen:
                seen.add(path)
                yield path


def _import_file(
    suite: Suite, path: Path, name: str, chains: Path, taken: dict[str, str], *, update: bool
) -> Imported:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Imported(name, "other", "refused", reason="not UTF-8 text", cause="encoding")
    kind = recognise(text, name)
    if kind.refused:
        return Imported(name, kind.kind, "refused", reason=f"{kind.what}: {kind.refused}", cause="kind")
    modes, reason = _plannable(suite, text, name)
    chain_name = ChainName.of_file(suite.name, name)
    chain = str(chain_name)
    cause: Cause = "plan"
    if chain in taken:
        cause, reason = "duplicate", f"{name}: {taken[chain]} has the same folder and file name"
    if not modes or chain in taken:
        return Imported(name, kind.kind, "refused", reason=reason, cause=cause)
    taken[chain] = name
    state = _copy(data, chains / f"{chain_name.in_suite}{path.suffix}", update=update)
    return Imported(name, kind.kind, state, chain=chain, modes=modes)


def _plannable(suite: Suite, text: str, name: str) -> tuple[tuple[str, ...], str]:
    """The modes in which a file can be planned, and the reason of the first mode in which it cannot."""
    modes: list[str] = []
    reason = ""
    for mode in file_modes(text, file=name, dialects=suite.dialects) or ("lite_train_lite_infer",):
        try:
            build_plan(
                text,
                file=name,
                suite=suite.name,
                chain=str(ChainName.of_file(suite.name, name)),
                dialects=suite.dialects,
                mode=mode,
                compat=Compat.SPEC,
            )
        except ConfigError as error:
            reason = reason or str(error)
            if error.line and not modes:  # the file itself is invalid, in every mode
                break
        else:
            modes.append(mode)
    return tuple(modes), reason


def _copy(data: bytes, target: Path, *, update: bool) -> str:
    if target.exists():
        if target.read_bytes() == data:
            return "unchanged"
        if not update:
            return "differs"
        target.write_bytes(data)
        return "updated"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return "new"
