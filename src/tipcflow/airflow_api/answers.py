"""From an HTTP answer to a model or to the error that a person reads."""

import difflib
from collections.abc import Sequence
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from tipcflow.domain import ConfigError

_NEAR = 5
_LONGEST_DETAIL = 500

_Model = TypeVar("_Model", bound=BaseModel)


def json_of(answer: httpx.Response, url: str) -> dict[str, Any]:
    """The answer's JSON object.

    Raises:
        ConfigError: it is something else; an unknown path gets Airflow's page, with 200.
    """
    try:
        told = answer.json()
    except ValueError:
        told = None
    if not isinstance(told, dict):
        kind = answer.headers.get("content-type", "something").partition(";")[0]
        raise ConfigError(
            f"{url} does not answer as Airflow 3 does at {answer.url.path}",
            found=f"{kind}, HTTP {answer.status_code}",
            expected="a JSON object",
        )
    return told


def model_of(model: type[_Model], answer: httpx.Response, url: str) -> _Model:
    """The answer as a model.

    Raises:
        ConfigError: it is not what Airflow 3 answers.
    """
    try:
        return model.model_validate(json_of(answer, url))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{url} does not answer as Airflow 3 does at {answer.url.path}",
            key=".".join(map(str, first["loc"])),
            found=str(first["input"])[:100],
            expected=first["msg"],
        ) from error


def unknown_dag(dag_id: str, known: Sequence[str], url: str) -> ConfigError:
    """The error for a DAG that Airflow does not list, with those of near names or else how many there are."""
    near = difflib.get_close_matches(dag_id, known, n=_NEAR, cutoff=0.5)
    if not known:
        hint = "Airflow lists no DAG at all: has its dag-processor read the DAGs folder?"
    elif near:
        hint = "near: " + ", ".join(near)
    else:
        hint = f"Airflow lists {len(known)} DAGs, none with a near name"
    return ConfigError(f"Airflow at {url} has no DAG {dag_id}", hint=hint)


def refusal(answer: httpx.Response, url: str, dag_id: str, run_id: str) -> ConfigError:
    """The error for an answer that says no."""
    about = f" run {run_id}" if run_id else ""
    what = f"DAG {dag_id}{about}" if dag_id else answer.url.path
    if answer.status_code == 403:
        return ConfigError(f"Airflow at {url} does not let this login do that with {what}: {detail(answer)}")
    if answer.status_code == 404 and run_id:
        return ConfigError(f"DAG {dag_id} has no run {run_id}")
    # Airflow goes on with the whole schema.
    why = detail(answer).partition(" Failed validating ")[0]
    return ConfigError(f"Airflow refuses {what} (HTTP {answer.status_code}): {why}")


def detail(answer: httpx.Response) -> str:
    """Airflow's own words of an answer that is an error, on one line, cut where they are long."""
    try:
        told = answer.json().get("detail", "")
    except (ValueError, AttributeError):
        return answer.reason_phrase
    if isinstance(told, list):
        ones = [one for one in told if isinstance(one, dict)]
        told = "; ".join(f"{'.'.join(map(str, one.get('loc', ())))}: {one.get('msg', '')}" for one in ones)
    elif isinstance(told, dict):
        told = told.get("message") or told.get("reason") or told
    return " ".join(str(told).split())[:_LONGEST_DETAIL]
