"""Commands that check a node's container engine, as text."""

import shlex
from collections.abc import Sequence

from tipcflow.domain import Container, Node
from tipcflow.plan.spec.container import engine_words

NO_ENGINE, ENGINE_SILENT, NO_IMAGE, NO_PULL, REFUSED, NO_INTERPRETER = 68, 69, 70, 71, 72, 73
"""Exit codes of `check_container`: what is missing."""

_CHECK = f"""
engine=$1 image=$2 pull=$3 python=$4
shift 4
command -v "$engine" >/dev/null || {{ echo "container engine not found: $engine" >&2; exit {NO_ENGINE}; }}
output=$("$engine" version 2>&1) || {{ printf '%s\\n' "$output" | tail -n 1 >&2; exit {ENGINE_SILENT}; }}
if ! "$engine" image inspect "$image" >/dev/null 2>&1; then
    [ "$pull" = yes ] || {{ echo "image not found: $image" >&2; exit {NO_IMAGE}; }}
    "$engine" pull -q "$image" >&2 || exit {NO_PULL}
fi
output=$("$@" "$image" bash -c '[ -x "$0" ]' "$python" 2>&1)
case $? in
    0) ;;
    125) printf '%s\\n' "$output" | head -n 1 >&2; exit {REFUSED} ;;
    *) echo "the image $image has no bash, or no $python" >&2; exit {NO_INTERPRETER} ;;
esac
"$engine" image inspect -f '{{{{.Id}}}}' "$image"
"""


def check_container(node: Node, container: Container) -> str:
    """Print the id of the node's image; exits with a code above and a reason if it is not usable."""
    words = [container.engine, container.image, "yes" if container.pull else "no", container.python]
    run = [*engine_words(node), *container.args]
    return shlex.join(["/bin/sh", "-c", _CHECK.strip(), "tipcflow", *words, *run])


def inside(node: Node, words: Sequence[str]) -> list[str]:
    """Wrap a tipcflow command to run in the node's container; unchanged without one."""
    container = node.container
    return [*engine_words(node), *container.args, container.image, *words] if container else list(words)
