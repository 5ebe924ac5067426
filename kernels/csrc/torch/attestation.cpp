#include "torch/attestation.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/packed_layout.h"
#include "core/registry.h"

#define SGL_EXPORT __attribute__((visibility("default")))

namespace sgl_rvv {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, std::map<std::string, int64_t>> calls;  // op, kernel
};

Counters& counters() {
  static Counters instance;
  return instance;
}

size_t write_text(const std::string& text, char* buffer, size_t size) {
  if (buffer != nullptr && size > 0) {
    const size_t written = text.size() < size ? text.size() : size - 1;
    std::memcpy(buffer, text.data(), written);
    buffer[written] = '\0';
  }
  return text.size();
}

// Names are identifiers: nothing in them needs escaping.
std::string quoted(const std::string& name) {
  return '"' + name + '"';
}

std::string boolean(bool value) {
  return value ? "true" : "false";
}

std::string describe(const Kernel& kernel) {
  std::string text = "{";
  text += "\"name\": " + quoted(kernel.name);
  text += ", \"operation\": " + quoted(name_of(kernel.operation()));
  text += ", \"left\": " + quoted(name_of(kernel.left));
  text += ", \"right\": " + quoted(name_of(kernel.right));
  text += ", \"output\": " + quoted(name_of(kernel.output));
  text += ", \"rows\": " + std::to_string(kernel.tile.rows);
  text += ", \"columns\": " + std::to_string(kernel.tile.columns);
  text += ", \"technique\": " + quoted(name_of(kernel.technique));
  text += ", \"requirement\": " + quoted(name_of_extensions(kernel.needs));
  text += ", \"available\": " + boolean(cpu_features().has(kernel.needs));
  return text + "}";
}

}  // namespace

void count_call(const char* op, const char* kernel) {
  Counters& all = counters();
  const std::lock_guard<std::mutex> lock(all.mutex);
  ++all.calls[op][kernel];
}

}  // namespace sgl_rvv

SGL_EXPORT size_t sgl_kernel_attestation_json(char* buffer, size_t size) {
  using sgl_rvv::quoted;
  sgl_rvv::Counters& all = sgl_rvv::counters();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::string text = "{";
  for (const auto& [op, by_kernel] : all.calls) {
    text += (text.size() > 1 ? ", " : "") + quoted(op) + ": {";
    const char* separator = "";
    for (const auto& [kernel, calls] : by_kernel) {
      text += separator + quoted(kernel) + ": " + std::to_string(calls);
      separator = ", ";
    }
    text += "}";
  }
  return sgl_rvv::write_text(text + "}", buffer, size);
}

SGL_EXPORT void sgl_kernel_reset_attestation() {
  sgl_rvv::Counters& all = sgl_rvv::counters();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.calls.clear();
}

SGL_EXPORT size_t sgl_kernel_describe_json(char* buffer, size_t size) {
  const sgl_rvv::CpuFeatures& cpu = sgl_rvv::cpu_features();
  std::string text = "{\"layout_version\": " + std::to_string(sgl_rvv::kPackedLayoutVersion);
  text += ", \"rvv\": " + sgl_rvv::boolean(cpu.has(sgl_rvv::kRvv));
  text += ", \"zvfh\": " + sgl_rvv::boolean(cpu.has(sgl_rvv::kRvvZvfh));
  text += ", \"vlen_bits\": " + std::to_string(cpu.vlen_bits) + ", \"kernels\": [";
  const char* separator = "";
  for (const sgl_rvv::Kernel& kernel : sgl_rvv::kernels()) {
    text += separator + sgl_rvv::describe(kernel);
    separator = ", ";
  }
  return sgl_rvv::write_text(text + "]}", buffer, size);
}
