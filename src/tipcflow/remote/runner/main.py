"""The runner's command line: every subcommand prints JSON on stdout."""

from __future__ import annotations

import argparse
import json
import os

from .files import describe, save, say, touch_lease


def arguments() -> argparse.Namespace:
    """Subcommand and operands."""
    parser = argparse.ArgumentParser(prog="runner")
    sub = parser.add_subparsers(dest="do", metavar="COMMAND")
    for name in ("start", "poll", "go", "stop", "watch", "daemon"):
        sub.add_parser(name).add_argument("folder")
    sub.choices["stop"].add_argument("reason", nargs=argparse.REMAINDER)
    sub.choices["watch"].add_argument("--resume", default="{}", help="JSON: leg -> bytes of its log already seen")
    sub.choices["watch"].add_argument("--for", dest="seconds", type=float, default=60.0)
    sub.choices["daemon"].add_argument("lock", type=int)
    sub.choices["daemon"].add_argument("writer", type=int)
    for name in ("list", "reap", "facts"):
        sub.add_parser(name).add_argument("workspace")
    sub.choices["reap"].add_argument("--job", default="")
    sub.choices["reap"].add_argument("--living", action="store_true", help="end living jobs too")
    sub.choices["facts"].add_argument("--python", required=True)
    sub.choices["facts"].add_argument("--peers", default="", help="name=address[:port],…")
    sub.choices["facts"].add_argument("--port", type=int, default=22)
    args = parser.parse_args()
    if not args.do:
        parser.error("a subcommand is missing")
    return args


def main() -> None:
    """Run one subcommand. Only what it needs is imported: most of them live for milliseconds."""
    args = arguments()
    if args.do == "start":
        from .start import start

        say(start(args.folder))
    elif args.do == "daemon":
        from .daemon import daemon

        daemon(args.folder, args.lock, args.writer)
    elif args.do == "watch":
        from .watch import Watch

        try:
            Watch(args.folder, json.loads(args.resume)).run(args.seconds)
        except BrokenPipeError:
            os._exit(0)  # the reader is gone
    elif args.do == "poll":
        touch_lease(args.folder)
        say(describe(args.folder))
    elif args.do in ("go", "stop"):
        save(os.path.join(args.folder, args.do), " ".join(getattr(args, "reason", [])))
        say(describe(args.folder))
    elif args.do == "facts":
        from .facts import facts

        say(facts(args.workspace, args.python, args.peers, args.port))
    else:
        from .sweep import reap, survey

        say(survey(args.workspace) if args.do == "list" else reap(args.workspace, args.job, args.living))
