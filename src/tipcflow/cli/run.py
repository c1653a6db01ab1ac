"""`tipcflow run`: execute a plan over SSH and print the verdict."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.commands import options, signals
from tipcflow.domain import Compat, ConfigError, Run
from tipcflow.domain.run.names import ModeName

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest


class Trigger(StrEnum):
    """Trigger sources of a run on the local controller; the source sets the queue priority."""

    CI = "ci"
    CLI = "cli"
    WEEKLY = "weekly"


_Framework = Annotated[
    str, typer.Option(help="Required framework, e.g. paddlepaddle==3.3.1; a missing release is installed.")
]
_Wheel = Annotated[str, typer.Option(help="Wheel of the framework to test: an address or a path.")]
_Sha256 = Annotated[str, typer.Option(help="SHA-256 of the wheel; required for an address.")]
_Drop = Annotated[list[str] | None, typer.Option(help="Leave out legs: a glob of step/leg; may be repeated.")]


def run(
    params: options.ParamsFile,
    suite: options.SuiteName,
    mode: options.Mode,
    cluster: options.ClusterName,
    suite_ref: Annotated[str | None, typer.Option(help="Suite ref to test. Default: the working tree.")] = None,
    base: Annotated[str | None, typer.Option(help="Target branch of the change, or a commit of it.")] = None,
    framework: _Framework = "",
    framework_wheel: _Wheel = "",
    sha256: _Sha256 = "",
    seed: options.Seed = None,
    repeats: options.Repeats = 1,
    diagnose: options.Diagnose = False,
    drop: _Drop = None,
    compat: options.CompatMode = Compat.SPEC,
    wait_minutes: Annotated[
        float | None, typer.Option(min=0, help="Maximum wait for slots. Default: the policy's.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the run's folders on the nodes after a pass.")
    ] = False,
    policy: options.PolicyName = "pr",
    trigger: Annotated[Trigger, typer.Option(help="Sets the queue priority: ci > cli > weekly.")] = Trigger.CLI,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON to stdout.")] = False,
) -> None:
    """Run and certify a chain on a cluster; the exit code is that of its status."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process

    request = RunRequest(
        params=params,
        suite=suite,
        mode=mode,
        cluster=cluster,
        config_dir=settings().config_dir,
        suite_ref=suite_ref,
        base=base,
        framework=framework,
        framework_wheel=framework_wheel,
        framework_sha256=sha256,
        seed=seed,
        repeats=repeats,
        diagnose=diagnose,
        drop=tuple(drop or ()),
        compat=compat,
        wait_s=None if wait_minutes is None else wait_minutes * 60,
        keep=keep,
        policy=policy,
        trigger=trigger.value,
        owner=owner_of_this_process(),
        command=tuple(sys.argv),
    )
    raise typer.Exit(certify(request, as_json=as_json, last=True))


def check_names(request: "RunRequest") -> None:
    """Check the names of a request before a run exists, so that a misspelled name makes neither a chain nor a run.

    Raises:
        ConfigError: no such suite, cluster, policy or mode; lists the known ones.
    """
    from tipcflow.config.suite import find_config
    from tipcflow.plan import ALL_MODES

    names = {"suite": request.suite, "cluster": request.cluster, "policy": request.policy}
    for what, folder in (("suite", "suites"), ("cluster", "clusters"), ("policy", "policies")):
        find_config(names[what], request.config_dir / folder, what=what)
    # A benchmark names its case, as in benchmark_train:dynamic_bs8_fp32_DP_N1C2.
    if ModeName.parse(request.mode).mode not in ALL_MODES:
        raise ConfigError(
            "unknown mode", key="--mode", found=request.mode, expected=f"one of {', '.join(ALL_MODES)}"
        )


def certify(request: "RunRequest", *, as_json: bool = False, last: bool = False) -> int:
    """Execute a request with a live display, print the verdict and return the exit code of its status.

    Progress is printed to stderr; the verdict (table or JSON) to stdout, with the status as its last line.

    Args:
        last: the command does nothing afterwards; see `executed`.

    Raises:
        ConfigError: the request names no suite, cluster, policy or mode; there is no run then.
    """
    from tipcflow.cli.output.output import without_reader
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.execute.verdict.conclusion import exit_code_of
    from tipcflow.store import Store

    check_names(request)
    chosen = settings()
    with Store.open() as store:
        spool.apply(chosen.home, store)
        with executed(request, store, chosen.home, last=last) as finished:
            try:
                print_run(store, finished, chosen.home, as_json=as_json)
                sys.stdout.flush()
            except OSError:  # `tipcflow run … | head`, a closed stdout, a full disk: the status is stored
                without_reader()
            return exit_code_of(store, finished)


@contextmanager
def executed(
    request: "RunRequest",
    store: Any,
    home: Path,
    *,
    run: str = "",
    heir: Callable[[], str] | None = None,
    last: bool = False,
) -> Iterator[Run]:
    """Execute a request with a live display on stderr; yields the finished run. Signals cancel the run, and are
    ignored from its end on, until the context ends.

    Args:
        run, heir: as of `ChainRun`.
        last: the process does nothing after the context. Signals then stay ignored until the process ends, if it
            began as the command `tipcflow`: between two handlers, a signal would change the exit code.
    """
    from tipcflow.cli.bus_error import report_bus_errors
    from tipcflow.cli.output.live import LiveDisplay
    from tipcflow.domain import Status
    from tipcflow.execute.progress import MaskedListener
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.execute.run.driver import ChainRun

    with LiveDisplay() as display:
        chain_run = ChainRun(request, store, home=home, listener=MaskedListener(display.take), run=run, heir=heir)
        display.bind(lambda: plan_of(store, chain_run.id))
        store_status = partial(spool.keep, home, chain_run.id, Status.INFRA_FAILURE)
        stay_ignored = last and signals.process_ends_with_command()
        with (
            report_bus_errors(store_status),
            signals.cancel_on_signals(chain_run.cancel, display.note, stay_ignored=stay_ignored),
        ):
            finished = chain_run.execute()
            signals.ignore_signals()  # Ctrl-C pressed again neither hides the verdict nor changes the exit code
            display.close()
            yield finished


def plan_of(store: Any, run_id: str) -> Any:
    """The run's plan; None before planning."""
    from tipcflow.domain import TipcflowError

    try:
        return store.plans.get(run_id)
    except TipcflowError:
        return None


def print_run(store: Any, run: Run, home: Path, *, as_json: bool) -> None:
    """Print the verdict of a finished run on stdout, as a table or JSON."""
    from tipcflow.cli.output.verdict import print_verdict
    from tipcflow.execute.verdict.conclusion import is_neutral

    certificate = home / "runs" / run.id / "certificate.json"
    if as_json:
        facts = {
            "run": run.model_dump(mode="json"),
            "neutral": is_neutral(store, run),
            "certificate": str(certificate) if certificate.is_file() else None,
            "checks": [result.model_dump(mode="json") for result in store.checks.results(run.id)],
        }
        typer.echo(json.dumps(facts, indent=2))
        return
    print_verdict(store, run, certificate if certificate.is_file() else None)
