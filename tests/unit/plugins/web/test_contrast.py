"""Colors of the style sheet: WCAG 2.2 AA contrast (4.5:1) of all text, in both themes, computed from the file."""

import re
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[4] / "plugins" / "tipcflow_pages" / "static" / "app.css").read_text()
THEMES = ("light", "dark")
STATUS = ("good", "better", "quiet", "wait", "infra", "worse", "bad", "busy")
# Backgrounds of text: the page, boxes and code, the active filter and a row below the pointer.
BEHIND = ("bg", "raised", "mark")
LEAST = 4.5

Color = tuple[float, float, float]


def color(name: str, theme: str) -> Color:
    """Red, green and blue of a variable, 0 to 1."""
    (found,) = re.findall(rf"^  --{name}: light-dark\((#[0-9a-f]{{6}}), (#[0-9a-f]{{6}})\);$", CSS, re.MULTILINE)
    text = found[THEMES.index(theme)]
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def mixed(over: Color, below: Color, share: float) -> Color:
    """A translucent color over another."""
    red, green, blue = (share * high + (1 - share) * low for high, low in zip(over, below, strict=True))
    return red, green, blue


def luminance(shade: Color) -> float:
    """Relative luminance by WCAG 2.2."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shade]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: Color, behind: Color) -> float:
    light, dark = sorted((luminance(text), luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_formula_equals_known_values() -> None:
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast((0x76 / 255,) * 3, (1, 1, 1)) == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", STATUS)
def test_status_words_have_contrast_on_their_tint(name: str, theme: str) -> None:
    (share,) = re.findall(r"background: color-mix\(in srgb, var\(--c\) (\d+)%, transparent\)", CSS)
    tone = color(name, theme)
    for below in BEHIND:
        tinted = mixed(tone, color(below, theme), int(share) / 100)
        assert contrast(tone, tinted) >= LEAST, f"{name} on {below}: {contrast(tone, tinted):.2f}"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["text", "dim", "link"])
def test_contrast_of_text_is_sufficient(name: str, theme: str) -> None:
    for below in BEHIND:
        value = contrast(color(name, theme), color(below, theme))
        assert value >= LEAST, f"{name} on {below}: {value:.2f}"
