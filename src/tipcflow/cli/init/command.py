"""`tipcflow init REPOSITORY|FOLDER`: proposes a suite's file, plans all its chains, and writes them on consent."""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import counted

if TYPE_CHECKING:
    from tipcflow.cli.importing.files import Imported
    from tipcflow.cli.init.inspect import Value

_URL = re.compile(r"^(?:[a-z+]+://|[\w.-]+@[\w.-]+:)")
_SOURCE = "REPOSITORY|FOLDER"
_SHOWN = 5
_MODE = "lite_train_lite_infer"


def init(
    source: Annotated[str, typer.Argument(metavar=_SOURCE, help="Git URL, or a checked-out suite.")],
    suite: Annotated[
        str, typer.Option("--suite", "-s", help="Name of the suite. Default: the source's name.")
    ] = "",
    subfolder: Annotated[str, typer.Option(help="The suite's root in the repository.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; write files only with --yes.")] = False,
) -> None:
    """Inspect a suite, propose its file, lint and plan every params file, and list what is unclear.

    After confirmation, writes the suite file and imports the chains, as `tipcflow import` does.
    """
    from tipcflow.config.settings import settings

    chosen = settings()
    name = suite or re.sub(r"[^A-Za-z0-9_.-]", "-", Path(source.rstrip("/")).name.removesuffix(".git")).strip(
        "-._"
    )
    target = chosen.config_dir / "suites" / f"{name}.yaml"
    if target.exists():
        raise ConfigError("the suite has a file already", file=str(target), hint="`tipcflow import` uses it")
    checkout = _checkout(source, name, chosen.home / "suites")
    below = subfolder or _subfolder(checkout)
    root = checkout / below
    proposal = _Proposal(name, source, root, below)
    proposal.inspect()
    if as_json:
        print_json(proposal.as_json())
    else:
        proposal.show()
    if yes or (not as_json and _consents(proposal)):
        _write(target, proposal.text, root, name, chosen.config_dir, quiet=as_json)
    elif not as_json:
        typer.echo("nothing was written")


class _Proposal:
    """The proposed file of a suite, and what its params files are worth under it."""

    def __init__(self, name: str, source: str, root: Path, below: str) -> None:
        self.name, self.source, self.root, self.below = name, source, root, below
        self.values: list[Value] = []
        self.above = 0
        self.text = ""
        self.files: list[Imported] = []
        self.findings: Counter[str] = Counter()

    def inspect(self) -> None:
        """Inspect the suite, and plan and lint its files in a temporary folder.

        Raises:
            ConfigError: the suite has no params files, or the name is invalid.
        """
        from tipcflow.cli.importing.files import import_files
        from tipcflow.cli.init.inspect import inspect, levels_above, training_scripts
        from tipcflow.cli.init.known import known_values, merged
        from tipcflow.cli.lint import lint_files
        from tipcflow.config.settings import settings
        from tipcflow.config.suite import load_suite

        paths = sorted(path for path in self.root.glob("test_tipc/configs/**/*.txt") if path.is_file())
        known = known_values(self.source, self.root, self.below, settings().config_dir)
        self.values = merged(inspect(self.root, paths), known)
        self.above = levels_above(self.root, list(training_scripts(self.root, paths)))
        self.text = self._yaml()
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder, "suites", f"{self.name}.yaml")
            draft.parent.mkdir()
            draft.write_text(self.text, encoding="utf-8")
            loaded = load_suite(str(draft), Path(folder))
            self.files = import_files(loaded, self.root, Path(folder, "chains"), update=False)
        self.findings = Counter(str(finding.severity) for finding in lint_files(paths))

    @property
    def unclear(self) -> list[str]:
        """Questions to the user."""
        requested = [f"{value.key}: {value.unclear}" for value in self.values if value.unclear]
        broken = [file for file in self.files if file.is_broken]
        return [*requested, *(f"cannot be planned: {file.reason.splitlines()[0]}" for file in broken)]

    @property
    def runs(self) -> list["Imported"]:
        """Files that become chains."""
        return [file for file in self.files if file.runs]

    def as_json(self) -> dict[str, object]:
        """The proposal for --json."""
        return {
            "suite": self.name,
            "root": str(self.root),
            "values": [vars(value) for value in self.values],
            "text": self.text,
            "files": [file.as_json() for file in self.files],
            "lint": dict(self.findings),
            "unclear": self.unclear,
        }

    def show(self) -> None:
        """Print the proposal, counts and questions."""
        typer.echo(f"suite {self.name} in {self.root}")
        typer.echo("".join(f"  {line}\n" for line in self.text.splitlines()), nl=False)
        reasons = Counter(f"{file.kind}: {file.reason.splitlines()[0]}" for file in self.files if not file.runs)
        counts = ", ".join(counted(self.findings[word], word) for word in ("error", "warning", "note"))
        typer.echo(f"{len(self.runs)} of {counted(len(self.files), 'params file')} can be planned; lint: {counts}")
        for reason, count in reasons.most_common(_SHOWN):
            typer.echo(f"  refused: {count} {reason}")
        questions = self.unclear
        typer.echo("unclear:" if questions else "nothing is unclear")
        for number, question in enumerate(questions[: 2 * _SHOWN], 1):
            typer.echo(f"  {number}. {question}")
        if len(questions) > 2 * _SHOWN:
            typer.echo(f"  and {len(questions) - 2 * _SHOWN} more: see --json")

    def _yaml(self) -> str:
        root = self.root.resolve()
        top = root.parents[self.above - 1] if self.above else root
        where: dict[str, object] = {"folder": str(top)}
        below = root.relative_to(top).as_posix()
        if _URL.match(self.source):
            where, below = {"git": self.source}, self.below
        if below != ".":
            where["subfolder"] = below
        lines = ["# Proposed by `tipcflow init`. Every key: docs/reference/configuration.md."]
        lines += _dumped({"name": self.name, **where})
        for value in self.values:
            if value.value is None:
                lines.append(f"# {value.key}: {value.why}")
            else:
                lines += [f"# {value.why}", *_dumped({value.key: value.value})]
        return "\n".join(lines) + "\n"


def _dumped(keys: dict[str, object]) -> list[str]:
    import yaml

    lines = []
    for key, value in keys.items():
        if isinstance(value, list | dict):
            lines.append(f"{key}: {yaml.safe_dump(value, default_flow_style=True, width=1000).strip()}")
        else:
            lines += yaml.safe_dump({key: value}, default_flow_style=False, width=1000).splitlines()
    return lines


def _checkout(source: str, name: str, cache: Path) -> Path:
    """The folder of the sources; a URL is cloned to where runs expect the suite's clone.

    Raises:
        ConfigError: no such folder, or the URL contains a login.
        InfraError: the repository cannot be cloned.
    """
    from tipcflow.config.suite import Suite, refuse_login
    from tipcflow.execute.source.snapshot import checkout

    refuse_login(source, _SOURCE)
    if not _URL.match(source):
        if not Path(source).is_dir():
            raise ConfigError(
                "no such folder",
                key=_SOURCE,
                found=source,
                expected="a git URL, or a checked-out suite",
            )
        return Path(source)
    cache.mkdir(parents=True, exist_ok=True)
    typer.echo(f"cloning {source}", err=True)
    return checkout(Suite(name=name, git=source, dialects=("models/template",)), cache)


def _subfolder(checkout: Path) -> str:
    """The folder of the only suite below a checkout.

    Raises:
        ConfigError: there is none, or there are several.
    """
    if (checkout / "test_tipc" / "configs").is_dir():
        return "."
    folders = sorted(
        path.parent.parent.relative_to(checkout).as_posix() for path in checkout.glob("**/test_tipc/configs")
    )
    if len(folders) == 1:
        return folders[0]
    raise ConfigError(
        "several suites" if folders else "no params files",
        key="--subfolder" if folders else "REPOSITORY|FOLDER",
        found=", ".join([*folders[:_SHOWN], *(["…"] if folders[_SHOWN:] else [])]) or str(checkout),
        expected="one of them" if folders else "test_tipc/configs/**/*.txt in the folder or below it",
    )


def _consents(proposal: _Proposal) -> bool:
    if not sys.stdin.isatty():
        typer.echo("pass --yes to write it", err=True)
        return False
    return typer.confirm(f"Write the suite and {counted(len(proposal.runs), 'chain')}?", default=False)


def _write(target: Path, text: str, root: Path, name: str, config_dir: Path, *, quiet: bool) -> None:
    """Write the suite's file, its chains and its DAG file."""
    from tipcflow.cli.importing.command import write_dags
    from tipcflow.cli.importing.files import import_files
    from tipcflow.config.suite import load_suite

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    files = import_files(load_suite(name, config_dir), root, config_dir / "chains" / name, update=False)
    chains = [file for file in files if file.runs]
    dags = write_dags(name, config_dir)[0] if chains else None
    if quiet:
        return
    typer.echo(f"written: {target}, {counted(len(chains), 'chain')}{f', {dags}' if dags else ''}")
    for line in _next(chains, name):
        typer.echo(line)


def _next(chains: "Sequence[Imported]", name: str) -> list[str]:
    if not chains:
        return []
    # A short training, if possible on several nodes, not the conversion that is first in the alphabet.
    first = min(chains, key=lambda chain: (_MODE not in chain.modes, "fleet" not in chain.file))
    mode = _MODE if _MODE in first.modes else first.modes[0]
    return [
        f"next: tipcflow local up --suite {name}",
        f"      tipcflow plan {first.file} --suite {name} --cluster local --mode {mode}",
        f"      tipcflow run  {first.file} --suite {name} --cluster local --mode {mode}",
    ]
