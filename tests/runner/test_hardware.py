import platform

from rvvbench.runner import hardware


def test_bits_of_the_kernel_become_names():
    isa = hardware.extensions(1 << 2 | 1 << 30 | 1 << 27)
    assert [name for name, present in isa.items() if present] == ["v", "zfh", "zvfh"]


def test_no_two_extensions_share_a_bit():
    assert len(set(hardware.EXTENSION_BITS.values())) == len(hardware.EXTENSION_BITS)


def test_the_two_instructions_are_csrr_a0_vlenb_and_ret():
    read, back = (int.from_bytes(hardware.READ_VLENB[at : at + 4], "little") for at in (0, 4))
    csr, rs1, funct3, rd, opcode = read >> 20, read >> 15 & 31, read >> 12 & 7, read >> 7 & 31, read & 127
    assert (csr, rs1, funct3, rd, opcode) == (0xC22, 0, 0b010, 10, 0b1110011)
    assert back == 0x00008067


def test_another_processor_has_neither_and_a_reason():
    if platform.machine() == "riscv64":
        return
    found = hardware.probe()
    assert (found.isa, found.vlen_bits) == (None, None)
    assert platform.machine() in found.isa_source
