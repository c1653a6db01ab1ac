"""Node agent: runs one job on one node and always writes an exit record.

This package is sent to nodes as one file (tipcflow.remote.bundle): standard library only, Python >= 3.7, no
import of other tipcflow packages. Files, states and their writers: docs/reference/job-folder.md.

Public: `facts`, `files`, `opened_files`, `outputs`.
"""
