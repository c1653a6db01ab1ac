"""Training launch in spec mode: launcher words, environment and device argument of one node."""

import shlex

from tipcflow.domain import ConfigError, Launch
from tipcflow.domain.plan import TOPOLOGY_LOGS
from tipcflow.params import Dialect
from tipcflow.plan.quirks.servers import check_servers, server_words
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.scope import Scope

_ON_CPU = {"True": "False", "true": "false", "gpu": "cpu", "1": "0"}
_DIAGNOSE = {"GLOG_v": "3", "FLAGS_benchmark": "1", "NCCL_DEBUG": "INFO"}
# Precisions of files that only switch mixed precision on, as DLPerf's scripts name them.
_PRECISIONS = {"": "fp32", "null": "fp32", "False": "fp32", "True": "amp"}
_TORCH = (Launch.TORCHRUN, Launch.INIT_METHOD)


def launcher(
    group: Group, host: Host, hosts: tuple[Host, ...], dialect: Dialect, folder: str, options: PlanOptions
) -> str:
    """Return the words between interpreter and script; '' for a plain process.

    A training on several nodes or with parameter servers always uses the launcher, also with one process per
    node. The node's own address is always passed: the launcher assigns rank 0 to a node whose address is not among
    the ips.
    """
    if options.launch is Launch.PS:
        return server_words(group, host, hosts, folder, options)
    if group.form == "single" or options.launch in (Launch.INIT_METHOD, Launch.SCRIPT):
        return ""
    if options.launch is Launch.TORCHRUN:
        return _torchrun(group, host, hosts, options)
    words = ["-m paddle.distributed.launch"]
    if group.form == "nodes":
        words += _rendezvous(host, hosts, options)
    if host.device == "cpu":
        words.append(f"--nproc_per_node={len(group.ids)}")
    else:
        flag = "--devices" if "--devices" in dialect.launch.get("multi", "") else "--gpus"
        words.append(f"{flag}={group.gpus}")
    words.append(f"--log_dir={folder}/launch")
    return " ".join(words)


def _rendezvous(host: Host, hosts: tuple[Host, ...], options: PlanOptions) -> list[str]:
    """Return the rendezvous arguments of Paddle's launcher: the addresses of all nodes, or that of rank 0."""
    own = f"--host={host.address}"
    if options.launch is Launch.MASTER:
        master = f"--master={hosts[0].address}:{options.start_port}"
        return [master, f"--nnodes={len(hosts)}", f"--rank={hosts.index(host)}", own]
    return ["--ips=" + ",".join(peer.address for peer in hosts), own, f"--start_port={options.start_port}"]


def _torchrun(group: Group, host: Host, hosts: tuple[Host, ...], options: PlanOptions) -> str:
    return " ".join(
        [
            "-m torch.distributed.run",
            f"--nnodes={len(hosts)}",
            f"--nproc_per_node={max(1, len(group.ids))}",
            f"--node_rank={hosts.index(host)}",
            f"--master_addr={hosts[0].address}",
            f"--master_port={options.start_port}",
        ]
    )


def rank_arguments(group: Group, host: Host, hosts: tuple[Host, ...], options: PlanOptions) -> str:
    """Return the arguments of a script that discovers its peers itself; '' for every other launch form."""
    if group.form != "nodes" or options.launch is not Launch.INIT_METHOD:
        return ""
    first = hosts[0].address
    place = f"tcp://{f'[{first}]' if ':' in first else first}:{options.start_port}"
    return f"--init-method {place} --rank {hosts.index(host)} --world-size {len(hosts)}"


def script_command(script: str, host: Host, hosts: tuple[Host, ...], scope: Scope, options: PlanOptions) -> str:
    """Return the command of a suite's shell script that starts the ranks of one node.

    Args:
        scope: variables of the training, including its repeat.
    """
    word = scope.get("autocast")
    values = {
        "model": scope.get("model"),
        "batch": scope.get("batch"),
        "precision": _PRECISIONS.get(word, word),
        "node": host.address,
        "repeat": scope.get("repeat"),
    }
    quoted = {name: shlex.quote(value) for name, value in values.items()}
    quoted["nodes"] = " ".join(shlex.quote(peer.address) for peer in hosts)
    return f"bash {script} {options.needs.script_arguments.format(**quoted)}"


def script_logs(group: Group, hosts: tuple[Host, ...]) -> tuple[str, ...]:
    """Return patterns of the logs of a training that a suite's shell script starts: DLPerf's, those of Paddle's
    launcher by default."""
    return (f"{TOPOLOGY_LOGS}{len(hosts)}n{max(1, len(group.ids))}g/*.log", "log/workerlog.*")


def check_script(script: str, options: PlanOptions, *, file: str) -> None:
    """Raise ConfigError if the suite's files are known and do not include the shell script."""
    if options.files.glob("*") and not options.files.exists(script.split(" ")[0]):
        raise ConfigError(
            "the suite does not have the script of launch: script",
            file=file,
            key="trainer",
            found=script,
            expected="a shell script, relative to the suite's root",
        )


def check_launch(group: Group, hosts: tuple[Host, ...], launch: Launch, *, file: str, line: int) -> None:
    """Raise ConfigError for an entry that this launcher cannot start on these hosts."""
    if launch is Launch.PS and group.form == "nodes":
        check_servers(hosts, file=file, line=line)
    if launch is Launch.INIT_METHOD and len(group.ids) > 1:
        raise ConfigError(
            "launch: init_method starts one process per node",
            file=file,
            line=line,
            key="gpu_list",
            found=group.text,
            expected="one id per node, or launch: torchrun",
        )


def train_env(group: Group, host: Host, hosts: tuple[Host, ...], options: PlanOptions) -> dict[str, str]:
    """Return the environment variables of a training process on one node.

    A launcher sets RANK and WORLD_SIZE; without one they are set here, for the observer and the framework probe.
    """
    env: dict[str, str] = {}
    if group.form == "nodes" and options.launch is Launch.INIT_METHOD:
        env |= {"RANK": str(hosts.index(host)), "WORLD_SIZE": str(len(hosts))}
    if options.launch is Launch.SCRIPT:
        env |= {
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": str(options.start_port),
            "NNODES": str(len(hosts)),
            "NODE_RANK": str(hosts.index(host)),
            "NPROC_PER_NODE": str(max(1, len(group.ids))),
        }
    torch = options.launch in _TORCH
    if host.device == "cpu" and group.form != "single" and not torch and options.launch is not Launch.PS:
        env["PADDLE_DISTRI_BACKEND"] = "gloo"
    # PyTorch's launcher and a shell script get no GPU ids: they use the visible GPUs.
    visible = group.form == "single" or torch or options.launch is Launch.SCRIPT
    if host.device != "cpu" and visible and group.ids:
        env["CUDA_VISIBLE_DEVICES"] = group.gpus
    return {**env, **options.training_env, **(_DIAGNOSE if options.diagnose else {})}


def single_env(group: Group | None, host: Host) -> dict[str, str]:
    """Return the environment variables of a single process (evaluation, export, inference) after a training on
    `group`."""
    if host.device == "cpu" or group is None or not group.ids:
        return {}
    return {"CUDA_VISIBLE_DEVICES": group.ids[0]}


def train_device(word: str, host: Host, group: Group) -> str:
    """Return the training's device argument: the file's value, or its CPU counterpart.

    Entry -1 of gpu_list means the CPU, regardless of the rest of the file.
    """
    return on_cpu(word) if host.device == "cpu" or not group.ids else word


def on_cpu(word: str) -> str:
    """Return the CPU counterpart of a device word; any other word unchanged."""
    return _ON_CPU.get(word, word)
