"""Line formats, one module per family of suites; each begins with sample lines.

Plain names are per iteration in training and per evaluation in evaluation. The other way round a name has a
prefix: `epoch.` (mean of a training epoch), `batch.` (one batch of an evaluation), `best.` (best so far).
"""
