"""Parts of a policy: overrides for suites and models, and keys that must fit each other.

Public: nothing.
"""
