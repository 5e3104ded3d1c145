"""Text drawings: small ones letter by letter, others by what must hold."""

from towpath.picture.measure import columns
from towpath.picture.sketch import Figure, Ran, Sketch, Stroke
from towpath.picture.text import text

LOOP = """\
       ( start )
           |
           v
      +---------+
      |  agent  |
      +---------+
         : : ^
   +.....+ : +-+
   :       +.+ |
   :         : |
   :         : |
   :         v |
   v      +-------+
( end )   | tools |
          +-------+"""


def figures(*names):
    ends = {"start": "start", "end": "end"}
    return [Figure(name, name, ends.get(name, "node")) for name in names]


def loop():
    return Sketch(
        "loop",
        figures("start", "agent", "tools", "end"),
        [
            Stroke("start", "agent"),
            Stroke("agent", "end", manner="branch"),
            Stroke("agent", "tools", manner="branch"),
            Stroke("tools", "agent"),
        ],
    )


def test_a_loop_is_drawn_with_ascii():
    assert LOOP == text(loop())


def test_signs_for_lines_draw_the_same():
    drawn = text(loop(), ascii=False)
    assert len(LOOP) == len(drawn)
    assert "┌─────────┐" in drawn
    assert "┆" in drawn


def test_ascii_is_ascii():
    sketch = loop()
    sketch.figures[1].ran = Ran("waiting", 3, 0.2)
    sketch.figures.append(Figure("x" * 90, "x" * 90))
    sketch.strokes.append(Stroke("agent", "agent", "again", "send"))
    assert text(sketch).isascii()


def test_a_run_is_told_in_the_box():
    sketch = loop()
    sketch.figures[1].ran = Ran("waiting", 3, 0.2)
    assert "[waits - x3 - 200 ms]" in text(sketch)


def test_subgraphs_are_frames_with_titles():
    sketch = loop()
    for figure in sketch.figures[1:3]:
        figure.path = ("inner graph",)
    assert "+- inner graph -+" in text(sketch)


def test_joins_and_notes_are_told():
    sketch = Sketch(
        "join",
        [
            *figures("a", "b"),
            Figure("j", "all", "join"),
            Figure("c", "c", notes=("deferred",)),
        ],
        [
            Stroke("a", "j", manner="join"),
            Stroke("b", "j", manner="join"),
            Stroke("j", "c"),
        ],
    )
    assert "[ all ]" in text(sketch)
    assert "(deferred)" in text(sketch)


def test_wide_characters_keep_the_frame_of_a_box_straight():
    drawn = text(Sketch("wide", figures("检索文档", "ab"), [Stroke("检索文档", "ab")]))
    box = drawn.split("\n")[:3]
    assert 1 == len({columns(line) for line in box})
