"""What is stored may be encrypted and compressed."""

from __future__ import annotations

import base64
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.checkpoint.memory import InMemorySaver
from towpath.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from towpath.checkpoint.serde.compressed import CompressedSerializer
from towpath.checkpoint.serde.encrypted import EncryptedSerializer
from towpath.checkpoint.serde.jsonplus import JsonPlusSerializer
from towpath.checkpoint.serde.keyring import (
    InvalidKeyError,
    Key,
    Keyring,
    SealError,
    context_of,
)
from towpath.errors import DeserializationError
from towpath.graph import StateGraph

pytest.importorskip("cryptography")
zstandard = pytest.importorskip("zstandard")

OLD, NEW, THIRD = (bytes([n]) * 32 for n in (1, 2, 3))
HERE = context_of("thread", "", "checkpoint")
quick = settings(max_examples=100, deadline=None)


# The keyring


@quick
@given(st.sampled_from(["tp1", "null", "bytes", "tp1.zstd", ""]), st.binary())
def test_what_is_sealed_is_unsealed_in_its_place(tag, data):
    ring = Keyring(NEW)
    sealed = ring.seal(tag, data, HERE)
    assert (tag, data) == ring.unseal(*sealed, HERE)
    assert len(data) < 4 or data not in sealed[1]


@pytest.mark.parametrize(
    "elsewhere",
    [
        b"",
        context_of("other", "", "checkpoint"),
        context_of("thread", "c", "heckpoint"),
    ],
)
def test_a_value_is_bound_to_its_place(elsewhere):
    ring = Keyring(NEW)
    with pytest.raises(SealError, match="belongs to another"):
        ring.unseal(*ring.seal("tp1", b"x", HERE), elsewhere)


def test_a_value_is_bound_to_its_tag():
    ring = Keyring(NEW)
    tag, sealed = ring.seal("bytes", b"x", HERE)
    with pytest.raises(SealError):
        ring.unseal(tag.replace("bytes", "tp1"), sealed, HERE)


@quick
@given(st.data())
def test_any_change_is_noticed(data):
    ring = Keyring(NEW, OLD)
    tag, sealed = ring.seal("tp1", b"plain words", HERE)
    place = data.draw(st.integers(0, len(sealed) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = bytearray(sealed)
    changed[place] ^= bit
    for bad in (bytes(changed), sealed[:place]):
        with pytest.raises(SealError) as caught:
            ring.unseal(tag, bad, HERE)
        assert "plain words" not in str(caught.value)


def test_equal_values_are_sealed_differently():
    ring = Keyring(NEW)
    assert 100 == len({ring.seal("tp1", b"x", HERE)[1] for _ in range(100)})


def test_a_new_key_seals_and_the_old_ones_still_open():
    before, after = Keyring(OLD), Keyring(NEW, OLD)
    sealed = before.seal("tp1", b"x", HERE)
    assert ("tp1", b"x") == after.unseal(*sealed, HERE)
    assert after.needs_rotation(*sealed)
    again = after.seal(*after.unseal(*sealed, HERE), HERE)
    assert not after.needs_rotation(*again)
    assert ("tp1", b"x") == Keyring(NEW).unseal(*again, HERE)


def test_a_missing_key_is_named_by_its_id():
    sealed = Keyring(OLD).seal("tp1", b"x", HERE)
    with pytest.raises(SealError, match=Key(OLD).id.hex()) as caught:
        Keyring(NEW, THIRD).unseal(*sealed, HERE)
    assert "retired" in caught.value.hint


def test_what_is_not_sealed_is_refused_unless_it_is_asked_for():
    with pytest.raises(SealError, match="not encrypted"):
        Keyring(NEW).unseal("tp1", b"x", HERE)
    ring = Keyring(NEW, accept_plain=True)
    assert ("tp1", b"x") == ring.unseal("tp1", b"x", HERE)
    assert ring.needs_rotation("tp1", b"x")


@pytest.mark.parametrize(
    "text",
    [
        NEW.hex(),
        base64.b64encode(NEW).decode(),
        base64.urlsafe_b64encode(NEW).decode().rstrip("="),
        f" {NEW.hex()} , {OLD.hex()}",
    ],
)
def test_keys_are_read_from_the_environment(monkeypatch, text):
    monkeypatch.setenv("TOWPATH_AES_KEY", text)
    sealed = Keyring.from_env().seal("tp1", b"x", HERE)
    assert ("tp1", b"x") == Keyring(NEW).unseal(*sealed, HERE)


@pytest.mark.parametrize("text", ["", "secret!", "ab" * 31, f"{NEW.hex()},", "zz" * 32])
def test_text_that_is_no_key_is_refused_without_showing_it(monkeypatch, text):
    monkeypatch.setenv("TOWPATH_AES_KEY", text)
    with pytest.raises(InvalidKeyError) as caught:
        Keyring.from_env()
    assert not text or text not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_keyring_shows_no_secret():
    shown = repr(Keyring(NEW)) + repr(Key(NEW))
    assert repr(NEW) not in shown
    assert NEW.hex() not in shown
    assert Key(NEW).id.hex() in shown


# Encrypting codecs


class Backwards(CipherProtocol):
    def encrypt(self, plaintext):
        return "back+wards", plaintext[::-1]

    def decrypt(self, ciphername, ciphertext):
        assert "back+wards" == ciphername
        return ciphertext[::-1]


def test_any_cipher_will_do():
    serde = EncryptedSerializer(Backwards())
    assert isinstance(serde, SerializerProtocol)
    tag, data = serde.dumps_typed({"a": (1,)})
    assert "tp1+back+wards" == tag
    assert {"a": (1,)} == serde.loads_typed((tag, data))


def test_what_was_stored_before_there_was_a_cipher_is_read():
    plain = JsonPlusSerializer().dumps_typed([1])
    assert [1] == EncryptedSerializer(Backwards()).loads_typed(plain)
    with pytest.raises(SealError):
        EncryptedSerializer(Backwards(), accept_plain=False).loads_typed(plain)


def test_a_cipher_that_fails_is_a_clean_error():
    with pytest.raises(SealError, match="not decrypted"):
        EncryptedSerializer(Backwards()).loads_typed(("tp1+other", b"x"))


def aes(**options):
    pytest.importorskip("Crypto")
    return EncryptedSerializer.from_pycryptodome_aes(**options)


@pytest.mark.parametrize("size", [16, 24, 32])
def test_pycryptodome_encrypts(size):
    serde = aes(key=b"k" * size)
    stored = serde.dumps_typed([1, "words"])
    assert "tp1+aes" == stored[0]
    assert b"words" not in stored[1]
    assert [1, "words"] == serde.loads_typed(stored)
    for other in (aes(key=b"x" * size), aes(key=b"k" * size, mode=11)):
        with pytest.raises(SealError):
            other.loads_typed(stored)


def test_pycryptodome_takes_its_key_from_the_environment(monkeypatch):
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "k" * 16)
    stored = aes().dumps_typed(7)
    assert 7 == aes(key=b"k" * 16).loads_typed(stored)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "k" * 15)
    with pytest.raises(InvalidKeyError):
        aes()
    monkeypatch.delenv("LANGGRAPH_AES_KEY")
    with pytest.raises(InvalidKeyError, match="not set"):
        aes()


def test_a_mode_that_does_not_authenticate_is_refused():
    with pytest.raises(ValueError, match="authenticates"):
        aes(key=b"k" * 16, mode=6)


def test_a_graph_may_keep_its_threads_encrypted():
    serde = EncryptedSerializer(Keyring(NEW), CompressedSerializer(over=10))
    saver = InMemorySaver(serde=serde)
    builder = StateGraph(dict)
    builder.add_node("say", lambda state: {"text": "secret " * 100})
    builder.add_edge("__start__", "say")
    graph = builder.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "1"}}
    graph.invoke({"text": ""}, thread)
    assert {"text": "secret " * 100} == graph.get_state(thread).values


# Compression


def test_large_values_are_compressed_and_small_ones_are_not():
    serde = CompressedSerializer()
    small, large, noise = (
        "x" * 4000,
        "x" * 40_000,
        Keyring(NEW).seal("", b"\0" * 9999, b"")[1],
    )
    for value, tag in ((small, "tp1"), (large, "tp1.zstd"), (noise, "bytes")):
        stored = serde.dumps_typed(value)
        assert tag == stored[0]
        assert value == serde.loads_typed(stored)
    assert len(serde.dumps_typed(large)[1]) < 100


def bomb(size, claimed=None):
    small = bytearray(zstandard.ZstdCompressor().compress(b"\x90" * size))
    if claimed is not None:
        assert (small[4] >> 6, small[4] & 0x20) == (2, 0x20)
        small[5:9] = claimed.to_bytes(4, "little")
    return "tp1.zstd", bytes(small)


@pytest.mark.parametrize(
    "stored",
    [
        bomb(1 << 24),
        bomb(1 << 20, claimed=100),
        bomb(1 << 20, claimed=(1 << 23) - 1),
        ("tp1.zstd", b""),
        ("tp1.zstd", b"nonsense"),
        ("tp1.zstd", bomb(1 << 20)[1][:-3]),
        ("tp1.zstd", zstandard.ZstdCompressor(write_content_size=False).compress(b"x")),
    ],
    ids=["large", "less", "more", "empty", "nonsense", "cut", "unsaid"],
)
def test_bytes_that_do_not_decompress_are_a_clean_error(stored):
    serde = CompressedSerializer(limit=1 << 23)
    tracemalloc.start()
    try:
        with pytest.raises(DeserializationError):
            serde.loads_typed(stored)
        assert tracemalloc.get_traced_memory()[1] < 5 << 20
    finally:
        tracemalloc.stop()


def test_a_value_beyond_the_limit_is_stored_so_that_it_can_be_read():
    serde = CompressedSerializer(limit=10_000)
    stored = serde.dumps_typed("x" * 20_000)
    assert "tp1" == stored[0]
    assert "x" * 20_000 == serde.loads_typed(stored)


@pytest.mark.parametrize(
    ("stored", "word"),
    [
        (CompressedSerializer().dumps_typed("x" * 9999), "CompressedSerializer"),
        (EncryptedSerializer(Keyring(NEW)).dumps_typed(1), "keyring"),
    ],
)
def test_a_codec_that_lacks_a_layer_says_which(stored, word):
    with pytest.raises(DeserializationError) as caught:
        JsonPlusSerializer().loads_typed(stored)
    assert word in caught.value.hint


@pytest.mark.parametrize(
    ("made", "package", "extra"),
    [
        ("compressed import CompressedSerializer as C; C()", "zstandard", "[zstd]"),
        ("keyring import Keyring; Keyring(b'k' * 32)", "cryptography", "[crypto]"),
        (
            "encrypted import EncryptedSerializer as E; E.from_pycryptodome_aes(key=0)",
            "Crypto",
            "pycryptodome",
        ),
    ],
)
def test_what_is_not_installed_is_named(made, package, extra, printed_apart):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"try:\n    from towpath.checkpoint.serde.{made}\n"
        "except ImportError as error:\n    print(error)\n"
    )
    printed = printed_apart(program)
    assert "pip install" in printed
    assert extra in printed
