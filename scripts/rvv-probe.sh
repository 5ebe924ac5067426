#!/usr/bin/env bash
# Write to stdout a riscv64 program of five instructions that shows what only running shows: that RVV 1.0 and zvfh work.
# It ends with VLEN in bytes as its exit code (32 is VLEN 256), or dies of an illegal instruction.
# The harness has the same program in rvvbench/engine/binfmt.py; a test compares the bytes.
set -euo pipefail

# ELF header: 64 bits, little endian, executable (2), machine RISC-V (0xf3), entry at 0x10078, one program header at 0x40.
printf '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00'
printf '\x02\x00\xf3\x00\x01\x00\x00\x00'
printf '\x78\x00\x01\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
printf '\x05\x00\x00\x00\x40\x00\x38\x00\x01\x00\x00\x00\x00\x00\x00\x00'
# Program header: load (1), readable and executable (5), the whole file of 140 bytes at 0x10000.
printf '\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
printf '\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00'
printf '\x8c\x00\x00\x00\x00\x00\x00\x00\x8c\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00'
printf '\xd7\x72\x80\x0c' # vsetvli t0, zero, e16, m1, ta, ma
printf '\x57\x14\x84\x02' # vfadd.vv v8, v8, v8            half precision: needs zvfh
printf '\x57\x75\x00\x0c' # vsetvli a0, zero, e8, m1, ta, ma   the number of bytes in a register
printf '\x93\x08\xd0\x05' # li a7, 93                      exit
printf '\x73\x00\x00\x00' # ecall
