#include "row_operands.h"

#include <cmath>
#include <cstring>

namespace sgl_rvv::tests {

namespace {
constexpr unsigned char kGap = 0x5b;
}

int64_t bytes_of(Type type) {
  return type == Type::kFp32 ? 4 : 2;
}

double round_to(Type type, double value) {
  if (type == Type::kFp32) return static_cast<double>(static_cast<float>(value));
  const Format& format = format_of(type);
  return format.value(format.round(value));
}

RowOperand::RowOperand(Type type, int64_t rows, int64_t columns, int64_t gap, Fence fence)
    : type_(type),
      rows_(rows),
      columns_(columns),
      gap_(gap),
      memory_(static_cast<size_t>(((rows - 1) * (columns + gap) + columns) * bytes_of(type)),
              fence) {
  std::memset(memory_.data(), kGap, memory_.size());
}

unsigned char* RowOperand::at(int64_t row, int64_t column) const {
  return memory_.data() + (row * stride() + column) * bytes_of(type_);
}

void RowOperand::set(int64_t row, int64_t column, double value) {
  if (type_ == Type::kFp32) {
    const auto single = static_cast<float>(value);
    std::memcpy(at(row, column), &single, sizeof single);
  } else {
    const uint16_t bits = format_of(type_).round(value);
    std::memcpy(at(row, column), &bits, sizeof bits);
  }
}

double RowOperand::get(int64_t row, int64_t column) const {
  if (type_ == Type::kFp32) {
    float single;
    std::memcpy(&single, at(row, column), sizeof single);
    return static_cast<double>(single);
  }
  uint16_t bits;
  std::memcpy(&bits, at(row, column), sizeof bits);
  return format_of(type_).value(bits);
}

void RowOperand::fill(Random& random, double scale) {
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t column = 0; column < columns_; ++column) {
      set(row, column, scale * static_cast<double>(random.value()));
    }
  }
}

bool RowOperand::intact() const {
  for (int64_t row = 0; row + 1 < rows_; ++row) {
    for (const unsigned char* byte = at(row, columns_); byte < at(row + 1, 0); ++byte) {
      if (*byte != kGap) return false;
    }
  }
  return memory_.intact();
}

std::vector<unsigned char> RowOperand::bytes() const {
  std::vector<unsigned char> all;
  for (int64_t row = 0; row < rows_; ++row) all.insert(all.end(), at(row, 0), at(row, columns_));
  return all;
}

void expect_within(Type type, double got, double exact, double error, const std::string& what) {
  const double lowest = round_to(type, exact - error);
  const double highest = round_to(type, exact + error);
  if (!(got >= lowest && got <= highest)) {
    fail(what + ": got " + std::to_string(got) + ", not within " + std::to_string(lowest) +
         " and " + std::to_string(highest));
  }
}

}  // namespace sgl_rvv::tests
