"""How spec starts a training: launcher words, environment and device argument for one node."""

from tipcflow.params import Dialect
from tipcflow.plan.groups import Group
from tipcflow.plan.hosts import Host
from tipcflow.plan.options import PlanOptions

_ON_CPU = {"True": "False", "true": "false", "gpu": "cpu", "1": "0"}
_DIAGNOSE = {"GLOG_v": "3", "FLAGS_benchmark": "1", "NCCL_DEBUG": "INFO"}


def launcher(
    group: Group, host: Host, hosts: tuple[Host, ...], dialect: Dialect, folder: str, options: PlanOptions
) -> str:
    """The words between interpreter and script; '' for a plain process.

    A training on several nodes is always launched, also with one process per node. Its own address is always
    said: the launcher makes a node rank 0 whose address it does not find among the ips.
    """
    if group.form == "single":
        return ""
    words = ["-m paddle.distributed.launch"]
    if group.form == "nodes":
        words.append("--ips=" + ",".join(each.address for each in hosts))
        words.append(f"--host={host.address}")
        words.append(f"--start_port={options.start_port}")
    if host.device == "cpu":
        words.append(f"--nproc_per_node={len(group.ids)}")
    else:
        flag = "--devices" if "--devices" in dialect.launch.get("multi", "") else "--gpus"
        words.append(f"{flag}={group.gpus}")
    words.append(f"--log_dir={folder}/launch")
    return " ".join(words)


def train_env(group: Group, host: Host, options: PlanOptions) -> dict[str, str]:
    """Variables of a training process on one node."""
    env: dict[str, str] = {}
    if host.device == "cpu" and group.form != "single":
        env["PADDLE_DISTRI_BACKEND"] = "gloo"
    if host.device != "cpu" and group.form == "single" and group.ids:
        env["CUDA_VISIBLE_DEVICES"] = group.gpus
    return {**env, **(_DIAGNOSE if options.diagnose else {})}


def single_env(group: Group | None, host: Host) -> dict[str, str]:
    """Variables of a single process (evaluation, export, inference) after a training on `group`."""
    if host.device == "cpu" or group is None or not group.ids:
        return {}
    return {"CUDA_VISIBLE_DEVICES": group.ids[0]}


def train_device(word: str, host: Host, group: Group) -> str:
    """The value of the training's device argument: what the file says, or its counterpart on a CPU.

    The entry -1 of gpu_list is the CPU, whatever else stands in the file.
    """
    return on_cpu(word) if host.device == "cpu" or not group.ids else word


def on_cpu(word: str) -> str:
    """The counterpart of a device word on a CPU; any other word as it is."""
    return _ON_CPU.get(word, word)
