// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_stat/users.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "apps/common/output.h"

namespace urma::apps::stat {
namespace {

constexpr size_t record_bytes = 16'384;

}  // namespace

std::string user_name(uint32_t uid) {
  std::array<char, record_bytes> texts;
  passwd record{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &record, texts.data(), texts.size(), &found) != 0 || found == nullptr) {
    return std::to_string(uid);
  }
  return printable(found->pw_name);
}

std::optional<uint32_t> find_user(std::string_view word) {
  uint32_t uid = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), uid);
  if (failure == std::errc{} && end == word.data() + word.size()) return uid;
  std::array<char, record_bytes> texts;
  passwd record{};
  passwd* found = nullptr;
  const int failed =
      getpwnam_r(std::string(word).c_str(), &record, texts.data(), texts.size(), &found);
  return failed == 0 && found != nullptr ? std::optional<uint32_t>(found->pw_uid) : std::nullopt;
}

bool is_of_another_user(const Row& row) { return row.device.uid != geteuid(); }

}  // namespace urma::apps::stat
