"""Command line of the node agent: every subcommand prints JSON on stdout."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from .files import Json, describe, print_event, request_stop, save, touch_lease

# Subcommand -> operands and options; not argparse, whose import takes longer than most calls.
USAGE: dict[str, tuple[list[str], dict[str, str]]] = {
    "start": (["JOB"], {}),
    "begin": (["JOB"], {"--for": "60", "--resume": "{}", "--files": ""}),
    "poll": (["JOB"], {}),
    "go": (["JOB"], {}),
    "stop": (["JOB", "REASON"], {"--by": ""}),
    "peers": (["JOB", "STATE"], {}),
    "finish": (["JOB"], {}),
    "evidence": (["JOB"], {"--hang": "", "--deadline": ""}),
    "watch": (["JOB"], {"--for": "60", "--resume": "{}", "--files": ""}),
    "daemon": (["JOB", "LOCK", "WRITER", "GUARD"], {}),
    "guard": (["JOB", "RUNNER", "READY"], {}),
    "list": (["WORKSPACE"], {}),
    "reap": (["WORKSPACE"], {"--job": "", "--living": "", "--helpers": "", "--by": "controller"}),
    "environment": (["RUN", "CACHE", "PACKAGES"], {"--build": ""}),
    "data": (["TO", "SOURCE", "CACHE"], {"--sha256": "", "--unpack": "", "--copy": ""}),
    "facts": (["WORKSPACE"], {"--python": "", "--peers": "", "--port": "22"}),
}

FLAGS = ("--living", "--helpers", "--files", "--unpack", "--copy")  # without a value


def arguments(words: list[str]) -> tuple[str, list[str], dict[str, str]]:
    """Return subcommand, operands and options with their values; invalid arguments end the process with exit
    code 2."""
    do = words[0] if words else ""
    if do not in USAGE:
        fail(f"no subcommand {do!r}; there are: {' '.join(USAGE)}")
    names, defaults = USAGE[do]
    operands, rest, options = words[1 : len(names) + 1], words[len(names) + 1 :], dict(defaults)
    while rest and rest[0] in options:
        flag = rest[0] in FLAGS
        if not flag and len(rest) < 2:
            fail(f"{rest[0]} needs a value")
        options[rest[0]] = "1" if flag else rest[1]
        rest = rest[1:] if flag else rest[2:]
    if len(operands) < len(names) or rest:
        fail(f"{do} takes {' '.join(names)} {' '.join(defaults)}; found {' '.join(words[1:])}")
    return do, operands, options


def fail(message: str) -> None:
    """End the process because of invalid arguments."""
    sys.stderr.write(f"runner: {message}\n")
    sys.exit(2)


def start(place: str) -> Json:
    """Start a job: by the starter of a Slurm allocation if this process is part of one, else by this process."""
    from .start import start, start_below

    starter = os.environ.get("TIPCFLOW_STARTER", "")
    return start_below(starter, place) if starter else start(place)


def watch(place: str, options: dict[str, str]) -> None:
    """Print a job's events until the reader disconnects."""
    from .watch import Watch

    try:
        Watch(place, json.loads(options["--resume"]), files=bool(options["--files"])).run(float(options["--for"]))
    except BrokenPipeError:
        os._exit(0)


def daemon(do: str, place: str, numbers: list[int]) -> None:
    """Run as the runner of a job, or as its guard."""
    if do == "guard":
        from .guard import guard

        return guard(place, *numbers)
    from .daemon import daemon

    return daemon(place, *numbers)


def sweep(do: str, place: str, options: dict[str, str]) -> None:
    """List or end processes on the node."""
    from .sweep import reap, reap_helpers, survey

    if do == "list":
        print_event(survey(place))
    elif options["--helpers"]:
        print_event(reap_helpers(place))
    else:
        print_event(reap(place, options["--job"], bool(options["--living"]), options["--by"]))


def meet_needs(do: str, operands: list[str], options: dict[str, str]) -> None:
    """Provide what a suite file needs, as a step of a run; its output is the step's log.

    A failure ends the process with the exit code of its kind and, as the last line of the output, its reason.
    """
    from .unmet import EXIT_CODES, NODE, Unusable, failure_of

    try:
        if do == "data":
            from .cache import provide

            unpack, copy = bool(options["--unpack"]), bool(options["--copy"])
            provide(*operands, sha256=options["--sha256"], unpack=unpack, copy=copy)
        else:
            from .own_python import own_environment

            build = json.loads(options["--build"] or "{}")
            own_environment(operands[0], operands[1], json.loads(operands[2]), build)
    except Unusable as error:
        reason, kind = str(error), error.failure
    except Exception as error:
        import traceback

        traceback.print_exc()
        reason, kind = f"{do}: {type(error).__name__}: {error}", failure_of(error, NODE)
    else:
        return
    sys.stdout.flush()
    sys.stderr.write(" ".join(reason.split()) + "\n")
    sys.exit(EXIT_CODES[kind])


def instruct(do: str, place: str, operands: list[str], options: dict[str, str]) -> None:
    """Leave a controller's instruction for the runner in the job's folder."""
    if do == "go":
        save(os.path.join(place, do), "")
    elif do == "stop":
        request_stop(place, operands[1], options["--by"])
    elif do == "finish":
        from .ranks import request_end

        request_end(place)
    else:
        from .hang import WORD

        save(os.path.join(place, WORD), json.dumps({"active": operands[1] == "active"}))
    print_event(describe(place))


def limit(do: str) -> None:
    """End this process at its controller's deadline, and a pure response as soon as its reader disconnects.

    A node may not notice a broken connection; the response then cannot be written, or is no longer needed.
    """
    seconds = float(os.environ.get("TIPCFLOW_DEADLINE") or 0)
    if not seconds:
        return
    until, stdout = time.monotonic() + seconds, select.poll()
    stdout.register(1, 0)  # only hang-ups and errors

    def look(*_: object) -> None:
        if time.monotonic() > until or (do in ("evidence", "facts", "list", "poll") and stdout.poll(0)):
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)


def main() -> None:
    """Run one subcommand."""
    if sys.argv[1:2] == ["wget"]:
        from .wget import wget

        sys.exit(wget(sys.argv[2:]))
    do, operands, options = arguments(sys.argv[1:])
    limit(do)
    try:
        run(do, operands, options)
    finally:
        # An exiting interpreter has no signal handlers any more: the next alarm would kill it after its
        # response.
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def run(do: str, operands: list[str], options: dict[str, str]) -> None:
    """Run one subcommand. Only the required modules are imported: most subcommands run for milliseconds."""
    place = operands[0]
    if do == "start":
        print_event(start(place))
    elif do == "begin":
        from .start import describe_job

        refused = describe_job(place, sys.stdin.read())
        print_event(dict(refused or start(place), event="response"))
        if not refused:
            watch(place, options)
    elif do in ("daemon", "guard"):  # called only by `start`
        daemon(do, place, [int(number) for number in operands[1:]])
    elif do == "watch":
        watch(place, options)
    elif do == "poll":
        touch_lease(place)
        print_event(describe(place))
    elif do == "evidence":
        from .evidence import evidence

        why = next((name for name in ("hang", "deadline") if options[f"--{name}"]), "")
        if not why:  # otherwise the caller is the runner, not a controller
            touch_lease(place)
        print_event(evidence(place, why, options.get(f"--{why}", "")))
    elif do in ("go", "stop", "peers", "finish"):
        instruct(do, place, operands, options)
    elif do == "facts":
        from .facts import facts

        print_event(facts(place, options["--python"], options["--peers"], int(options["--port"])))
    elif do in ("environment", "data"):
        meet_needs(do, operands, options)
    else:
        sweep(do, place, options)
