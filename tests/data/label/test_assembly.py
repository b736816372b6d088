"""What is read off assembly text, on text whose answers are known."""

from __future__ import annotations

import pytest

from irgauge.data.label.assembly import (
    deepest_block,
    hottest_block,
    parse_function,
    registers_used,
    spills_and_reloads,
)
from irgauge.data.targets import NEOVERSE, X86
from irgauge.errors import LabelError

ARM = """
	.text
	.globl	kernel
	.type	kernel,@function
kernel:                                 // @kernel
// %bb.0:
	stp	x29, x30, [sp, #-48]!           // 16-byte Folded Spill
	str	d8, [sp, #16]                   // 8-byte Folded Spill
	stp	x20, x19, [sp, #32]             // 16-byte Folded Spill
	adrp	x8, x21
	ldr	q0, [x8, :lo12:x21]
	mov	x20, x0
	str	x20, [sp, #24]                  // 8-byte Folded Spill
	mov	w9, #5                          // =0x5
.LBB0_1:                                // =>This Loop Header: Depth=1
                                        //     Child Loop BB0_2 Depth 2
	mov	x10, xzr
.LBB0_2:                                //   Parent Loop BB0_1 Depth=1
                                        // =>  This Inner Loop Header: Depth=2
	ld1w	{ z1.s }, p0/z, [x1, x10, lsl #2]
	fmla	v2.4s, v0.4s, v1.4s
	add	x10, x10, #4
	cmp	x10, #64
	b.ne	.LBB0_2
// %bb.3:                               //   in Loop: Header=BB0_1 Depth=1
	subs	w9, w9, #1
	b.eq	.LBB0_5
// %bb.4:                               //   in Loop: Header=BB0_1 Depth=1
	mov	x11, x12
	mov	x12, x11
	mov	x11, x12
	b	.LBB0_1
.LBB0_5:
	ldr	x20, [sp, #24]                  // 8-byte Folded Reload
	str	q2, [x20]
	ldp	x20, x19, [sp, #32]             // 16-byte Folded Reload
	ldr	d8, [sp, #16]                   // 8-byte Folded Reload
	ldp	x29, x30, [sp], #48             // 16-byte Folded Reload
	ret
.Lfunc_end0:
	.size	kernel, .Lfunc_end0-kernel
"""


def test_instructions_blocks_and_loops_of_aarch64() -> None:
    function = parse_function(ARM, "kernel", NEOVERSE)
    assert len(function.instructions) == 26
    assert [len(block) for block in function.blocks()] == [8, 1, 5, 2, 4, 6]
    assert [block[0].loop_depth for block in function.blocks()] == [0, 1, 2, 1, 1, 0]


def test_registers_of_aarch64_are_counted_by_number() -> None:
    """x and w are one, v, q, d and z too; sp, xzr, the condition and a symbol called x21 are none."""
    general, vectors = registers_used(parse_function(ARM, "kernel", NEOVERSE), NEOVERSE)
    assert general == len({0, 1, 8, 9, 10, 11, 12, 19, 20, 29, 30})
    assert vectors == len({0, 1, 2, 8})


def test_saving_the_callers_registers_is_no_spill() -> None:
    """x20 is spilled once more, with a value of its own, and comes back from there."""
    assert spills_and_reloads(parse_function(ARM, "kernel", NEOVERSE), NEOVERSE) == (1, 1)


def test_the_deepest_block_is_taken_where_nothing_ran() -> None:
    block = deepest_block(parse_function(ARM, "kernel", NEOVERSE))
    assert block[0].text.startswith("ld1w")


X86_TEXT = """
kernel:                                 # @kernel
# %bb.0:
	pushq	%rbx
	movq	%rdi, -8(%rsp)                  # 8-byte Spill
.LBB0_1:                                # =>This Inner Loop Header: Depth=1
	vaddps	(%rax), %ymm1, %ymm0
	jne	.LBB0_1
# %bb.2:
	addq	-8(%rsp), %rbx                  # 8-byte Folded Reload
	popq	%rbx
	retq
.Lfunc_end0:
"""


def test_the_hottest_block_is_what_executed_most() -> None:
    function = parse_function(X86_TEXT, "kernel")
    assert spills_and_reloads(function, X86) == (1, 1)
    lines = {i.text.split()[0]: i.line for i in function.instructions}
    assert hottest_block(function, {lines["vaddps"]: 9, lines["jne"]: 9, lines["addq"]: 1})[0].text.startswith("vaddps")
    assert hottest_block(function, {lines["addq"]: 30})[0].text.startswith("addq")


def test_a_function_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LabelError, match="no instructions of other"):
        parse_function(ARM, "other", NEOVERSE)
