// Calls a kernel that TorchInductor generated between marks, as model_driver does for ours.
//
//   NAME CALLS TYPE,TYPE,...:ELEMENTS     mark, CALLS calls, mark, 2 * CALLS calls, mark
//
// One line of JSON: {"case"}. Types are those of the kernel's pointers, bf16 or fp32; every
// one points to ELEMENTS numbers around 0.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" __attribute__((noinline)) void rvvbench_mark() {
  asm volatile("" ::: "memory");
}

namespace {

constexpr int kMost = 8;

// A kernel takes up to eight pointers, all in registers; what it does not take it does not see.
using Kernel = void (*)(void*, void*, void*, void*, void*, void*, void*, void*);

std::vector<char> numbers(const std::string& type, size_t count) {
  std::vector<char> bytes(count * (type == "bf16" ? 2 : 4) + 64);
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-29f;  // from -4 to 4
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (type == "bf16") {
      const auto upper = static_cast<uint16_t>(bits >> 16);
      std::memcpy(&bytes[2 * i], &upper, sizeof upper);
    } else {
      std::memcpy(&bytes[4 * i], &bits, sizeof bits);
    }
  }
  return bytes;
}

}  // namespace

extern "C" void kernel();

int main(int argc, char** argv) {
  const char* colon = argc == 3 ? std::strchr(argv[2], ':') : nullptr;
  if (colon == nullptr) {
    std::fprintf(stderr, "usage: CALLS TYPE,TYPE,...:ELEMENTS\n");
    return 2;
  }
  const int64_t calls = std::atoll(argv[1]);
  const auto elements = static_cast<size_t>(std::atoll(colon + 1));
  std::vector<std::vector<char>> buffers;
  void* at[kMost] = {};
  for (const char* name = argv[2]; name < colon && buffers.size() < kMost; name += 5) {
    buffers.push_back(numbers(std::string(name, 4), elements));
    at[buffers.size() - 1] = buffers.back().data();
  }
  const auto call = [&] {
    reinterpret_cast<Kernel>(kernel)(at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]);
  };
  call();
  rvvbench_mark();
  for (int64_t i = 0; i < calls; ++i) call();
  rvvbench_mark();
  for (int64_t i = 0; i < 2 * calls; ++i) call();
  rvvbench_mark();
  std::printf("{\"case\": \"%s\"}\n", argv[2]);
}
