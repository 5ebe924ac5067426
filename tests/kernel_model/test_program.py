"""Reading llvm-objdump, vector types and memory accesses from their text."""

from __future__ import annotations

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.memory_access import Access, access
from rvvbench.kernel_model.program import Instruction, Program, assembler_text
from rvvbench.kernel_model.vector_type import VectorType, uses_vector_type, vector_type_of
from tests.kernel_model.small_program import PROGRAM

E32M2 = VectorType(32, "m2")


@pytest.mark.parametrize(
    ("disassembled", "assembled"),
    [
        ("bnez\ta5, 0x2004 <kernel+0x4>", "bnez a5, 8"),
        ("bltu\ta4, t0, 0x48320 <_ZN7sgl_rvv28f<int>E+0x108>", "bltu a4, t0, 8"),
        ("jal\tra, 0x8b892 <strcmp>", "jal ra, 8"),
        ("j\t0x48258 <a>", "j 8"),
        ("ld\ta0, 0x8(s2)", "ld a0, 0x8(s2)"),
        ("auipc\ta1, 0xfffca", "auipc a1, 0xfffca"),
        ("lui\ta0, 0x12 # comment", "lui a0, 0x12"),
        ("ret", "ret"),
    ],
)
def test_an_instruction_is_what_an_assembler_takes(disassembled: str, assembled: str) -> None:
    assert assembler_text(disassembled) == assembled


def test_addresses_are_in_the_function_that_begins_before_them() -> None:
    assert PROGRAM.function_at(0x200E) == "_ZN7sgl_rvv6kernelEv"
    assert PROGRAM.function_at(0x0FFF) == ""
    assert PROGRAM.address_of("rvvbench_mark") == 0x1000


def test_a_span_has_every_instruction_and_refuses_holes() -> None:
    assert [i.mnemonic for i in PROGRAM.span(0x2008, 0x2010)] == ["vfmacc.vf", "addi", "bnez", "ret"]
    with pytest.raises(RvvbenchError, match="0x2012"):
        PROGRAM.span(0x2010, 0x2014)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vsetvli zero, s8, e32, m2, ta, ma", VectorType(32, "m2")),
        ("vsetivli a6, 0x10, e16, mf2, tu, mu", VectorType(16, "mf2", 16)),
        ("vsetivli zero, 8, e8, m8, ta, ma", VectorType(8, "m8", 8)),
        ("vsetvl a0, a1, a2", None),
    ],
)
def test_vsetvli_says_its_type(text: str, kind: VectorType | None) -> None:
    assert vector_type_of(text) == kind
    assert not uses_vector_type(text)


@pytest.mark.parametrize(
    ("kind", "elements"),
    [(E32M2, 16), (VectorType(8, "m8"), 256), (VectorType(16, "mf2"), 8), (VectorType(32, "m2", 3), 3)],
)
def test_elements_at_vlen_256(kind: VectorType, elements: int) -> None:
    assert kind.elements(256) == elements


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("vle32.v v0, (a1)", Access(64, 0)),
        ("vle16.v v0, (a1)", Access(32, 0)),
        ("vse32.v v0, (a1), v0.t", Access(0, 64)),
        ("vlse32.v v0, (a1), a2", Access(64, 0)),
        ("vluxei16.v v0, (a1), v4", Access(64, 0)),
        ("vlseg2e32.v v0, (a1)", Access(128, 0)),
        ("vl2re32.v v0, (a1)", Access(64, 0)),
        ("vs4r.v v0, (a1)", Access(0, 128)),
        ("vlm.v v0, (a1)", Access(2, 0)),
        ("flw fa5, 0x0(s1)", Access(4, 0)),
        ("fsd fs0, 0x0(sp)", Access(0, 8)),
        ("ldsp s0, 8(sp)", Access(8, 0)),
        ("lhu a0, 0(a1)", Access(2, 0)),
        ("sb a0, 0(a1)", Access(0, 1)),
        ("sll a0, a0, a1", Access(0, 0)),
        ("lui a0, 0x1", Access(0, 0)),
        ("vfmacc.vf v8, fa1, v10", Access(0, 0)),
        ("vslideup.vi v8, v4, 1", Access(0, 0)),
    ],
)
def test_bytes_that_an_instruction_moves_at_vlen_256(text: str, moved: Access) -> None:
    assert access(text, E32M2, 256) == moved


def test_a_program_is_the_same_where_a_library_was_loaded() -> None:
    program = Program({8: Instruction(8, 2, "ret"), 16: Instruction(16, 4, "nop")}, [8, 16], ["first", "second"])
    there = program.moved(0x1000)
    assert [one.address for one in there.span(0x1008, 0x1008)] == [0x1008]
    assert (there.function_at(0x1010), there.function_at(0x1007), there.address_of("second")) == ("second", "", 0x1010)
    assert program.function_at(8) == "first"
