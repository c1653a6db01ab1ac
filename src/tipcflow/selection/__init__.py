"""Which chains a change affects, with the reason of every choice.

Public: `__all__`, `globs`, `select`.
"""

from tipcflow.selection.graph import Tree, reachable
from tipcflow.selection.select import Because, Change, Choice, Chosen, TracedChain, select

__all__ = [
    "Because",
    "Change",
    "Choice",
    "Chosen",
    "TracedChain",
    "Tree",
    "reachable",
    "select",
]
