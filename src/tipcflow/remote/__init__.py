"""Remote commands as text, paths on nodes, and the node runner (docs/reference/job-folder.md)."""
