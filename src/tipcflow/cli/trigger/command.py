"""`tipcflow trigger`: starts runs in a remote Airflow, for CI jobs that have HTTPS and a login."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.commands import options
from tipcflow.domain import ConfigError, Status, TipcflowError

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow, DagRun
    from tipcflow.cli.trigger.selection import TriggerRequest
    from tipcflow.cli.trigger.wait import Watched

# An id that no run has, to check that the Certification page exists before anything is started.
_NO_RUN = "20000101t000000-none-00000000"
_STOP_S = 5.0
# Maximum number of runs of one commit; the run IDs differ in a numeric suffix.
_MOST_RUNS = 100

_Framework = Annotated[
    str | None,
    typer.Option(help="Required framework, e.g. paddlepaddle==3.3.1; a missing release is installed."),
]
_Wheel = Annotated[
    str | None,
    typer.Option(
        help="Wheel of the framework to test: an address, a name in Airflow's TIPCFLOW_HOME/wheels, or with "
        "a local Airflow a path. Without CHAIN, `builds` in configs/repositories names the chains."
    ),
]
_Sha256 = Annotated[str | None, typer.Option(help="SHA-256 of the wheel.")]
_Drop = Annotated[list[str] | None, typer.Option(help="Leave out legs: a glob of step/leg; may be repeated.")]


def trigger(
    chains: Annotated[
        list[str] | None,
        typer.Argument(metavar="CHAIN", help="suite/model/file, its DAG ID, or a quoted glob."),
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", "-m", help="TIPC mode, for example lite_train_lite_infer.")
    ] = None,
    suite_ref: Annotated[
        str | None,
        typer.Option(help="Suite ref to test; with a full commit, retries join the same run."),
    ] = None,
    base: Annotated[str | None, typer.Option(help="Target branch of the change, or a commit of it.")] = None,
    framework: _Framework = None,
    framework_wheel: _Wheel = None,
    sha256: _Sha256 = None,
    cluster: Annotated[str | None, typer.Option("--cluster", "-c", help="Cluster in Airflow's configs.")] = None,
    seed: options.Seed = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=20, help="Number of training repeats.")] = None,
    diagnose: Annotated[bool, typer.Option("--diagnose", help="Verbose framework and NCCL logs.")] = False,
    drop: _Drop = None,
    policy: Annotated[str | None, typer.Option(help="Policy, e.g. pr.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", "-s", help="With --params-file: its suite.")] = None,
    params_file: Annotated[str | None, typer.Option(help="Params file, relative to the suite's root.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the verdicts; exit with the worst code.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Maximum wait in minutes.")] = 120,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the runs on an interrupt or timeout.")] = False,
    junit: Annotated[Path | None, typer.Option(help="With --wait: write JUnit XML to this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="With --wait: write the verdicts as Markdown to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
    run_id_prefix: Annotated[str, typer.Option(help="Run-ID prefix.")] = "ci",
    again: Annotated[bool, typer.Option("--again", help="Run the commit again, even if it has a run.")] = False,
    unpause: Annotated[bool, typer.Option("--unpause", help="Unpause paused DAGs.")] = False,
) -> None:
    """Run chains in Airflow (address and login: TIPCFLOW_AIRFLOW_* variables, or `tipcflow airflow up`).

    Progress goes to stderr, verdicts to stdout. Without --wait, the exit code shows whether the runs exist.
    """
    from tipcflow.cli.trigger.builds import build_requests, wheel_params
    from tipcflow.cli.trigger.selection import choose, trigger_requests

    _check_outputs(wait, junit, markdown)
    file = _given(suite=suite, params_file=params_file)
    conf = _given(mode=mode, suite_ref=suite_ref, base=base, framework=framework, cluster=cluster, policy=policy)
    conf |= wheel_params(framework_wheel, sha256)
    conf |= _given(seed=seed, repeats=repeats, diagnose=diagnose or None, drop=drop or None)
    with _airflow() as airflow:
        if wait:
            airflow.certification(_NO_RUN)
        if not chains and not file and (framework or framework_wheel):
            requests = build_requests(airflow, conf, _note, prefix=run_id_prefix, again=again, unpause=unpause)
        else:
            dags = choose(airflow, chains or [], file, unpause=unpause)
            requests = trigger_requests(dags, file | conf, prefix=run_id_prefix, again=again)
        runs = [_start(airflow, request) for request in requests]
        if wait:
            _follow(airflow, runs, timeout_s=timeout * 60, stop=stop)
        raise typer.Exit(_finish(airflow.url, runs, waited=wait, junit=junit, markdown=markdown, as_json=as_json))


def _given(**options: Any) -> dict[str, Any]:
    """The given options; the DAG provides the defaults of the others."""
    return {key: value for key, value in options.items() if value is not None}


def _airflow() -> "Airflow":
    from tipcflow.airflow_api import Airflow
    from tipcflow.cli.local.running import has_local_airflow, local_airflow
    from tipcflow.config.airflow_login import airflow_login, airflow_url

    if (local := local_airflow()) is not None:
        return local
    try:
        login = airflow_login()
    except ConfigError as error:
        if not airflow_url() and has_local_airflow():
            error.hint = "`tipcflow airflow up` starts an Airflow on this machine, which needs no variables"
        raise
    return Airflow(login.url, user=login.user, password=login.password, token=login.token)


def _check_outputs(wait: bool, *paths: Path | None) -> None:
    """Check output paths before starting runs that take an hour."""
    for path in paths:
        if path is None:
            continue
        if not wait:
            raise ConfigError("has no effect without --wait", found=str(path), expected="--wait")
        if not path.parent.is_dir() or path.is_dir():
            raise ConfigError("cannot be written", file=str(path), expected="a file in a folder that exists")


def _start(airflow: "Airflow", request: "TriggerRequest") -> "Watched":
    from tipcflow.cli.trigger.wait import Watched

    run = Watched(request)
    try:
        run.dag_run = airflow.trigger(request.dag_id, request.conf, request.run_id)
        for number in range(2, _MOST_RUNS):
            if (useless := _useless(airflow, run)) is None:
                break
            _note(f"{request.chain}: run {run.run} is {useless.value}: starting a new run")
            run = Watched(replace(request, run_id=f"{request.run_id}-{number}"))
            run.dag_run = airflow.trigger(request.dag_id, request.conf, run.request.run_id)
    except TipcflowError as error:
        # The other runs are created anyway: one chain's bad params must not block the rest.
        run.refuse(error)
        _note(f"{request.chain}: {error}")
    else:
        _note(f"{request.chain}: run {run.run}")
    return run


def _useless(airflow: "Airflow", run: "Watched") -> Status | None:
    """The status of a finished run without a result about the model; None otherwise.

    Without the Certification page the status is unknown, and the run is joined.
    """
    from tipcflow.cli.trigger.wait import Watched, verdict

    assert run.dag_run
    if not run.dag_run.state.ended:
        return None
    try:
        facts = airflow.certification_of(run.dag_run)
    except TipcflowError:
        return None
    if facts is None or facts.run.status is None:
        return None
    status, _ = verdict(Watched(run.request, run.dag_run, facts), facts.run.status)
    return status if status in (Status.INFRA_FAILURE, Status.CANCELLED) else None


def _follow(airflow: "Airflow", runs: Sequence["Watched"], *, timeout_s: float, stop: bool) -> None:
    from tipcflow.cli.trigger.wait import wait

    cancel = threading.Event()
    with _cancelled_by_signals(cancel):
        wait(airflow, runs, timeout_s=timeout_s, cancel=cancel, note=_note)
        for run in runs:
            if run.dag_run is None or run.dag_run.state.ended:
                continue
            if not stop:
                _note(f"{run.request.chain}: the run continues in Airflow")
                continue
            try:
                _stop(airflow, run.dag_run)
                _note(f"{run.request.chain}: stop requested; the run cleans up")
                run.reason += "; stop requested"
            except TipcflowError as error:
                _note(f"{run.request.chain}: the run could not be stopped: {error}")


def _stop(airflow: "Airflow", dag_run: "DagRun") -> None:
    from tipcflow.cli.trigger.selection import CONFIRM_DAG

    airflow.stop(dag_run.dag_id, dag_run.run_id, deadline_s=_STOP_S)
    facts = airflow.certification_of(dag_run, deadline_s=_STOP_S)
    if facts and facts.confirming and facts.confirming.dag_run_id:
        # Only the teardown task is left, and Airflow does not stop teardown tasks.
        airflow.stop(CONFIRM_DAG, facts.confirming.dag_run_id, deadline_s=_STOP_S)


@contextmanager
def _cancelled_by_signals(cancel: threading.Event) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the wait in order; a second one kills the process."""

    def handler(number: int, _frame: FrameType | None) -> None:
        cancel.set()
        signal.signal(number, before[number])
        _note(f"{signal.Signals(number).name}: no longer waiting")

    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [int(number) for number in wanted if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _finish(
    url: str,
    runs: Sequence["Watched"],
    *,
    waited: bool,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> int:
    from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
    from tipcflow.cli.trigger import report
    from tipcflow.report import junit_of_runs

    if junit:
        _write(junit, junit_of_runs(report.reported(run) for run in runs))
    if markdown:
        _write(markdown, report.markdown(url, runs))
    if as_json:
        print_json(report.as_json(url, runs))
    else:
        echo_lines(report.lines(url, runs, width=terminal_width()))
        if waited:
            echo_lines([report.worst(runs).value])
    return report.code(runs)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError("cannot be written", file=str(path), found=str(error)) from error


def _note(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}", err=True)
