"""What the sample suite's scripts share: model, data, process group, logging. Importing this imports no Paddle."""
