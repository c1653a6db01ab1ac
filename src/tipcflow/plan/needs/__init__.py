"""The suite file's own needs in a plan: replaced slots, variables, arguments, and steps before all others.

Public: nothing.
"""
