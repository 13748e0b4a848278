// SPDX-License-Identifier: Apache-2.0
// Runs a fuzzer without libFuzzer: over every file of its corpus, and over as many inputs made from
// them by a seeded generator as are asked for. The same arguments give the same run, except that
// without SEED the second half of the inputs is made from URMA_TEST_SEED where that is set.
//
//   fuzz_tp CORPUS [INPUTS [SEED]]     or one file:     fuzz_tp crash-input

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/prng.h"
#include "tests/fresh_seed.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t longest = 4096;
const char* const crash_file = "crash-input";
Bytes current;

// Saves the input that ended the run. Called from signal handlers.
void keep_input() {
  const int file = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool kept = file >= 0 && write(file, current.data(), current.size()) ==
                                     static_cast<ssize_t>(current.size());
  static const char text[] = "replay: the input is kept as ./crash-input\n";
  if (kept && write(2, text, sizeof text - 1) < 0) return;
}

void handle_signal(int signal) {
  keep_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads the files in the order of their names, so that a run is the same on every machine.
std::vector<Bytes> read_corpus(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {read_file(path)};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const auto& file : files) corpus.push_back(read_file(file));
  return corpus;
}

size_t any_place(const Bytes& bytes, urma::Prng& prng) { return prng.below(bytes.size() + 1); }

void insert_random(Bytes& bytes, urma::Prng& prng) {
  Bytes more(prng.between(1, 16));
  for (uint8_t& byte : more) byte = static_cast<uint8_t>(prng.next());
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(any_place(bytes, prng)), more.begin(),
               more.end());
}

void mutate(Bytes& bytes, const std::vector<Bytes>& corpus, urma::Prng& prng) {
  const uint64_t kind = prng.below(6);
  if (bytes.empty() || kind == 0) return insert_random(bytes, prng);
  const size_t at = prng.below(bytes.size());
  const auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
  switch (kind) {
    case 1:
      bytes[at] ^= static_cast<uint8_t>(1 << prng.below(8));
      break;
    case 2:
      bytes[at] = static_cast<uint8_t>(prng.next());
      break;
    case 3: {
      constexpr uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff};
      bytes[at] = telling[prng.below(std::size(telling))];
      break;
    }
    case 4:
      bytes.erase(place, place + static_cast<ptrdiff_t>(
                                     prng.between(1, std::min<size_t>(bytes.size() - at, 16))));
      break;
    case 5: {
      // Continues as another input does.
      const Bytes& other = corpus[prng.below(corpus.size())];
      const size_t from = any_place(other, prng);
      bytes.erase(place, bytes.end());
      bytes.insert(bytes.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
      break;
    }
  }
}

Bytes make_input(const std::vector<Bytes>& corpus, urma::Prng& prng) {
  Bytes bytes;
  if (prng.below(16) == 0) {
    bytes.resize(prng.below(512));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(prng.next());
  } else {
    bytes = corpus[prng.below(corpus.size())];
    for (uint64_t times = prng.between(1, 8); times > 0; --times) mutate(bytes, corpus, prng);
  }
  bytes.resize(std::min(bytes.size(), longest));
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [INPUTS [SEED]]\n", argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  for (const int signal : {SIGABRT, SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGALRM}) {
    std::signal(signal, handle_signal);
  }
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no input\n", argv[1]);
    return 2;
  }
  for (const Bytes& input : corpus) {
    current = input;
    alarm(10);  // an input that takes this long hangs
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  const uint64_t inputs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const uint64_t fresh = argc > 3 ? 0 : urma::test::fresh_seed();
  urma::Prng prng(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  for (uint64_t i = 0; i < inputs; ++i) {
    if (fresh != 0 && i == inputs / 2) prng = urma::Prng(fresh);
    current = make_input(corpus, prng);
    alarm(10);
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  std::printf("%zu inputs of the corpus, %llu made from them (URMA_TEST_SEED=%llu)\n",
              corpus.size(), static_cast<unsigned long long>(inputs),
              static_cast<unsigned long long>(fresh));
  return 0;
}
