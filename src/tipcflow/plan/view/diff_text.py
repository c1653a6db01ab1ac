"""Command text for comparison, without the differences that every command has between script and tipcflow."""

import re

from tipcflow.domain import Command, Step

_REDIRECTION = re.compile(r"\s*(2>&1\s*\|\s*tee\s+\S+|>{1,2}\s*\S+\s+2>&1|>{1,2}\s*\S+)\s*(?:&& cd \.\./?)?$")
_OURS = re.compile(
    r"^mkdir -p \S+ && set -o pipefail && "
    r"|(?:^|(?<=\s))--(?:log_dir|master|start_port|nnodes|rank|seed|host)=\S+|(?<=\s)-B(?=\s)"
    r"|\s&& cd \S+/quant_post_static_model && ln -sf .*$"
)
_RESULTS = re.compile(r"[^\s=]*test_tipc/output\S*/python_infer_\S+_results")
_OUTPUT = re.compile(r"[^\s=]*test_tipc/output\S*?/(?=[^\s/]+_gpus_[^\s/]+_autocast_)")
_VARIANT = re.compile(r"(_autocast_[^/\s]*?)(?:_nodes_\d+)?(?:\.log)?(?=[/\s]|$)")


def plain_text(command: Command, *, on_gpu: bool = True) -> str:
    """Return a command with its folder and GPU, without the differences that every command has."""
    text = _REDIRECTION.sub("", re.sub(r"\s+", " ", command.text).strip())
    text = _OURS.sub(" ", text).replace('"', "")
    text = _RESULTS.sub("<results>", text)
    text = _OUTPUT.sub("<output>/", text)
    text = _VARIANT.sub(r"\1", text)
    text = re.sub(r"/+(?=\s|$)", "", re.sub(r"(?<!:)/{2,}", "/", text))
    place = "" if command.cwd in ("", ".") else f"cd {command.cwd} && "
    text = text.removeprefix(place)
    return place + _gpu(command, launched="distributed.launch" in text) * on_gpu + text


def one_folder(text: str, step: Step) -> str:
    """Return the text with spec's name of a variant's folder replaced by the script's."""
    ours = rf"[^\s=]*test_tipc/output\S*?/{re.escape(step.id.partition('/')[0])}|<output>/[^\s/]+_gpus_[^\s/]+"
    return re.sub(rf"(?:{ours})(?=[/\s]|$)", "<output>", text)


def _gpu(command: Command, *, launched: bool) -> str:
    """Return the effective CUDA_VISIBLE_DEVICES: a single process uses its first id, or GPU 0 if unset."""
    ids = command.env.get("CUDA_VISIBLE_DEVICES", "")
    if launched:
        return f"CUDA_VISIBLE_DEVICES={ids} " if ids else ""
    first = ids.split(",")[0]
    return f"CUDA_VISIBLE_DEVICES={first} " if first not in ("", "0") else ""
