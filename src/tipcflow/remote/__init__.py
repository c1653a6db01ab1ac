"""Texts of remote commands, paths on nodes, and the node runner (docs/reference/job-folder.md)."""
