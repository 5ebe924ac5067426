#include "torch/overlap.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace sgl_rvv {
namespace {

using at::Tensor;

struct Dimension {
  int64_t stride;  // bytes
  int64_t size;
};

// The dimensions in which a tensor has several places in memory, nearest first.
std::vector<Dimension> dimensions_of(const Tensor& tensor) {
  std::vector<Dimension> found;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) > 1 && tensor.stride(dim) != 0) {
      found.push_back({tensor.stride(dim) * tensor.element_size(), tensor.size(dim)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  return found;
}

// A tensor as blocks of `bytes` without holes, whose distances are multiples of `measure` (0: one
// block), from `begin` to `end`.
struct Blocks {
  intptr_t begin;
  intptr_t end;
  int64_t bytes;
  int64_t measure = 0;

  explicit Blocks(const Tensor& tensor)
      : begin(reinterpret_cast<intptr_t>(tensor.const_data_ptr())),
        end(begin + tensor.element_size()),
        bytes(tensor.element_size()) {
    for (const Dimension& dimension : dimensions_of(tensor)) {
      const int64_t reach = (dimension.size - 1) * dimension.stride;
      end += reach;
      if (measure == 0 && dimension.stride <= bytes) {
        bytes += reach;
      } else {
        measure = std::gcd(measure, dimension.stride);
      }
    }
  }
};

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const Blocks one(a), other(b);
  if (one.end <= other.begin || other.end <= one.begin) return false;
  const int64_t measure = std::gcd(one.measure, other.measure);
  if (measure == 0) return true;
  const int64_t between = ((other.begin - one.begin) % measure + measure) % measure;
  return between < one.bytes || between + other.bytes > measure;
}

bool may_overlap_itself(const Tensor& tensor) {
  if (tensor.numel() == 0) return false;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) > 1 && tensor.stride(dim) == 0) return true;
  }
  int64_t extent = tensor.element_size();
  for (const Dimension& dimension : dimensions_of(tensor)) {
    if (dimension.stride < extent) return true;
    extent += (dimension.size - 1) * dimension.stride;
  }
  return false;
}

}  // namespace

void check_no_self_overlap(const char* op, const char* name, const Tensor& written) {
  TORCH_CHECK_VALUE(!may_overlap_itself(written), op, ": ", name,
                    " must not overlap itself, but has shape ", written.sizes(), " and strides ",
                    written.strides());
}

void check_no_overlap(const char* op, const char* name, const Tensor& written,
                      const char* other_name, const Tensor& other) {
  TORCH_CHECK_VALUE(!may_overlap(written, other), op, ": ", name, " must not overlap ", other_name);
}

}  // namespace sgl_rvv
