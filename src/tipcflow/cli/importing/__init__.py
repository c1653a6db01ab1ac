"""`tipcflow import`: writes the suite file for a checkout of a model suite.

Public: nothing.
"""
