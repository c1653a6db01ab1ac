"""The suite's files: a snapshot of a ref or folder, its cache, the merge base of a change."""
