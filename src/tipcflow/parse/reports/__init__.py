"""Reports beside the training log: AutoLog, inference, engine, predictions, resources."""
