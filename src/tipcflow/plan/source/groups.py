"""Device groups: entries of gpu_list with their devices and nodes."""

from dataclasses import dataclass
from typing import Literal

from tipcflow.domain import ConfigError
from tipcflow.params import Dialect
from tipcflow.params.limits import MAX_DEVICES
from tipcflow.params.values import is_host, is_id

# The scripts distinguish the forms of an entry by the length of its text.
_ONE_ID, _IDS_OF_ONE_NODE, _PLAIN_LAUNCH = 1, 15, 2


@dataclass(frozen=True)
class Group:
    """One entry of gpu_list.

    Attributes:
        index: index in the list, also used for paired slots.
        text: the entry in the file.
        ids: GPU ids; empty for a CPU entry.
        ips: addresses of the nodes; empty on one node.
        form: how training is launched.
        gpus: the ids in the form of the script's file names and launcher.
        ips_text: the addresses in the form of the launcher.
        export: the value that the entry exports as CUDA_VISIBLE_DEVICES, None for no export.
        at_once: whether the script exports it as soon as it reads the entry.
    """

    index: int
    text: str
    ids: tuple[str, ...]
    ips: tuple[str, ...]
    form: Literal["single", "multi", "nodes"]
    gpus: str
    ips_text: str = ""
    export: str | None = None
    at_once: bool = False

    @property
    def nodes(self) -> int:
        """Return the number of nodes of the group."""
        return max(1, len(self.ips))


def classify_bash(index: int, text: str, dialect: Dialect) -> Group:
    """Return the group in the script's semantics: form by the length of the text."""
    cuda = dialect.cuda
    gpus, ips, export, at_once = text, "", None, False
    if text == "-1":
        pass
    elif len(text) <= _ONE_ID:
        export, at_once = _exported(text, "all"), cuda.at_once
    elif len(text) <= _IDS_OF_ONE_NODE:
        export = _exported(text, cuda.multi)
    else:
        fields = text.split(";")
        ips, gpus = fields[0], fields[1] if len(fields) > 1 else ""
        export = _exported(gpus, cuda.nodes)
    form: Literal["single", "multi", "nodes"] = "nodes"
    if len(gpus) <= _PLAIN_LAUNCH:
        form = "single"
    elif len(ips) <= dialect.threshold:
        form = "multi"
    counted = len(ips) > dialect.threshold and (form == "nodes" or dialect.count_nodes == "entry")
    return Group(
        index=index,
        text=text,
        ids=tuple(gpus.split(",")),
        ips=tuple(ips.split(",")) if counted else (),
        form=form,
        gpus=gpus,
        ips_text=ips,
        export=export,
        at_once=at_once,
    )


def _exported(gpus: str, what: str) -> str | None:
    value = {"all": gpus, "first": gpus.split(",")[0], "none": None}[what]
    return value if value is None else (value.split() or [""])[0]


def classify_spec(index: int, text: str, *, file: str, line: int) -> Group:
    """Return the group in spec semantics: `-1`, comma-separated ids, or `addresses;ids`.

    Raises:
        ConfigError: the entry has another form, or a duplicate id or address.
    """
    addresses, semicolon, ids_text = text.partition(";")
    if not semicolon:
        addresses, ids_text = "", text
    ips = tuple(part.strip() for part in addresses.split(",")) if semicolon else ()
    ids = tuple(part.strip() for part in ids_text.split(","))
    cpu = ids == ("-1",) and not semicolon
    fine = cpu or all(is_id(part) for part in ids)
    if (
        not fine
        or not all(is_host(part) for part in ips)
        or max(len(ids), len(ips)) > MAX_DEVICES
        or len(set(ids)) < len(ids)
        or len(set(ips)) < len(ips)
    ):
        raise ConfigError(
            "this entry names no devices",
            file=file,
            line=line,
            key="gpu_list",
            found=text[:120] or "nothing",
            expected="-1, ids such as 0,1, or addresses and ids such as 192.168.0.1,192.168.0.2;0,1",
        )
    form: Literal["single", "multi", "nodes"] = "nodes" if ips else "multi" if len(ids) > 1 else "single"
    return Group(
        index=index,
        text=text,
        ids=() if cpu else ids,
        ips=ips,
        form=form,
        gpus=",".join(ids),
        ips_text=",".join(ips),
    )
