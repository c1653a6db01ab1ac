"""Line formats, one module per family of suites; each module docstring starts with sample lines.

Names without a prefix are per iteration in training and per evaluation in evaluation. Other values have a
prefix: `epoch.` (mean of a training epoch), `batch.` (one batch of an evaluation), `best.` (best so far).

Public: nothing.
"""
