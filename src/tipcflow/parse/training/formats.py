"""Registry of training log formats by name, as in a suite's `log_format`; one module per format."""

from tipcflow.domain import ConfigError
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.suites import clas, det, dlperf, gan, models, nlp, ocr, pytorch, rec, seg, video
from tipcflow.parse.training.custom import custom_format, is_definition

AUTO = "auto"

# In the order in which `auto` tries them: formats with the most specific heads first.
_KNOWN = (
    clas.FORMAT, seg.FORMAT, det.FORMAT, rec.FORMAT, video.FORMAT, ocr.FORMAT, models.FORMAT, gan.FORMAT,
    pytorch.FORMAT, dlperf.FORMAT, nlp.FORMAT,
)  # fmt: skip
FORMATS: dict[str, LineFormat] = {form.name: form for form in _KNOWN}


def line_formats(name: str) -> tuple[LineFormat, ...]:
    """Return the formats that are tried on each line, where the first match is used: one format, or all for
    `auto`.

    Args:
        name: a name in `FORMATS`, `auto`, or the definition of a format as `config.formats` returns it.

    Raises:
        ConfigError: the format does not exist, or the definition is invalid.
    """
    if name == AUTO:
        return (*FORMATS.values(), nlp.SPEED)
    return (line_format(name),)


def line_format(name: str) -> LineFormat:
    """Return the format of that name; for `auto`, one format that combines all.

    Raises:
        ConfigError: the format does not exist.
    """
    if is_definition(name):
        return custom_format(name)
    if name == AUTO:
        return LineFormat(
            AUTO,
            tuple(rule for form in line_formats(AUTO) for rule in form.training),
            tuple(rule for form in line_formats(AUTO) for rule in form.evaluation),
        )
    if name not in FORMATS:
        raise ConfigError(
            "is not a format of training logs",
            key="log_format",
            found=name,
            expected=f"one of {', '.join(FORMATS)}, auto, or a format of your own in configs/formats/",
        )
    return FORMATS[name]
