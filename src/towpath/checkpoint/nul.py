"""Texts for where not every one may be: without NUL, without lone surrogates."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape(text: str) -> str:
    """Write a text without NUL, so that escaped texts sort as the texts do."""
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1\2").replace("\0", "\1\1")
    return text


def unescape(text: str) -> str:
    """Undo `escape`."""
    if "\1" in text:
        return text.replace("\1\1", "\0").replace("\1\2", "\1")
    return text
