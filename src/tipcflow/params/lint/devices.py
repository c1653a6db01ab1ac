"""Rules about devices: scripts distinguish the forms of gpu_list by the length of the text."""

from tipcflow.params.limits import MAX_DEVICES
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.specs import DEVICES
from tipcflow.params.values import is_host, is_id, is_null

_ONE_NODE = 15
_PLAIN = 2


def _entries(subject: Subject) -> tuple[int, list[str]]:
    slot = subject.slot("gpu_list")
    return (slot.line, subject.items("gpu_list")) if slot else (0, [])


def entry(subject: Subject) -> list[Hit]:
    """Entries that are neither -1, nor ids, nor addresses and ids."""
    line, texts = _entries(subject)
    if line and not texts:
        return [Hit(line, "gpu_list is empty: nothing runs", "write 0, or 0,1, or address,address;0,1")]
    hits = []
    for text in texts:
        addresses, semicolon, ids = text.partition(";")
        numbers = [number.strip() for number in (ids if semicolon else text).split(",")]
        hosts = [host.strip() for host in addresses.split(",")] if semicolon else []
        fine = text == "-1" or all(is_id(number) for number in numbers)
        fine = fine and all(is_host(host) for host in hosts) and max(len(numbers), len(hosts)) <= MAX_DEVICES
        doubled = len(set(numbers)) < len(numbers) or len(set(hosts)) < len(hosts)
        if not fine or doubled:
            message = f"{text!r} is not a list of devices" + (" (duplicate)" if fine and doubled else "")
            hits.append(Hit(line, message, "write -1, ids such as 0,1, or address,address;0,1"))
    return hits


def too_long(subject: Subject) -> list[Hit]:
    """Nine ids exceed the maximum length of a list of ids."""
    line, texts = _entries(subject)
    return [
        Hit(
            line,
            f"{text!r} has {len(text)} characters: from {_ONE_NODE + 1} on the script treats it as addresses, and "
            "training gets no ids",
            "use at most eight one-digit GPU ids",
        )
        for text in texts
        if ";" not in text and len(text) > _ONE_NODE
    ]


def two_digits(subject: Subject) -> list[Hit]:
    """A two-digit id is a list in one test of the script and a single id in another."""
    line, texts = _entries(subject)
    return [
        Hit(line, f"{text!r} trains on GPU 0: CUDA_VISIBLE_DEVICES stays unset", "use a GPU from 0 to 9")
        for text in texts
        if is_id(text) and len(text) == _PLAIN
    ]


def short_addresses(subject: Subject) -> list[Hit]:
    """Short addresses are treated as one node."""
    threshold = subject.dialect.threshold
    line, texts = _entries(subject)
    hits = []
    for text in texts:
        addresses, semicolon, ids = text.rpartition(";")
        if semicolon and len(ids) > _PLAIN and len(addresses) <= threshold:
            message = (
                f"{addresses!r} has {len(addresses)} characters, {threshold + 1} are required: --ips is dropped "
                "and every node trains alone"
            )
            hits.append(Hit(line, message, "use longer addresses, or --compat spec"))
    return hits


def one_per_node(subject: Subject) -> list[Hit]:
    """One GPU per node trains as a plain process."""
    line, texts = _entries(subject)
    return [
        Hit(
            line,
            f"{text!r}: one GPU per node trains as a plain process, without launcher and addresses",
            "use two GPUs per node, or --compat spec",
        )
        for text in texts
        if ";" in text and len(text.rpartition(";")[2]) <= _PLAIN
    ]


def placeholder(subject: Subject) -> list[Hit]:
    """Placeholder addresses."""
    line, texts = _entries(subject)
    return [
        Hit(line, f"{text!r} has placeholder addresses, which the script would launch on", "fill in the addresses")
        for text in texts
        if "xx" in text.lower() or "yy" in text.lower()
    ]


def paired(subject: Subject) -> list[Hit]:
    """Alternatives that belong to device groups by position."""
    groups = len(_entries(subject)[1])
    hits = []
    for slot in subject.slots():
        if subject.dialect.kind(slot.name) != "paired" or is_null(slot.value.strip()):
            continue
        count = len(slot.items)
        if count < groups:
            message = f"'{slot.key}' has values for {count} of {groups} entries of gpu_list: the others get none"
            full = "|".join((slot.items * groups)[:groups])
            hits.append(Hit(slot.line, message, f"write {slot.key}:{full}"))
        elif count > groups and groups:
            message = f"'{slot.key}' has more values ({count}) than gpu_list has entries ({groups})"
            hits.append(Hit(slot.line, message, "delete the last values, which are never used", Severity.NOTE))
    return hits


def device_word(subject: Subject) -> list[Hit]:
    """Inference accepts four words for two devices."""
    slot = subject.slot("device")
    if slot is None:
        return []
    return [
        Hit(
            slot.line,
            f"inference on {word!r} is rejected: nothing runs and nothing is logged",
            "write True or False",
        )
        for word in subject.items("device")
        if word not in DEVICES
    ]


def not_trained(subject: Subject) -> list[Hit]:
    """PaddleRec does not train on several GPUs of one node."""
    line, texts = _entries(subject)
    if not subject.dialect.has("multi-not-trained"):
        return []
    return [
        Hit(
            line,
            f"nothing is trained on {text!r}, but its weights are exported and used for inference",
            "use one GPU, or --compat spec",
        )
        for text in texts
        if ";" not in text and len(text) > _PLAIN
    ]


RULES = (
    Rule("gpu-entry", Severity.ERROR, "any text is put into the command unchanged", entry),
    Rule("gpu-count", Severity.ERROR, "more than 15 characters are treated as addresses", too_long),
    Rule("gpu-two-digits", Severity.ERROR, "`10` trains on GPU 0", two_digits),
    Rule(
        "ips-short",
        Severity.ERROR,
        "with addresses of at most 15 (models/template, PaddleRec, PaddleGAN: 26) characters `--ips` is dropped",
        short_addresses,
    ),
    Rule(
        "gpu-one-per-node",
        Severity.ERROR,
        "with at most two characters of ids the launcher is dropped",
        one_per_node,
    ),
    Rule("ips-placeholder", Severity.WARNING, "`xx.xx.xx.xx` is passed to the launcher unchanged", placeholder),
    Rule(
        "gpu-paired",
        Severity.ERROR,
        "with `True` for two entries of gpu_list, the second gets no argument",
        paired,
    ),
    Rule("device-word", Severity.ERROR, "words other than True, gpu, False, cpu are skipped", device_word),
    Rule("multi-gpu-untrained", Severity.WARNING, "PaddleRec starts no training on several GPUs", not_trained),
)
