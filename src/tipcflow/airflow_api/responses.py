"""Converts HTTP responses to models or errors."""

import difflib
from collections.abc import Sequence
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from tipcflow.config.loader import message_and_expected
from tipcflow.domain import ConfigError

_NEAR = 5
_LONGEST_DETAIL = 500

_Model = TypeVar("_Model", bound=BaseModel)


def json_of(response: httpx.Response, url: str) -> dict[str, Any]:
    """The response's JSON object.

    Raises:
        ConfigError: not a JSON object. Airflow returns its web page with status 200 for unknown paths.
    """
    try:
        content = response.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        kind = response.headers.get("content-type", "something").partition(";")[0]
        raise ConfigError(
            f"{url} does not respond like Airflow 3 at {response.url.path}",
            found=f"{kind}, HTTP {response.status_code}",
            expected="a JSON object",
        )
    return content


def model_of(model: type[_Model], response: httpx.Response, url: str) -> _Model:
    """The response as a model.

    Raises:
        ConfigError: the response does not match Airflow 3's schema.
    """
    try:
        return model.model_validate(json_of(response, url))
    except ValidationError as error:
        first = error.errors()[0]
        message, expected = message_and_expected(first)
        raise ConfigError(
            f"{url} does not respond like Airflow 3 at {response.url.path}",
            key=".".join(map(str, first["loc"])),
            found=str(first["input"])[:100],
            expected=expected or message,
        ) from error


def unknown_dag(dag_id: str, known: Sequence[str], url: str) -> ConfigError:
    """The error for an unknown DAG, with similar names or the number of known DAGs."""
    near = difflib.get_close_matches(dag_id, known, n=_NEAR, cutoff=0.5)
    if not known:
        hint = "Airflow lists no DAGs: check that the dag-processor has parsed the DAGs folder"
    elif near:
        hint = "near: " + ", ".join(near)
    else:
        hint = f"Airflow lists {len(known)} DAGs, none with a similar name"
    return ConfigError(f"Airflow at {url} has no DAG {dag_id}", hint=hint)


def refusal(response: httpx.Response, url: str, dag_id: str, run_id: str) -> ConfigError:
    """The error for a rejected request."""
    about = f" run {run_id}" if run_id else ""
    what = f"DAG {dag_id}{about}" if dag_id else response.url.path
    if response.status_code == 403:
        return ConfigError(f"Airflow at {url} denies this login access to {what}: {detail(response)}")
    if response.status_code == 404 and run_id:
        return ConfigError(f"DAG {dag_id} has no run {run_id}")
    # Airflow appends the whole schema.
    why = detail(response).partition(" Failed validating ")[0]
    return ConfigError(f"Airflow refuses {what} (HTTP {response.status_code}): {why}")


def detail(response: httpx.Response) -> str:
    """The error message of a response as one line, truncated."""
    try:
        message = response.json().get("detail", "")
    except (ValueError, AttributeError):
        return response.reason_phrase
    if isinstance(message, list):
        entries = [entry for entry in message if isinstance(entry, dict)]
        message = "; ".join(
            f"{'.'.join(map(str, entry.get('loc', ())))}: {entry.get('msg', '')}" for entry in entries
        )
    elif isinstance(message, dict):
        message = message.get("message") or message.get("reason") or message
    return " ".join(str(message).split())[:_LONGEST_DETAIL]


def hint_of(response: httpx.Response) -> str:
    """The remedy that a response of the Certification pages states, truncated; '' if it states none."""
    try:
        hint = response.json().get("hint", "")
    except (ValueError, AttributeError):
        return ""
    return " ".join(str(hint).split())[:_LONGEST_DETAIL]
