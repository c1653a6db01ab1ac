"""`tipcflow certificate …`: the JSON document that links a run's configuration to its verdict."""

import errno
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.domain import ConfigError, Status, exit_code
from tipcflow.domain.run.kept_files import StoringDocument
from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.report.canonical import canonical

if TYPE_CHECKING:
    from tipcflow.domain import Run
    from tipcflow.execute.collect.run_files import RunFiles

app = typer.Typer(no_args_is_help=True, help="Certificates of runs.")


@app.callback()
def _group() -> None:
    """The certificate of a run."""


class Format(StrEnum):
    """Output formats of `tipcflow certificate show`."""

    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    form: Annotated[
        Format,
        typer.Option("--format", help="JSON as in the run's file, or Markdown or JUnit XML of the same facts."),
    ] = Format.JSON,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (default).")] = False,
) -> None:
    """Print a run's certificate as JSON, Markdown or JUnit XML."""
    from tipcflow.execute.verdict.run_data import load_run
    from tipcflow.report import junit, markdown
    from tipcflow.report.certificate import as_text
    from tipcflow.store import Store

    if as_json and form is not Format.JSON:
        raise ConfigError(
            "cannot be combined", key="--json, --format", found=form.value, expected="one of the two options"
        )
    with Store.open() as store:
        stored_run = store.runs.find(run)
        certificate = store.documents.get(stored_run.id, CertificateDocument)
        document = certificate.root if certificate else None
        if document is not None and form is not Format.JSON:
            data = load_run(store, stored_run)
            written = markdown if form is Format.MARKDOWN else junit
            typer.echo(written(data.facts, stored_run, data.checks, neutral=data.neutral), nl=False)
            return
    if document is None:
        raise ConfigError(
            f"run {stored_run.id} has no certificate",
            hint="it is running"
            if stored_run.status is None
            else f"its status is {': '.join(filter(None, (stored_run.status.value, stored_run.reason)))}",
        )
    typer.echo(as_text(document), nl=False)


@app.command("verify")
def verify(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="Run ID or a prefix of it, latest, or a file; also checks the collected files next to it.",
        ),
    ],
    keys: Annotated[
        list[Path] | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="PEM file with an Ed25519 public key; the signature next to the certificate must be by this key. "
            "Repeat it to accept several keys.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print problems as JSON.")] = False,
) -> None:
    """Verify the hashes of a certificate and of collected files next to it; exit code 1 if one differs.

    The collected files of a RUN must exist. Without files next to a FILE, only the certificate is verified.
    """
    from tipcflow.report import verify as problems_of
    from tipcflow.report.verify import path_problem, verify_run

    subject = _subject(run)
    file, kept = subject.file, subject.kept
    document = _document(file)
    named = document.get("files")
    names = list(named) if isinstance(named, dict) else []
    hashes = _hashes(file.parent, [name for name in names if not path_problem(name)])
    damaged: list[str] = []
    if kept is not None:
        stored, damaged = _stored_hashes(kept, [name for name in names if name not in hashes])
        hashes |= stored
    # Without collected files next to a file, only the certificate's own hashes are checked.
    problems = [*subject.changed, *problems_of(document, files=hashes or None), *damaged]
    if subject.run is not None:
        status = subject.run.status.value if subject.run.status else ""
        problems += verify_run(document, run=subject.run.id, status=status, stored=subject.stored)
    if names and not hashes and not damaged and subject.run is not None:
        places = [str(file.parent), *([kept.url] if kept is not None else [])]
        problems.append(f"the collected files of the run are missing: 0 of {len(names)} in {' or '.join(places)}")
    if keys:
        problems += _signature_problems(file, document, keys)
    if problems and subject.is_storing:
        problems.append(
            "the certificate is not completely in the object store: `maintenance` writes it again later"
        )
    if as_json:
        counts = {"compared": len(hashes), "listed": len(names)}
        signed = bool(keys) and not problems
        typer.echo(json.dumps({"file": str(file), "problems": problems, "signed": signed, **counts}))
    else:
        checked = f"{len(hashes)} of {len(names)} collected files checked"
        if names and not hashes:
            checked = f"the certificate alone: 0 of {len(names)} collected files next to it"
        typer.echo("\n".join(problems) or f"{file}: valid ({checked}{', signature valid' if keys else ''})")
    raise typer.Exit(exit_code(Status.FAILED) if problems else 0)


def _document(file: Path) -> dict[str, Any]:
    """The JSON object in the file of a certificate.

    Raises:
        ConfigError: the file cannot be read, or has none.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        canonical(document)  # its hashes need more levels of Python's stack than reading it
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise ConfigError(problem, file=str(file), hint="give the path of a file, or the ID of a run") from error
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise ConfigError("is not a certificate", file=str(file), line=line, expected="a JSON object") from error
    except RecursionError:
        raise ConfigError(
            "is not a certificate", file=str(file), found="deeply nested values", expected="a JSON object"
        ) from None
    if not isinstance(document, dict):
        raise ConfigError("is not a certificate", file=str(file), expected="a JSON object")
    return document


def _signature_problems(file: Path, document: dict[str, Any], keys: Sequence[Path]) -> list[str]:
    """The problems of the signature next to a certificate."""
    from tipcflow.execute.collect.kept_files import SIGNATURE
    from tipcflow.execute.verdict.signature import verifier
    from tipcflow.report import attestation
    from tipcflow.report.verify import run_of, status_of

    is_signed = [verifier(key) for key in keys]
    beside = file.with_name(SIGNATURE)
    try:
        signature = json.loads(beside.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return [f"the certificate is not signed: {beside} does not exist"]
    except (OSError, ValueError) as error:
        return [f"the signature is not readable: {error}"]
    except RecursionError:
        return [f"the signature is not readable: the values in {beside} are nested too deeply"]
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    status, run = status_of(document), run_of(document)
    return attestation.problems_of(signature, sha256=sha256, status=status, run=run, is_signed=is_signed)


def _hashes(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Path -> hash of the files in a folder, compressed or not."""
    from tipcflow.execute.collect.log_archive import content_hash, is_kept

    hashes = {}
    for name in names:
        try:
            if is_kept(folder / name):
                hashes[name] = content_hash(folder / name)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # no such file can exist
                raise
    return hashes


def _stored_hashes(kept: "RunFiles", names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """(Path -> hash of the files that are in the object store, messages about those with another content).

    Each object is read and hashed: a copy on this machine proves nothing about it, and is replaced.

    Raises:
        InfraError: the object store cannot be reached.
    """
    from tipcflow.execute.objects.object_store import DamagedObjectError

    hashes, damaged = {}, []
    for name in names:
        try:
            if name in kept.kept and kept.copy(kept.kept[name], fresh=True) is not None:
                hashes[name] = kept.kept[name].sha256
        except DamagedObjectError as error:
            damaged.append(error.message)
    return hashes, damaged


def _is_path(run: str) -> bool:
    """Whether the argument is the path of a file, not the ID of a run."""
    return run.endswith(".json") or Path(run).is_file()


@dataclass(frozen=True)
class _Subject:
    """What is verified: a file, for a run ID with what the database has of the run.

    Attributes:
        kept: the run's files, if there is an object store.
        stored: the run's certificate in the database.
        changed: problem of a changed certificate on this machine, which that of the object store replaced.
        is_storing: whether the object store may lack the certificate or its signature, or have those of two.
    """

    file: Path
    run: "Run | None" = None
    kept: "RunFiles | None" = None
    stored: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    is_storing: bool = False


def _subject(run: str) -> _Subject:
    """The file of that path, or of that run.

    The object store's certificate and signature are copied to the folder in which the run would have written them,
    unless that has the certificate of the database.

    Raises:
        ConfigError: no such file or run, or the run has no file here.
        InfraError: the object store cannot be reached.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.collect.kept_files import CERTIFICATE, SIGNATURE
    from tipcflow.execute.collect.run_files import RunFiles
    from tipcflow.store import Store

    if _is_path(run):
        return _Subject(Path(run))
    with Store.open() as store:
        known = store.runs.find(run)
        certificate = store.documents.get(known.id, CertificateDocument)
        stored = certificate.root if certificate else None
        is_storing = store.documents.get(known.id, StoringDocument) is not None
        kept = RunFiles(store, known.id, settings().home)
        file = kept.folder / CERTIFICATE
        changed: tuple[str, ...] = ()
        if kept.objects is not None and kept.kept and not _is_current(file, stored):
            before = _own_problems(file) if file.exists() else None
            if kept.fetch_own(CERTIFICATE, beside=SIGNATURE) and before is not None:
                changed = _replaced(file, before)
    if not file.is_file():
        raise ConfigError(
            f"run {known.id} has no certificate here",
            file=str(file),
            hint="it is written with the verdict; give its path if the run was made under another TIPCFLOW_HOME",
        )
    return _Subject(file, known, kept if kept.objects is not None else None, stored, changed, is_storing)


def _own_problems(file: Path) -> list[str]:
    """The problems of a certificate by itself."""
    from tipcflow.report import verify as problems_of

    try:
        return problems_of(_document(file))
    except ConfigError as error:
        return [error.message]


def _replaced(file: Path, before: Sequence[str]) -> tuple[str, ...]:
    """The problem of a file that the object store's certificate has replaced.

    Args:
        before: its problems by itself. Without any it may have been an older certificate of the run, which is
            valid; a note names it, because a forger can make such a file, too.
    """
    if before:
        return (f"{file} was changed, and replaced by the object store's: {before[0]}",)
    note = "differed from the database's, and was replaced by the object store's"
    typer.echo(f"note: {file} {note}", err=True)
    return ()


def _is_current(file: Path, stored: dict[str, Any] | None) -> bool:
    """Whether the file exists with the certificate of the database: `maintenance` may have written a newer one."""
    try:
        return stored is not None and _document(file) == stored
    except ConfigError:
        return False
