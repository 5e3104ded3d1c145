"""The limits on size, parameters, twins and duplicates hold, and are checked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import shape  # noqa: E402


def test_the_package_keeps_its_shape(capsys):
    assert 0 == shape.main([str(ROOT / "src" / "towpath")]), capsys.readouterr().out


def many(statement: str, count: int) -> str:
    return "\n".join([f"    {statement}"] * count)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("\n" * 601, "601 lines, at most 600"),
        (f"def f():\n{many('x = 1', 60)}", "61 lines, at most 60"),
        ("def f(a, b, c, d, e, g, h, i, j):\n    pass", "9 parameters"),
        ("def _f(a, b, c, d, *, e, g, h, i, j):\n    pass", "9 parameters"),
        (
            f"def f():\n{many('x = 1', 9)}\nasync def af():\n{many('y = 1', 9)}",
            "f: twins, both with bodies over 8 lines",
        ),
        (f"def f():\n{many('x = 1', 8)}\ndef g():\n{many('x = 1', 8)}", "has the body"),
    ],
)
def test_a_module_out_of_shape_is_reported(tmp_path, capsys, text, fault):
    (tmp_path / "module.py").write_text(text)
    assert 1 == shape.main([str(tmp_path)])
    assert fault in capsys.readouterr().out


def test_a_twin_that_hands_over_is_no_fault(tmp_path):
    text = f"def f():\n{many('x = 1', 9)}\nasync def af():\n    return f()\n"
    (tmp_path / "module.py").write_text(text)
    assert 0 == shape.main([str(tmp_path)])


def test_options_of_public_verbs_are_not_counted(tmp_path):
    text = "class A:\n    def f(self, a, *, b, c, d, e, g, h, i, j, k): ...\n"
    (tmp_path / "module.py").write_text(text)
    assert 0 == shape.main([str(tmp_path)])
