// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over its stored corpus and over cheap mutations of it (truncation, one changed
// byte), so that every ordinary test run replays what fuzzing found. A missing or empty corpus is a
// failure: a target without seeds tests nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void ReplayMutations(std::vector<std::uint8_t> seed) {
  LLVMFuzzerTestOneInput(seed.data(), seed.size());
  constexpr std::size_t kStepsMax = 256;
  const std::size_t step = std::max<std::size_t>(1, seed.size() / kStepsMax);
  for (std::size_t i = 0; i < seed.size(); i += step) {
    LLVMFuzzerTestOneInput(seed.data(), i);
    for (const std::uint8_t flip : std::initializer_list<std::uint8_t>{0x01, 0x80, 0xff}) {
      seed[i] ^= flip;
      LLVMFuzzerTestOneInput(seed.data(), seed.size());
      seed[i] ^= flip;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    ReplayMutations({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    ++count;
  }
  std::printf("%zu corpus files replayed with their mutations\n", count);
  return count > 0 ? 0 : 1;
}
