"""tipcflow certifies deep-learning model chains on real clusters.

Public: nothing.
"""
