"""What the sample suite's scripts share: model, data, process group, logging. Importing it does not import Paddle."""
