// Arithmetic that rounds to nearest, ties to even, whatever mode the caller has in force.
#pragma once

#include <cfenv>

namespace sgl_rvv {

// Sets the mode of scalar and vector instructions for its lifetime. What it guards must be in a
// function of its own that is not inlined: compilers move arithmetic across changes of the mode.
class RoundToNearest {
 public:
  RoundToNearest() : before_(std::fegetround()) { std::fesetround(FE_TONEAREST); }
  RoundToNearest(const RoundToNearest&) = delete;
  RoundToNearest& operator=(const RoundToNearest&) = delete;
  ~RoundToNearest() { std::fesetround(before_); }

 private:
  int before_;
};

}  // namespace sgl_rvv
