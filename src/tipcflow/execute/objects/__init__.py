"""The object store (TIPCFLOW_STORE) that replaces a shared TIPCFLOW_HOME, and its copies on this machine.

Public: `object_store`.
"""
