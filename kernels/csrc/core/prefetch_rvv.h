// Asking for a weight's cache lines before they are needed, where it streams by once.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// How far ahead: 16 lines of 64 bytes. One core of a K1 reads 2.6 GB/s at best, a line in about 40
// cycles, and memory answers after a few hundred.
constexpr int64_t kPrefetchBytes = 1024;

// prefetch.r of Zicbop, for the line `kPrefetchBytes` behind `address`, whatever is there. It is a
// hint, an ORI into x0: what has no Zicbop executes it as nothing, so that nothing is to be found
// out about the machine first. Files that use it are compiled with Zicbop; without, nothing is
// emitted.
inline __attribute__((always_inline)) void prefetch_ahead(const void* address) {
  __builtin_prefetch(static_cast<const char*>(address) + kPrefetchBytes);
}

// The same, where it is written: compilers move the other one among the loads around it.
inline __attribute__((always_inline)) void prefetch_ahead_here(const void* address) {
#if defined(__riscv_zicbop)
  asm volatile("prefetch.r %1(%0)" ::"r"(address), "i"(kPrefetchBytes));
#endif
}

}  // namespace sgl_rvv
