"""What is not text, bytes or a path: how it is printed, how it is refused. test_bindings.py has the real libraries."""

from __future__ import annotations

import re

import pytest

from irgauge import ReadError
from irgauge.featurize import read

TEXT = "func.func @f() {\n  return\n}\n"


def names(source):
    return [op.name for op in read(source).walk()]


class Operation:
    """What MLIR's Python bindings show of an operation; as in bindings that know one limit only."""

    def get_asm(self, large_elements_limit=None):
        return TEXT if large_elements_limit else "not asked with a limit"


class Module:
    operation = Operation()


class Exported:
    def mlir_module(self):
        return TEXT


class Output:
    mlir_module = Module()


class Lowered:
    def compiler_ir(self):
        return Module()


class Printed:
    def __init__(self, text):
        self.text = text

    def __str__(self):
        return self.text


@pytest.mark.parametrize("source", [Operation(), Module(), Exported(), Output(), Lowered(), Printed(TEXT)])
def test_objects_are_printed_by_their_own_means(source):
    assert names(source) == ["builtin.module", "func.func", "func.return"]


@pytest.mark.parametrize("source", [None, 42, float("nan"), [TEXT], {}, {"k": TEXT}, object(), print, int])
def test_an_object_that_is_not_mlir_is_named_by_its_type(source):
    with pytest.raises(
        ReadError, match=rf"^<text>: '{type(source).__name__}' object is not MLIR: it prints as '"
    ) as error:
        read(source)
    assert str(source)[:20] in str(error.value)


def test_an_empty_print_is_not_an_empty_program():
    with pytest.raises(ReadError, match=r"Printed' object is not MLIR: it prints as ''$"):
        read(Printed(" \n"))


def test_an_object_that_cannot_be_printed_says_why():
    class Erased:
        def get_asm(self, **_):
            raise RuntimeError("the operation has been invalidated\nmore")

    with pytest.raises(ReadError, match=r"Erased' object cannot be printed: the operation has been invalidated$"):
        read(Erased())


def test_a_print_that_cannot_be_read_says_where():
    with pytest.raises(
        ReadError, match=r"^x:2:7: what a '.*Printed' object prints cannot be read: .*'%a'.*never defined"
    ):
        read(Printed('"a.b"() : () -> ()\n"a.b"(%a) : (i32) -> ()'), path="x")


def test_a_function_that_can_be_lowered_says_so():
    class Jitted(Printed):
        def lower(self):
            return Lowered()

    with pytest.raises(ReadError, match=re.escape("Lower it first: pass what its .lower(...) returns.")):
        read(Jitted("<PjitFunction>"))
