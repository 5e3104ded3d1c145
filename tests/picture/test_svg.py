"""The SVG is valid, safe, legible, and the same every time."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.picture.measure import columns, folded, plain, sized, width
from towpath.picture.sketch import Figure, Ran, Sketch, Stroke, lasted
from towpath.picture.svg import DARK, LIGHT, Drawing
from towpath.picture.text import text

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert('&')</script>",
    '"]]></style><svg onload="x">',
    "a\x00b\x1b[31m\ud800\ufffe",
    "\u202eright to left",
    "x" * 5000,
    "检索文档" * 30,
    "e\u0301" * 40,
    "line\nbreak\ttab",
    " ",
]


def two(name, **options):
    return Sketch(
        "graph",
        [Figure("a", name, **options), Figure("z", "end", "end")],
        [Stroke("a", "z", name, "branch")],
    )


def parsed(sketch):
    return ET.fromstring(Drawing(sketch).text())


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_can_be_anything(name):
    tree = parsed(two(name, notes=(name,), told=name, ran=Ran(note=name)))
    tags = {element.tag.removeprefix(NS) for element in tree.iter()}
    assert tags <= {"svg", "title", "desc", "style", "g", "rect", "path", "text"}
    assert "graph" == tree.find(f"{NS}title").text


@pytest.mark.slow
@given(name=st.text(max_size=80))
@settings(deadline=None, max_examples=80)
def test_any_text_gives_valid_xml_and_rows_of_characters(name):
    parsed(two(name))
    assert text(two(name))


@pytest.mark.slow
@given(name=st.text(max_size=120))
@settings(deadline=None, max_examples=80)
def test_text_stays_inside_of_its_box(name):
    drawing = Drawing(two(name, notes=("deferred",), ran=Ran("waiting", 12, 3.4)))
    tree = ET.fromstring(drawing.text())
    box = drawing.boxes["a"]
    [figure] = [g for g in tree.iter(f"{NS}g") if g.get("data-id") is not None][:1]
    for line in figure.iter(f"{NS}text"):
        half = float(line.get("textLength") or 0) / 2
        assert box.left <= float(line.get("x")) - half
        assert float(line.get("x")) + half <= box.right
        assert box.y < float(line.get("y")) < box.bottom


def test_every_line_says_how_wide_it_may_be():
    """With that, no font of a viewer makes text overflow."""
    for line in parsed(two("some name")).iter(f"{NS}text"):
        size = float(line.get("font-size"))
        assert width(line.text, size) == pytest.approx(
            float(line.get("textLength")), abs=0.06
        )


def test_nothing_is_referred_to():
    told = Drawing(two("x")).text()
    assert not re.search(r"href|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", told)


def test_the_same_sketch_gives_the_same_text():
    assert Drawing(two("x")).text() == Drawing(two("x")).text()


def test_two_pictures_on_one_page_do_not_share_rules():
    keys = [parsed(two(name)).get("id") for name in ("x", "y")]
    assert 2 == len(set(keys))
    for key, name in zip(keys, ("x", "y"), strict=True):
        rules = re.findall(
            r"([#.\w-]+) [.\w]+(?: [.\w]+)?\{", Drawing(two(name)).text()
        )
        assert {f"#{key}"} == set(rules)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [p / 12.92 if p <= 0.04 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_contrast_in_light_and_dark(colours):
    """WCAG 2: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    for ground in ("node", "done", "failed", "waiting", "next", "card"):
        assert contrast(colours["text"], colours[ground]) >= 4.5, ground
        assert contrast(colours["note"], colours[ground]) >= 4.5, ground
    assert contrast(colours["on"], colours["ends"]) >= 4.5
    for line in ("line", "back", "error", "edge", "ok", "wait", "go"):
        assert contrast(colours[line], colours["card"]) >= 3, line


def test_it_says_in_words_what_it_shows():
    sketch = two("write", ran=Ran("failed", 2, 90, "ValueError('no')"))
    told = parsed(sketch).find(f"{NS}desc").text
    assert "write ran 2 times, its steps took 1 min 30 s, failed" in told
    edges = parsed(two("write")).find(f"{NS}desc").text
    assert "write to end when write: a choice." in edges


def test_long_names_are_folded_where_words_end():
    lines = folded("retrieve_documents_from_the_archive", sized(13), 120, 3)
    assert ("retrieve_", "documents_from_", "the_archive") == lines
    assert ("Retrieve", "Documents") == folded("RetrieveDocuments", sized(13), 80, 3)


def test_what_does_not_fit_ends_in_dots():
    lines = folded("word " * 100, sized(13), 120, 2)
    assert 2 == len(lines)
    assert lines[-1].endswith("…")
    assert all(width(line, 13) <= 120 for line in lines)


def test_wide_characters_take_two_columns():
    assert (4, 1, 0) == (columns("检索"), columns("e\u0301"), columns("\u0301"))


def test_lines_are_made_plain():
    assert "a b" == plain(" a\n\tb ")
    assert "\ufffd" == plain("\ud800") == plain("\u202e") == plain("\x07")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "<1 ms"),
        (0.25, "250 ms"),
        (59.94, "59.9 s"),
        (61, "1 min 1 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_times_are_told_in_few_letters(seconds, told):
    assert told == lasted(seconds)
