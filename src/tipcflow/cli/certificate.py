"""`tipcflow certificate …`: the JSON document that links a run's configuration to its verdict."""

import hashlib
import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.domain import ConfigError, Status, exit_code
from tipcflow.domain.run_documents import CertificateDocument

if TYPE_CHECKING:
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
    from tipcflow.execute.collect.log_archive import content_hash, is_kept
    from tipcflow.report import verify as problems_of

    file, kept = _certificate_file(run)
    document = _document(file)
    named = document.get("files")
    names = list(named) if isinstance(named, dict) else []
    hashes = {name: content_hash(file.parent / name) for name in names if is_kept(file.parent / name)}
    damaged: list[str] = []
    if kept is not None:
        stored, damaged = _stored_hashes(kept, [name for name in names if name not in hashes])
        hashes |= stored
    # Without collected files next to a file, only the certificate's own hashes are checked.
    problems = [*problems_of(document, files=hashes or None), *damaged]
    if names and not hashes and not damaged and not _is_path(run):
        places = [str(file.parent), *([kept.url] if kept is not None else [])]
        problems.append(f"the collected files of the run are missing: 0 of {len(names)} in {' or '.join(places)}")
    if keys:
        problems += _signature_problems(file, document, keys)
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
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise ConfigError(problem, file=str(file), hint="give the path of a file, or the ID of a run") from error
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise ConfigError("is not a certificate", file=str(file), line=line, expected="a JSON object") from error
    if not isinstance(document, dict):
        raise ConfigError("is not a certificate", file=str(file), expected="a JSON object")
    return document


def _signature_problems(file: Path, document: dict[str, Any], keys: Sequence[Path]) -> list[str]:
    """The problems of the signature next to a certificate."""
    from tipcflow.execute.collect.kept_files import SIGNATURE
    from tipcflow.execute.verdict.signature import verifier
    from tipcflow.report import attestation

    is_signed = [verifier(key) for key in keys]
    beside = file.with_name(SIGNATURE)
    try:
        signature = json.loads(beside.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return [f"the certificate is not signed: {beside} does not exist"]
    except (OSError, ValueError) as error:
        return [f"the signature is not readable: {error}"]
    verdict = document.get("verdict")
    status = str(verdict.get("status")) if isinstance(verdict, dict) else ""
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    return attestation.problems_of(signature, sha256=sha256, status=status, is_signed=is_signed)


def _stored_hashes(kept: "RunFiles", names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """(Path -> hash of the files that are in the object store, messages about those with another content).

    Raises:
        InfraError: the object store cannot be reached.
    """
    from tipcflow.execute.objects.object_store import DamagedObjectError

    hashes, damaged = {}, []
    for name in names:
        try:
            if name in kept.kept and kept.copy(kept.kept[name]) is not None:
                hashes[name] = kept.kept[name].sha256
        except DamagedObjectError as error:
            damaged.append(error.message)
    return hashes, damaged


def _is_path(run: str) -> bool:
    """Whether the argument is the path of a file, not the ID of a run."""
    return run.endswith(".json") or Path(run).is_file()


def _certificate_file(run: str) -> tuple[Path, "RunFiles | None"]:
    """The file of that path, or of that run; and the run's files, if there is an object store.

    The object store's certificate and signature are copied to the folder in which the run would have written them.

    Raises:
        ConfigError: no such file or run, or the run has no file here.
        InfraError: the object store cannot be reached.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.collect.kept_files import CERTIFICATE, SIGNATURE
    from tipcflow.execute.collect.run_files import RunFiles
    from tipcflow.store import Store

    if _is_path(run):
        return Path(run), None
    with Store.open() as store:
        run_id = store.runs.find(run).id
        kept = RunFiles(store, run_id, settings().home)
        file = kept.folder / CERTIFICATE
        if kept.objects is not None and kept.kept and not file.is_file():
            for name in (SIGNATURE, CERTIFICATE):
                kept.fetch_own(name)
    if not file.is_file():
        raise ConfigError(
            f"run {run_id} has no certificate here",
            file=str(file),
            hint="it is written with the verdict; give its path if the run was made under another TIPCFLOW_HOME",
        )
    return file, kept if kept.objects is not None else None
