"""Routes of a run's files and certificate."""

from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, HTTPException
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from tipcflow.domain import InfraError
from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.execute.collect.log_archive import plain_name
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.report import as_text
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.data.files import masked, readable, run_folder, stored_copy, tail
from tipcflow_pages.web.render import HEADERS

router = APIRouter(prefix="/runs/{run_id}")


@router.get("/tail")
def tail_of(run_id: str, file: str, store: StoreDep, chosen: SettingsDep) -> Response:
    """Return the end of a log as plain text."""
    return PlainTextResponse(tail(_file(run_id, file, store, chosen)), headers=HEADERS)


@router.get("/file")
def whole_file(run_id: str, file: str, store: StoreDep, chosen: SettingsDep) -> Response:
    """Return a complete log as a download, unpacked, with secrets masked."""
    path = _file(run_id, file, store, chosen)
    name = quote(plain_name(path.name), safe="")
    headers = {**HEADERS, "Content-Disposition": f"attachment; filename*=utf-8''{name}"}
    return StreamingResponse(masked(path), media_type="application/octet-stream", headers=headers)


@router.get("/certificate.json")
def certificate(run_id: str, store: StoreDep, keep: bool = False) -> Response:
    """Return the certificate as the run wrote it; as a download with `keep`."""
    certificate = store.documents.get(run_id, CertificateDocument)
    if certificate is None:
        raise HTTPException(404, f"run {run_id} has no certificate")
    name = f"{run_id}.certificate.json" if _plain(run_id) else "certificate.json"
    headers = {**HEADERS, "Content-Disposition": f'{"attachment" if keep else "inline"}; filename="{name}"'}
    return Response(as_text(certificate.root), media_type="application/json", headers=headers)


def _file(run_id: str, file: str, store: StoreDep, chosen: SettingsDep) -> Path:
    is_run = _plain(run_id) and store.runs.get_or_none(run_id) is not None
    folder = run_folder(chosen.home, run_id) if is_run else None
    path = readable(folder, file) if folder is not None else None
    if path is None and is_run and chosen.store:
        try:
            path = stored_copy(RunFiles(store, run_id, chosen.home), file)
        except InfraError as error:
            raise HTTPException(503, error.message) from error
    if path is None:
        raise HTTPException(404, f"run {run_id} has no file {file!r} that can be read here")
    return path


def _plain(name: str) -> bool:
    return all(sign.isalnum() or sign in "._-" for sign in name) and name.isascii()
