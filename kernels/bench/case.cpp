#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "workload.h"

namespace kernel_bench {

Case parse_case(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) throw std::invalid_argument(text + ": no operation and colon");
  Case parsed{text, text.substr(0, colon), {}};
  for (size_t begin = colon + 1; begin < text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const size_t equals = text.find('=', begin);
    if (equals == std::string::npos || equals > comma) {
      throw std::invalid_argument(text + ": expected key=value at " + text.substr(begin));
    }
    parsed.values[text.substr(begin, equals - begin)] = text.substr(equals + 1, comma - equals - 1);
    begin = comma + 1;
  }
  return parsed;
}

int64_t number(const Case& of, const std::string& key) {
  const auto found = of.values.find(key);
  if (found == of.values.end()) throw std::invalid_argument(of.text + ": lacks " + key);
  char* end = nullptr;
  const long long value = std::strtoll(found->second.c_str(), &end, 10);
  if (*end != '\0' || value <= 0) {
    throw std::invalid_argument(of.text + ": " + key + " must be a positive number");
  }
  return value;
}

int64_t number_or(const Case& of, const std::string& key, int64_t otherwise) {
  return of.values.count(key) == 0 ? otherwise : number(of, key);
}

std::string word_or(const Case& of, const std::string& key, const std::string& otherwise) {
  const auto found = of.values.find(key);
  return found == of.values.end() ? otherwise : found->second;
}

}  // namespace kernel_bench
