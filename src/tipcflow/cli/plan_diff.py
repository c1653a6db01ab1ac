"""`tipcflow plan --diff`: what a suite's script runs beside what the file says, with the reasons."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import typer

from tipcflow.cli.output import print_json
from tipcflow.domain import Command, Plan, Quirk, Step

# Said once instead of at every command: these never change what a command does to the model.
EVERYWHERE = (
    "tipcflow keeps the output of commands itself, where the script redirects it",
    "one folder per variant, <trainer>_gpus_<ids>_autocast_<precision>_nodes_<n>, whatever the script calls it",
    "launchers get --log_dir, and on several nodes their own ports; trainings get the run's seed",
)
_PREPARE, _TRAIN, _EVAL, _EXPORT, _INFER = "prepare", "train", "eval", "export", "infer"
# Quirks whose texts quote the key or value that is different.
_BY_KEY = frozenset(
    {
        "mode-entry",
        "mode-entry-bare",
        "paired-missing",
        "image-dropped",
        "device-clobbered",
        "from-norm",
        "colon-cut",
        "paired-unread",
        "mode-table-unread",
        "cpu-entry-device",
        "benchmark-param-lost",
        "benchmark-python",
        "trailing-blank",
    }
)
_LAUNCH = frozenset({"ips-by-length", "launcher-by-length", "ids-by-length", "two-digit-id"})
_GPU = frozenset({"gpu-unset", "cuda-leak", "two-digit-id"})
_ALL = (_TRAIN, _EVAL, _EXPORT, _INFER)
# Quirk -> the kinds of steps in which it can be seen; those not listed change no command.
_SEEN_IN: Mapping[str, tuple[str, ...]] = {
    "ips-by-length": _ALL,
    "launcher-by-length": _ALL,
    "ids-by-length": _ALL,
    "two-digit-id": _ALL,
    "mode-entry": (_TRAIN, _EVAL, _EXPORT),
    "mode-entry-bare": (_TRAIN, _EVAL, _EXPORT),
    "paired-missing": (_TRAIN, _EVAL),
    "colon-cut": _ALL,
    "trailing-blank": _ALL,
    "cut": _ALL,
    "image-dropped": (_INFER,),
    "from-norm": (_TRAIN,),
    "legs-skipped": (_INFER,),
    "every-node-infers": (_EVAL, _EXPORT, _INFER),
    "epochs-ignored": (_TRAIN,),
    "whole-infer-nothing": (_EXPORT, _INFER),
    "export-weights-lost": (_EXPORT,),
    "multi-not-trained": (_TRAIN,),
    "time-limit": (_TRAIN,),
    "device-clobbered": (_TRAIN, _EVAL),
    "quant-unread": (_INFER,),
    "gpu-unset": _ALL,
    "cuda-leak": (_TRAIN,),
    "cpu-entry-device": (_TRAIN, _EVAL),
    "paired-unread": (_TRAIN, _EVAL),
    "mode-table-unread": _ALL,
    "pipe-in-value": _ALL,
    "model-name-blank": _ALL,
    "section-by-line": (_TRAIN,),
    "infer-dir-null": (_INFER,),
    "null-model": (_EXPORT, _INFER),
    "quant-misaligned": (_INFER,),
    "quant-folder": (_INFER,),
    "export-keys-unset": (_EXPORT,),
    "klquant-reads-nothing": _ALL,
    "losses-as-text": (_EVAL,),
    "benchmark-analysis": (_EVAL, _PREPARE),
    "benchmark-profiling": (_TRAIN,),
    "benchmark-param-lost": (_TRAIN,),
    "benchmark-empty-line": (_TRAIN,),
    "benchmark-section": (_TRAIN, _EVAL),
    "benchmark-epochs": (_TRAIN,),
    "benchmark-precision": (_TRAIN,),
    "benchmark-nodes": (_TRAIN,),
    "benchmark-python": (_TRAIN,),
}
_REDIRECTION = re.compile(r"\s*(2>&1\s*\|\s*tee\s+\S+|>{1,2}\s*\S+\s+2>&1|>{1,2}\s*\S+)\s*(?:&& cd \.\./?)?$")
_OURS = re.compile(
    r"^mkdir -p \S+ && set -o pipefail && "
    r"|(?:^|(?<=\s))--(?:log_dir|master|start_port|nnodes|rank|seed|host)=\S+|(?<=\s)-B(?=\s)"
    r"|\s&& cd \S+/quant_post_static_model && ln -sf .*$"
)
_RESULTS = re.compile(r"[^\s=]*test_tipc/output\S*/python_infer_\S+_results")
_OUTPUT = re.compile(r"[^\s=]*test_tipc/output\S*?/(?=[^\s/]+_gpus_[^\s/]+_autocast_)")
_VARIANT = re.compile(r"(_autocast_[^/\s]*?)(?:_nodes_\d+)?(?:\.log)?(?=[/\s]|$)")


# Step, leg, place of the node.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Difference:
    """One command that differs: words that only one side has, or `None` where that side has no such command.

    `step` is the step's id without its number of nodes, `node` the place of the node in the step, from 0.
    """

    step: str
    leg: str
    node: int
    bash: str | None
    spec: str | None
    reasons: tuple[Quirk, ...] = field(default=())

    def as_json(self) -> dict[str, object]:
        """The difference for --json."""
        said = {"step": self.step, "leg": self.leg, "node": self.node, "bash": self.bash, "spec": self.spec}
        return {**said, "quirks": [quirk.id for quirk in self.reasons]}


def differences(bash: Plan, spec: Plan) -> list[Difference]:
    """Where the two plans of one file really differ, in the order of `spec`, then of `bash`."""
    left, right = _commands(bash), _commands(spec)
    _drop_renamed(left, right)
    return [
        found
        for key in dict.fromkeys([*right, *left])
        if (found := _difference(key, left.get(key), right.get(key), spec.quirks))
    ]


def _difference(key: Key, here: str | None, there: str | None, quirks: Sequence[Quirk]) -> Difference | None:
    mine, theirs = _only(here, there)
    if here is not None and there is not None and not mine and not theirs:
        return None
    step, leg, node = key
    one_sided = here is None or there is None
    reasons = tuple(quirk for quirk in quirks if _explains(quirk, step, f"{mine} {theirs}", one_sided))
    if there is not None:
        reasons = tuple(quirk for quirk in reasons if quirk.id != "every-node-infers")
    return Difference(
        step, leg, int(node), None if here is None else mine, None if there is None else theirs, reasons
    )


def _drop_renamed(left: dict[Key, str], right: dict[Key, str]) -> None:
    """Take out commands that both sides have under different names."""
    mine: dict[str, list[Key]] = {}
    for key, text in left.items():
        if right.get(key) != text:
            mine.setdefault(text, []).append(key)
    for key in [key for key, text in right.items() if left.get(key) != text]:
        others = mine.get(right[key])
        if others:
            del left[others.pop(0)], right[key]


def _commands(plan: Plan) -> dict[Key, str]:
    """Commands by step (whatever number of nodes its name tells), leg, and place of the node in the step."""
    found: dict[Key, str] = {}
    renamed = plan.mode.startswith("benchmark_train") or plan.dialect.endswith("/dy2static")
    for step in plan.steps:
        name = re.sub(r"_nodes_\d+(?=/|$)", "", step.id)
        for place, node in enumerate(step.nodes):
            if node in step.commands:
                text = _plain(step.commands[node])
                found[name, "", str(place)] = _one_folder(text, step) if renamed else text
        found.update({(name, leg.id, "0"): _plain(leg.command, on_gpu=leg.device == "gpu") for leg in step.legs})
    return found


def _plain(command: Command, *, on_gpu: bool = True) -> str:
    """A command with its folder and GPU, without what differs everywhere."""
    text = _REDIRECTION.sub("", re.sub(r"\s+", " ", command.text).strip())
    text = _OURS.sub(" ", text).replace('"', "")
    text = _RESULTS.sub("<results>", text)
    text = _OUTPUT.sub("<output>/", text)
    text = _VARIANT.sub(r"\1", text)
    text = re.sub(r"/+(?=\s|$)", "", re.sub(r"(?<!:)/{2,}", "/", text))
    place = "" if command.cwd in ("", ".") else f"cd {command.cwd} && "
    text = text.removeprefix(place)
    return place + _gpu(command, launched="distributed.launch" in text) * on_gpu + text


def _one_folder(text: str, step: Step) -> str:
    """The text where spec calls a variant's folder otherwise than the script does."""
    ours = rf"[^\s=]*test_tipc/output\S*?/{re.escape(step.id.partition('/')[0])}|<output>/[^\s/]+_gpus_[^\s/]+"
    return re.sub(rf"(?:{ours})(?=[/\s]|$)", "<output>", text)


def _gpu(command: Command, *, launched: bool) -> str:
    """CUDA_VISIBLE_DEVICES where it matters: a single process takes its first id, and GPU 0 without any."""
    ids = command.env.get("CUDA_VISIBLE_DEVICES", "")
    if launched:
        return f"CUDA_VISIBLE_DEVICES={ids} " if ids else ""
    first = ids.split(",")[0]
    return f"CUDA_VISIBLE_DEVICES={first} " if first not in ("", "0") else ""


def _only(here: str | None, there: str | None) -> tuple[str, str]:
    """The words of each side that the other lacks, in their order."""
    mine, theirs = Counter((here or "").split()), Counter((there or "").split())
    return _words(here, mine - theirs), _words(there, theirs - mine)


def _words(text: str | None, wanted: "Counter[str]") -> str:
    left = Counter(wanted)
    words = []
    for word in (text or "").split():
        if left[word] > 0:
            left[word] -= 1
            words.append(word)
    return " ".join(words)


def _explains(quirk: Quirk, step: str, words: str, one_sided: bool) -> bool:
    """Whether a quirk can be the reason for the words that differ in a step."""
    kind = step.rpartition("/")[2].removeprefix("before_").partition("_")[0]
    if kind not in _SEEN_IN.get(quirk.id, ()):
        return False
    if "_profiling/" in step or quirk.id == "benchmark-profiling":
        return "_profiling/" in step and quirk.id == "benchmark-profiling"
    if quirk.id in _GPU and "CUDA_VISIBLE_DEVICES=" in words:
        return True
    if quirk.id in _LAUNCH:
        return one_sided or any(word in words for word in ("--ips", "--gpus", "--devices", "launch"))
    if "model_name'" in quirk.bash and quirk.id.startswith("mode-entry"):
        return kind != _TRAIN and not one_sided  # the name of weights, of which no command has the key
    if quirk.id == "trailing-blank" and one_sided:
        return True
    if quirk.id not in _BY_KEY:
        return True
    said = [text.strip() for text in re.findall(r"'([^']+)'", quirk.bash + quirk.spec)]
    names = [*said, *(text.rpartition(" ")[2] for text in said)]  # of the key `-o a.b` only `a.b` differs
    return not one_sided and any(part and part in words for name in names for part in (name, name.split("=")[0]))


def print_differences(bash: Plan, spec: Plan, *, as_json: bool) -> None:
    """Print what differs, and what always does."""
    found = differences(bash, spec)
    unseen = [quirk for quirk in spec.quirks if all(quirk not in each.reasons for each in found)]
    if as_json:
        print_json(
            {
                "chain": spec.chain,
                "mode": spec.mode,
                "differences": [each.as_json() for each in found],
                "quirks": [quirk.model_dump() for quirk in spec.quirks],
                "everywhere": EVERYWHERE,
            }
        )
        return
    total = len({**_commands(bash), **_commands(spec)})
    typer.echo(f"{spec.chain}  {spec.mode}: {len(found)} of {total} commands differ")
    for group in _alike(found):
        _print_group(group)
    _print_quirks("reasons", [quirk for quirk in spec.quirks if quirk not in unseen])
    _print_quirks("differences that no command shows", unseen)
    typer.echo("\neverywhere")
    for text in EVERYWHERE:
        typer.echo(f"  {text}")


def _alike(found: Sequence[Difference]) -> list[list[Difference]]:
    """Differences of one step that are the same, or that one side lacks altogether, put together."""
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for each in found:
        text = (each.bash, each.spec) if None not in (each.bash, each.spec) else (each.bash is None,)
        groups.setdefault((each.step, each.leg == "", each.reasons, text), []).append(each)
    return list(groups.values())


def _print_group(group: Sequence[Difference]) -> None:
    first = group[0]
    what = f" {len(group)} legs" if first.leg and len(group) > 1 else f" {first.leg}" if first.leg else ""
    if not first.leg and (len(group) > 1 or first.node):
        what = " on node " + ", ".join(str(each.node + 1) for each in group)
    typer.echo(f"\n{first.step}{what}")
    typer.echo(f"  bash    {_side(first.bash)}")
    typer.echo(f"  spec    {_side(first.spec)}")
    typer.echo(f"  reason  {', '.join(f'{q.id} (line {q.line})' for q in first.reasons) or 'none is known'}")


def _side(words: str | None) -> str:
    return "no such command" if words is None else words or "nothing more"


def _print_quirks(title: str, quirks: Sequence[Quirk]) -> None:
    if quirks:
        typer.echo(f"\n{title}")
    for quirk in quirks:
        where = f"line {quirk.line} " if quirk.line else ""
        typer.echo(f"  {where}{quirk.id}: bash: {quirk.bash}; spec: {quirk.spec}")
