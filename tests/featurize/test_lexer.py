"""Tokens, and the skips that must be linear."""

import time

import pytest

from irgauge.featurize.lexer import Unreadable, balanced_end, dialect_body_end, resource_end, string_end, tokens


def words(text):
    return [token for _, token in tokens(text)]


def test_tokens_of_an_operation():
    assert words("%r:2 = foo.bar %a#1, @f::@\"x y\" : (!a.b<c // d>, i32) -> f32 // end") == [
        "%r", ":", "2", "=", "foo.bar", "%a#1", ",", "@f", "::", '@"x y"', ":", "(", "!a.b", "<c // d>", ",", "i32",
        ")", "->", "f32",
    ]  # fmt: skip


def test_a_value_of_digits_ends_with_them():
    assert words("%5x %i-1 %0#2") == ["%5", "x", "%i-1", "%0#2"]


@pytest.mark.parametrize("text", ["`x`", "a ; b", "$T", "a & b", "\x00"])
def test_characters_that_mlir_does_not_have(text):
    with pytest.raises(Unreadable, match="unexpected character"):
        words(text)


@pytest.mark.parametrize(
    ("text", "end"), [('"abc" x', 5), (r'"a\"b" x', 6), (r'"a\\" x', 5), ('"//{" x', 5), ('"" x', 2)]
)
def test_string_end(text, end):
    assert string_end(text, 0) == end


@pytest.mark.parametrize("text", ['"abc', '"abc\ndef"', '"abc\\"', '"a\\'])
def test_string_without_end(text):
    with pytest.raises(Unreadable, match="string"):
        string_end(text, 0)


def test_dialect_bodies_are_raw():
    assert dialect_body_end("<a // b> c", 0) == 8
    assert dialect_body_end('<(d0) -> "}>"> c', 0) == 14
    with pytest.raises(Unreadable, match="unbalanced"):
        dialect_body_end("<(>)>", 0)


def test_balanced_skips_strings_comments_and_comparisons():
    assert balanced_end("(a, // )\n b) c", 0) == 12
    assert balanced_end('{x = "}"} c', 0) == 9
    assert balanced_end("<(d0) : (d0 - 1 >= 0, d0 <= 4)> c", 0) == 31
    with pytest.raises(Unreadable, match="unbalanced"):
        balanced_end("(]", 0)
    with pytest.raises(Unreadable, match="ends before"):
        balanced_end("((a)", 0)


def test_resource_sections_hide_their_end_in_strings():
    text = '{-# a: "#-}" #-} c'
    assert resource_end(text, 0) == len(text) - 2


@pytest.mark.parametrize("make", [lambda n: '"' + "a" * n + '"', lambda n: '"' + r"\"" * n + '"'])
def test_strings_are_skipped_in_linear_time(make):
    start = time.perf_counter()
    text = make(2_000_000)
    assert string_end(text, 0) == len(text)
    assert time.perf_counter() - start < 2
