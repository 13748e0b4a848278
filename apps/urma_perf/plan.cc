// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "apps/common/failure.h"
#include "apps/common/output.h"
#include "apps/common/values.h"

namespace urma::apps::perf {
namespace {

constexpr uint64_t aligned(uint64_t offset) {
  constexpr uint64_t to = Plan::source_alignment;
  return (offset + to - 1) / to * to;
}

// Returns blocks of equal size from these offsets on: at the server in the reverse order, so that
// no block continues the one before.
std::vector<Block> equal_blocks(uint64_t bytes, uint64_t count, uint64_t target, uint64_t source) {
  const uint64_t stride = aligned(bytes);
  std::vector<Block> out;
  out.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    out.push_back({.target = target + (count - 1 - i) * stride,
                   .source = source + i * stride,
                   .bytes = bytes});
  }
  return out;
}

// A block, and the line that describes it.
struct PlanLine {
  Block block;
  size_t number = 0;
};

// Reads the lines of a plan, each of which may depend on those before.
class PlanReader {
 public:
  explicit PlanReader(std::string name) : name_(std::move(name)) {}

  void take(const std::string& text) {
    ++number_;
    const std::vector<std::string> words = words_of(text);
    if (words.empty()) return;
    if (words.size() == 2) return add_equal(words);
    if (words.size() == 3) return add_one(words);
    refuse(fmt::format(
        "\"{}\" does not describe blocks. Fix: write BYTES COUNT, or TARGET SOURCE BYTES",
        shown(text)));
  }

  std::vector<Block> blocks() {
    if (lines_.empty()) {
      usage(
          fmt::format("--plan {}: the file has no blocks. Fix: write a line \"64K 298\" (BYTES "
                      "COUNT), or lines of TARGET SOURCE BYTES",
                      name_));
    }
    refuse_overlaps();
    std::vector<Block> out;
    out.reserve(lines_.size());
    for (const PlanLine& line : lines_) out.push_back(line.block);
    return out;
  }

 private:
  static std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text.substr(0, text.find('#')));
    std::vector<std::string> words;
    // One word more than any line has shows that there are too many.
    for (std::string word; words.size() < 4 && in >> word;) words.push_back(word);
    return words;
  }

  static std::string shown(std::string_view text) {
    constexpr size_t most = 60;
    return printable(text.substr(0, most)) + (text.size() > most ? "..." : "");
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Failure(Exit::usage, fmt::format("--plan {}, line {}: {}", name_, number_, why));
  }

  uint64_t bytes_in(const std::string& word) const {
    const Bytes type{max_write_bytes};
    const auto bytes = type.read(word);
    if (bytes) return *bytes;
    refuse(
        fmt::format("\"{}\" is not the size of a block. Fix: write {}", shown(word), type.valid()));
  }

  uint64_t offset_in(const std::string& word) const {
    const Bytes type{most_memory_bytes};
    const auto offset = word == "0" ? std::optional<uint64_t>(0) : type.read(word);
    if (offset) return *offset;
    refuse(fmt::format("\"{}\" is not an offset. Fix: write 0, or {}", shown(word), type.valid()));
  }

  void add_equal(const std::vector<std::string>& words) {
    const uint64_t bytes = bytes_in(words[0]);
    const WholeNumber type{1, Plan::most_blocks};
    const auto count = type.read(words[1]);
    if (!count) {
      refuse(fmt::format("\"{}\" is not a number of blocks. Fix: write {}", shown(words[1]),
                         type.valid()));
    }
    for (const Block& block :
         equal_blocks(bytes, *count, aligned(target_end_), aligned(source_end_))) {
      add(block);
    }
  }

  void add_one(const std::vector<std::string>& words) {
    const Block block{
        .target = offset_in(words[0]), .source = offset_in(words[1]), .bytes = bytes_in(words[2])};
    if (const uint64_t rest = block.source % Plan::source_alignment; rest != 0) {
      refuse(fmt::format("the offset at the client, {}, is not a multiple of {}. Fix: write {}",
                         block.source, Plan::source_alignment, block.source - rest));
    }
    add(block);
  }

  void add(const Block& block) {
    target_end_ = std::max(target_end_, block.target + block.bytes);
    source_end_ = std::max(source_end_, block.source + block.bytes);
    all_bytes_ += block.bytes;
    if (std::max({target_end_, source_end_, all_bytes_}) > most_memory_bytes) {
      refuse(
          fmt::format("with this line the blocks need more than {} on a side. Fix: write fewer or "
                      "smaller blocks, or smaller offsets",
                      size_text(most_memory_bytes)));
    }
    if (lines_.size() == Plan::most_blocks) {
      refuse(
          fmt::format("with this line there are more than {} blocks, which one post cannot take. "
                      "Fix: write fewer or larger blocks",
                      Plan::most_blocks));
    }
    lines_.push_back({block, number_});
  }

  // Which of two blocks arrives last is not defined, so their bytes could not be checked.
  void refuse_overlaps() {
    std::vector<const PlanLine*> sorted;
    for (const PlanLine& line : lines_) sorted.push_back(&line);
    std::ranges::sort(sorted, {}, [](const PlanLine* line) { return line->block.target; });
    for (size_t i = 1; i < sorted.size(); ++i) {
      const PlanLine& before = *sorted[i - 1];
      const PlanLine& behind = *sorted[i];
      if (before.block.target + before.block.bytes <= behind.block.target) continue;
      const auto [first, second] = std::minmax(before.number, behind.number);
      number_ = second;
      refuse(
          fmt::format("its block at {} overlaps at the server with one of line {}. Fix: write "
                      "another TARGET",
                      behind.block.target, first));
    }
  }

  const std::string name_;
  size_t number_ = 0;
  std::vector<PlanLine> lines_;
  uint64_t target_end_ = 0;
  uint64_t source_end_ = 0;
  uint64_t all_bytes_ = 0;
};

// Reads no more than a plan may have, so that /dev/zero is not read for ever.
std::string limited_text(std::istream& in, const std::string& name) {
  std::string text(Plan::most_file_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() <= Plan::most_file_bytes) return text;
  usage(fmt::format(
      "--plan {}: the file is larger than {}. Fix: describe blocks of equal size by one "
      "line, BYTES COUNT",
      name, size_text(Plan::most_file_bytes)));
}

}  // namespace

Plan Plan::of(uint64_t bytes, uint32_t count) {
  Plan plan;
  plan.blocks_ = equal_blocks(bytes, count, 0, 0);
  return plan;
}

Plan Plan::read(const std::string& path) {
  std::ifstream in(path);
  int why = in ? 0 : errno;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) why = EISDIR;
  if (why != 0) {
    usage(fmt::format(
        "--plan {}: reading it: {}. Fix: name a file with a line for each block, TARGET "
        "SOURCE BYTES, or with one line BYTES COUNT",
        printable(path), std::strerror(why)));
  }
  return parse(in, printable(path));
}

Plan Plan::parse(std::istream& in, const std::string& name) {
  std::istringstream lines(limited_text(in, name));
  PlanReader reader(name);
  for (std::string line; std::getline(lines, line);) reader.take(line);
  Plan plan;
  plan.blocks_ = reader.blocks();
  return plan;
}

uint64_t Plan::bytes() const {
  uint64_t sum = 0;
  for (const Block& block : blocks_) sum += block.bytes;
  return sum;
}

Plan Plan::gathered() const {
  Plan out = *this;
  std::ranges::sort(out.blocks_, {}, &Block::target);
  uint64_t end = 0;
  for (Block& block : out.blocks_) {
    block.target = end;
    end += block.bytes;
  }
  return out;
}

PlanShape Plan::shape(uint32_t entries) const {
  if (blocks_.empty()) return {};
  PlanShape out{.blocks = static_cast<uint32_t>(blocks_.size()),
                .block_bytes = blocks_.front().bytes,
                .entries = entries};
  for (const Block& block : blocks_) {
    if (block.bytes != out.block_bytes) out.block_bytes = 0;
    out.source_bytes = std::max(out.source_bytes, block.source + block.bytes);
    out.target_bytes = std::max(out.target_bytes, block.target + block.bytes);
  }
  for (const std::vector<Gather>& list : lists_of(blocks_, entries)) {
    const auto works = static_cast<uint32_t>(list.size());
    out.works += works;
    out.works_at_once = std::max(out.works_at_once, works);
  }
  return out;
}

std::vector<std::vector<Gather>> lists_of(const std::vector<Block>& blocks, uint32_t entries) {
  const size_t list = entries == 0 ? blocks.size() : entries;
  std::vector<std::vector<Gather>> out;
  uint64_t bytes = 0;  // of the last work
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % list == 0) out.emplace_back();
    std::vector<Gather>& works = out.back();
    const bool fits = entries != 0 && !works.empty() && i - works.back().begin < max_buffers &&
                      bytes + blocks[i].bytes <= max_write_bytes;
    if (!fits) {
      works.push_back({.begin = i, .end = i});
      bytes = 0;
    }
    works.back().end = i + 1;
    bytes += blocks[i].bytes;
  }
  return out;
}

}  // namespace urma::apps::perf
