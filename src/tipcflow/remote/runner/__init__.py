"""The node runner: runs one job on one node and always leaves an exit record.

This package is shipped to nodes as one file (tipcflow.remote.bundle): standard library only, Python >= 3.7, no
import of anything else of tipcflow. Files, states and who writes them: docs/reference/job-folder.md.
"""
