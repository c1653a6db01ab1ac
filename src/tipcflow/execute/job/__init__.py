"""One node's part of a step: its specification, its exit record, hang evidence."""
