"""A logger whose lines begin like PaddleOCR's."""

import logging
import sys


def get_logger(log_file=""):
    """Lines on standard output and, with a file, also there."""
    logger = logging.Logger("ppocr", logging.DEBUG)
    form = logging.Formatter("[%(asctime)s] %(name)s %(levelname)s: %(message)s", datefmt="%Y/%m/%d %H:%M:%S")
    handlers = [logging.StreamHandler(sys.stdout)]
    if log_file:
        handlers.append(logging.FileHandler(log_file))
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
    return logger
