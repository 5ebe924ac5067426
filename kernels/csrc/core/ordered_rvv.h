// Instructions that stay in the order in which they are written, for loops that an in-order core
// should meet in that order and no other: compilers keep volatile assembly in order, and allocate
// its registers. Groups of two and of four registers of 32-bit lanes; begin2() and begin4() set the
// vector type, end() says that it is over. Between them there must be no vector intrinsic and no
// copy of a vector, which might come with another type.
//
// What such a core wants (SpacemiT X60 as llvm-mca models it): results are written in the order of
// the instructions, so that a short instruction behind a long one waits. A multiply-add takes 5
// cycles and its unit for 2 (two registers) or 4 (four); an integer operation takes 4 or 8; a load
// of a scalar 4, a scalar addition 1. So long integer operations stand right behind a multiply-add,
// loads of scalars after those, scalar additions last, and right before a multiply-add.
#pragma once

#include <riscv_vector.h>

#include <cstddef>
#include <cstdint>

namespace sgl_rvv::ordered {

inline __attribute__((always_inline)) void begin2(size_t vl) {
  asm volatile("vsetvli zero, %0, e32, m2, ta, ma" ::"r"(vl) : "vl", "vtype", "memory");
}

inline __attribute__((always_inline)) void begin4(size_t vl) {
  asm volatile("vsetvli zero, %0, e32, m4, ta, ma" ::"r"(vl) : "vl", "vtype", "memory");
}

inline __attribute__((always_inline)) void end() {
  asm volatile("" ::: "vl", "vtype", "memory");
}

// The number `Index` behind `from`.
template <int Index>
inline __attribute__((always_inline)) void load(float& to, const float* from) {
  asm volatile("flw %0, %1(%2)" : "=f"(to) : "I"(Index * 4), "r"(from));
}

template <int Index>
inline __attribute__((always_inline)) void load(const void*& to, const void* const* from) {
  asm volatile("ld %0, %1(%2)" : "=r"(to) : "I"(Index * 8), "r"(from));
}

template <int Bytes, class T>
inline __attribute__((always_inline)) void advance(T*& pointer) {
  asm volatile("addi %0, %0, %1" : "+r"(pointer) : "I"(Bytes));
}

inline __attribute__((always_inline)) void advance_by(const void*& pointer, int64_t bytes) {
  asm volatile("add %0, %0, %1" : "+r"(pointer) : "r"(bytes));
}

template <class Float>
inline __attribute__((always_inline)) void zero(Float& to) {
  asm volatile("vmv.v.i %0, 0" : "=vr"(to));
}

// sum += left * right.
template <class Float>
inline __attribute__((always_inline)) void multiply_add(Float& sum, float left,
                                                        const Float& right) {
  asm volatile("vfmacc.vf %0, %1, %2" : "+vr"(sum) : "f"(left), "vr"(right));
}

template <class Float>
inline __attribute__((always_inline)) void subtract(Float& from, float what) {
  asm volatile("vfsub.vf %0, %0, %1" : "+vr"(from) : "f"(what));
}

// Integers as FP32: out of place, and in place.
template <class Float>
inline __attribute__((always_inline)) void convert(Float& to, const Float& from) {
  asm volatile("vfcvt.f.x.v %0, %1" : "=vr"(to) : "vr"(from));
}

template <class Float>
inline __attribute__((always_inline)) void convert(Float& lanes) {
  asm volatile("vfcvt.f.x.v %0, %0" : "+vr"(lanes));
}

// Integer instructions on lanes of which all those in `all` count, see all_lanes_rvv.h.
template <int Bits, class Lanes, class Mask>
inline __attribute__((always_inline)) void shift_left(Lanes& to, const Lanes& from, Mask all) {
  asm volatile("vsll.vi %0, %1, %2, %3.t" : "=vd"(to) : "vr"(from), "I"(Bits), "vm"(all));
}

template <class Lanes, class Mask>
inline __attribute__((always_inline)) void keep(Lanes& to, const Lanes& from, uint32_t bits,
                                                Mask all) {
  asm volatile("vand.vx %0, %1, %2, %3.t" : "=vd"(to) : "vr"(from), "r"(bits), "vm"(all));
}

template <class Lanes, class Mask>
inline __attribute__((always_inline)) void add_to(Lanes& lanes, uint32_t what, Mask all) {
  asm volatile("vadd.vx %0, %0, %1, %2.t" : "+vd"(lanes) : "r"(what), "vm"(all));
}

// A 32-bit lane from each of `base` + `offsets` bytes.
inline __attribute__((always_inline)) void gather(vfloat32m2_t& to, const void* base,
                                                  const vuint64m4_t& offsets) {
  asm volatile("vluxei64.v %0, (%1), %2" : "=&vr"(to) : "r"(base), "vr"(offsets));
}

// As many bytes as there are lanes.
inline __attribute__((always_inline)) void load_bytes(vint8m1_t& to, const void* from) {
  asm volatile("vle8.v %0, (%1)" : "=vr"(to) : "r"(from));
}

inline __attribute__((always_inline)) void sign_extend(vfloat32m4_t& to, const vint8m1_t& from) {
  asm volatile("vsext.vf4 %0, %1" : "=&vr"(to) : "vr"(from));
}

}  // namespace sgl_rvv::ordered
