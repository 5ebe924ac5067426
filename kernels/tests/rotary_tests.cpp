// Every rotary embedding of the registry against float64, and to the last bit against the other
// kernels of its type. A result is a product and a fused multiply-add: within gamma(2) of the sum
// of magnitudes, and within 2^-133 where BF16 loses places.

#include <cmath>
#include <string>
#include <vector>

#include "harness.h"
#include "row_operands.h"

namespace sgl_rvv::tests {

void test_rotary_embedding();

namespace {

struct RotaryProblem {
  bool neox;
  int64_t tokens, heads, kv_heads, head, rotary;
  bool float_cache;
};

std::string describe(const RotaryProblem& p) {
  return std::string(p.neox ? "neox " : "interleaved ") + std::to_string(p.tokens) + " x " +
         std::to_string(p.heads) + "+" + std::to_string(p.kv_heads) + " heads of " +
         std::to_string(p.rotary) + "/" + std::to_string(p.head) +
         (p.float_cache ? " fp32 cache" : "");
}

constexpr int64_t kPositions = 11;

// Queries and keys as rows of heads, tokens side by side with gaps.
struct RotaryOperands {
  RotaryProblem problem;
  Type type;
  RowOperand query, key, cache, query_out, key_out;
  std::vector<int64_t> positions;

  RotaryOperands(Type of, const RotaryProblem& p, Fence fence)
      : problem(p),
        type(of),
        query(of, p.tokens * p.heads, p.head, p.head % 3, fence),
        key(of, p.tokens * p.kv_heads, p.head, 1, fence),
        cache(p.float_cache ? Type::kFp32 : of, kPositions, p.rotary, 1, fence),
        query_out(of, p.tokens * p.heads, p.head, 1, fence),
        key_out(of, p.tokens * p.kv_heads, p.head, 0, fence) {
    Random random(static_cast<uint64_t>(p.head * 100 + p.rotary + p.tokens));
    query.fill(random);
    key.fill(random);
    cache.fill(random, 0.5);
    for (int64_t token = 0; token < p.tokens; ++token) {
      positions.push_back(token == 0 ? kPositions - 1 : random.below(kPositions));
    }
  }

  [[nodiscard]] static RotaryHeads heads(const RowOperand& in, const RowOperand& out,
                                         int64_t count) {
    return {count,       in.data(),  count * in.stride(),
            in.stride(), out.data(), count * out.stride(),
            out.stride()};
  }

  void run(const Kernel& kernel) const {
    run_case(kernel, describe(problem));
    const Rotary call = {problem.neox,
                         problem.head,
                         problem.rotary,
                         heads(query, query_out, problem.heads),
                         heads(key, key_out, problem.kv_heads),
                         positions.data(),
                         cache.data(),
                         cache.stride(),
                         problem.float_cache};
    const int64_t units = problem.tokens * (problem.heads + problem.kv_heads);
    const auto entry = std::get<RotaryKernel*>(kernel.entry);
    entry(call, units / 3, units);
    entry(call, 0, units / 3);
    expect(
        query.intact() && key.intact() && cache.intact() && query_out.intact() && key_out.intact(),
        std::string(kernel.name) + " " + describe(problem) + ": wrote beside an operand");
  }

  void check(const Kernel& kernel, const RowOperand& in, const RowOperand& out,
             int64_t heads) const {
    const int64_t pairs = problem.rotary / 2;
    const std::string who = std::string(kernel.name) + " " + describe(problem);
    for (int64_t row = 0; row < problem.tokens * heads; ++row) {
      const int64_t position = positions[static_cast<size_t>(row / heads)];
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t first = problem.neox ? i : 2 * i;
        const int64_t second = problem.neox ? i + pairs : 2 * i + 1;
        const double x = in.get(row, first), y = in.get(row, second);
        const double c = cache.get(position, i), s = cache.get(position, pairs + i);
        const auto error = [](double a, double b) {
          return gamma(2) * (std::fabs(a) + std::fabs(b)) + 0x1p-132;
        };
        expect_within(type, out.get(row, first), x * c - y * s, error(x * c, y * s), who);
        expect_within(type, out.get(row, second), y * c + x * s, error(y * c, x * s), who);
      }
      for (int64_t i = problem.rotary; i < problem.head; ++i) {
        expect(out.get(row, i) == in.get(row, i), who + ": what is not turned was not copied");
      }
    }
  }
};

constexpr RotaryProblem kProblems[] = {
    {true, 3, 4, 1, 64, 64, false}, {true, 1, 3, 2, 128, 128, false},
    {true, 2, 2, 2, 80, 80, false}, {true, 4, 1, 1, 96, 32, false},
    {true, 2, 3, 1, 64, 64, true},  {true, 2, 5, 1, 70, 34, false},
    {true, 1, 2, 1, 2, 2, false},   {false, 3, 4, 1, 64, 64, false},
    {false, 2, 3, 2, 80, 80, true}, {false, 2, 2, 1, 128, 30, false},
    {false, 1, 1, 1, 2, 2, false},  {true, 1, 1, 1, 1024, 1024, false},
};

void check_type(Type type) {
  const std::vector<const Kernel*> tested = runnable(Operation::kRotaryEmbedding, type);
  const std::string group = std::string("rotary_embedding_") + name_of(type);
  for (const RotaryProblem& problem : kProblems) {
    std::vector<unsigned char> first;
    for (const Kernel* kernel : tested) {
      const RotaryOperands operands(type, problem,
                                    problem.head % 4 == 0 ? Fence::kAfter : Fence::kBefore);
      operands.run(*kernel);
      operands.check(*kernel, operands.query, operands.query_out, problem.heads);
      operands.check(*kernel, operands.key, operands.key_out, problem.kv_heads);
      std::vector<unsigned char> result = operands.query_out.bytes();
      const std::vector<unsigned char> keys = operands.key_out.bytes();
      result.insert(result.end(), keys.begin(), keys.end());
      if (first.empty()) first = result;
      expect(result == first, std::string(kernel->name) + " " + describe(problem) + ": differs");
    }
    mix_hash(group, first.data(), first.size());
  }
  // A NaN reaches its pair and nothing else, and so does an infinity.
  for (const Kernel* kernel : tested) {
    for (const bool neox : {true, false}) {
      RotaryOperands operands(type, {neox, 1, 3, 1, 64, 64, false}, Fence::kAfter);
      operands.query.set(1, 5, std::nan(""));
      operands.query.set(2, 7, HUGE_VAL);
      operands.run(*kernel);
      const int64_t other = neox ? 5 + 32 : 4;
      for (int64_t i = 0; i < 64; ++i) {
        expect(std::isnan(operands.query_out.get(1, i)) == (i == 5 || i == other),
               std::string(kernel->name) + ": NaN");
        expect(std::isfinite(operands.query_out.get(0, i)), std::string(kernel->name) + ": leaked");
      }
      expect(std::isinf(operands.query_out.get(2, 7)), std::string(kernel->name) + ": infinity");
    }
  }
  note_dispatch(group, "1", select_kernel(Operation::kRotaryEmbedding, type, 1, cpu_features()));
}

}  // namespace

void test_rotary_embedding() {
  for (const Type type : {Type::kBf16, Type::kFp16, Type::kFp32}) check_type(type);
}

}  // namespace sgl_rvv::tests
