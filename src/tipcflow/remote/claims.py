"""Claims: slots that runs have reserved on the node itself, for controllers with different databases.

`claims/<run>.json` in the workspace contains `run`, `owner`, `slots` and `until` (by the node's clock). It is
written under a lock, and only if no other claim has the same slots.
"""

import json
import shlex
from collections.abc import Iterable

from tipcflow.domain import Node
from tipcflow.remote import paths

# Python 3.7, standard library: executed by the node's own interpreter.
_SCRIPT = r"""
import fcntl, json, os, sys, time
folder, request = sys.argv[1], json.loads(sys.argv[2])
try:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
except OSError:
    if request["seconds"]:
        raise
now, others = time.time(), []
mine = os.path.join(folder, request["file"])
for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
    path = os.path.join(folder, name)
    if not name.endswith(".json") or path == mine:
        continue
    try:
        with open(path) as handle:
            claim = json.load(handle)
        over = claim["until"] <= now or claim["run"] in request["void"]
    except (OSError, ValueError, KeyError, TypeError):
        over = True
    if over:
        os.unlink(path)
    elif not request["slots"] or set(claim["slots"]) & set(request["slots"]):
        others.append(claim)
if request["seconds"] and not others:
    claim = {name: request[name] for name in ("run", "owner", "slots")}
    claim["until"] = now + request["seconds"]
    with open(mine + ".tmp", "w") as handle:
        json.dump(claim, handle)
    os.replace(mine + ".tmp", mine)
elif request["run"] and not request["seconds"] and os.path.exists(mine):
    os.unlink(mine)
fence = 0
for number in request["slots"]:
    try:
        with open(os.path.join(os.path.dirname(folder), "slots", "%d.lock" % number)) as handle:
            seen = json.load(handle)["fence"]
        fence = max(fence, seen if 0 < seen < 2 ** 53 else 0)
    except (OSError, ValueError, KeyError, TypeError):
        pass
print(json.dumps({"others": others, "fence": fence}))
"""


def claim(
    node: Node, run: str, *, slots: Iterable[int], seconds: float, owner: str, void: Iterable[str] = ()
) -> str:
    """Claim slots for a run for `seconds`.

    Prints `others`, the conflicting claims if there are any, and `fence`, the largest fence seen by a slot.

    Args:
        void: runs whose claims are invalid: they are removed.
    """
    return _command(node, run=run, slots=sorted(slots), seconds=seconds, owner=owner, void=sorted(void))


def unclaim(node: Node, run: str) -> str:
    """Release a run's claim, if it has one; prints all other claims."""
    return _command(node, run=run, slots=[], seconds=0, owner="", void=[])


def _command(node: Node, *, run: str, **fields: object) -> str:
    payload = {"run": run, "file": f"{paths.safe_name(run)}.json" if run else "", **fields}
    words = [node.python, "-I", "-S", "-c", _SCRIPT.strip(), f"{node.workspace}/claims", json.dumps(payload)]
    return shlex.join(words)
