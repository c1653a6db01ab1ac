"""A node added to a cluster file: comments and order are kept, and the file means what it meant."""

from pathlib import Path

import pytest

from tipcflow.cli.nodes.cluster_text import check_new, with_node
from tipcflow.config.loader import parse_yaml
from tipcflow.domain import Cluster, ConfigError, Node, SshTarget

NEW = Node(
    name="c", address="192.0.2.3", ssh=SshTarget(host="c.example", port=2222), python="/p", workspace="/w", slots=4
)
HEAD = "# Ours.\nname: lab   # of room 3\n"
A = "name: a, address: 192.0.2.1, python: /p, workspace: /w"
TEXTS = {
    "indented": HEAD + f"nodes:\n  - {{{A}}}   # first\n",
    "not indented": HEAD + f"nodes:\n- {{{A}}}\n",
    "key after": HEAD + f"nodes:\n  - {{{A}}}\nlaunch: master\n",
    "block": HEAD + "nodes:\n    - name: a\n      address: 192.0.2.1\n      python: /p\n      workspace: /w\n",
    "comment at the end": HEAD + f"nodes:\n  - {{{A}}}\n# the end\n",
    "no line end": HEAD + f"nodes:\n  - {{{A}}}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_comments_and_other_nodes_are_kept(text: str) -> None:
    after = with_node(text, "lab", NEW, file="lab.yaml")
    before, now = (parse_yaml(one, Cluster, file="lab.yaml") for one in (text, after))
    assert now == before.model_copy(update={"nodes": (*before.nodes, NEW)})
    rest = iter(after.splitlines())
    assert all(line in rest for line in text.splitlines()), after


def test_a_new_file_is_a_cluster() -> None:
    made = parse_yaml(with_node("", "lab", NEW, file="lab.yaml"), Cluster, file="lab.yaml")
    assert made == Cluster(name="lab", nodes=(NEW,))


def test_a_file_in_another_form_is_left_to_the_user() -> None:
    with pytest.raises(
        ConfigError, match=r"lab\.yaml: a node cannot be added to this file; add it by hand"
    ) as caught:
        with_node(f"name: lab\nnodes: [{{{A}}}]\n", "lab", NEW, file="lab.yaml")
    assert "address: 192.0.2.3" in str(caught.value)


@pytest.mark.parametrize(("what", "hint"), [("name", "set it with --name"), ("address", "expected another one")])
def test_a_second_node_of_a_name_or_address_is_refused(what: str, hint: str) -> None:
    other = Node(name="x", address="192.0.2.9", python="/p", workspace="/w").model_copy(
        update={what: getattr(NEW, what)}
    )
    with pytest.raises(ConfigError, match=f"a node with this {what} is already in the cluster") as caught:
        check_new(Cluster(name="lab", nodes=(other,)), NEW, Path("lab.yaml"))
    assert hint in str(caught.value)
