// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/options.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace urma::apps::notify {
namespace {

using Words = std::vector<std::string>;

Options parsed(Words words) {
  words.insert(words.begin(), "urma_notify");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal(const Words& words) {
  try {
    parsed(words);
    return "";
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::usage);
    return failure.what();
  }
}

TEST_CASE("urma_notify: the last word is the host, unless --to names hosts") {
  const Options one = parsed({"send", "a"});
  CHECK(one.paths == Words{"a"});
  CHECK(one.hosts == Words{"localhost"});
  CHECK(service(one).ask == "urma_notify send a");
  const Options host = parsed({"send", "a", "b", "10.0.0.5"});
  CHECK(host.paths == Words{"a", "b"});
  CHECK(host.hosts == Words{"10.0.0.5"});
  const Options several = parsed({"send", "a", "b c", "--to", "x", "--to", "y"});
  CHECK(several.paths == Words{"a", "b c"});
  CHECK(several.hosts == Words{"x", "y"});
  CHECK(service(several).ask == "urma_notify send a 'b c' --to");
  CHECK(parsed({"serve", "dir"}).paths == Words{"dir"});
}

TEST_CASE("urma_notify: invalid words are refused") {
  for (const Words& words : {Words{},
                             {"take", "a"},
                             {"send"},
                             {"serve"},
                             {"send", ""},
                             {"send", "a", "b/c"},
                             {"send", "a", "--to", ""},
                             {"send", "a", "--to", "x", "--to", "x"},
                             {"send", "a", "--to"},
                             {"send", "a", "/"},
                             {"send", "a", "-"},
                             {"send", "-", "-", "--to", "x", "--as", "n"},
                             {"send", "a", "b", "--to", "x", "--as", "n"},
                             {"serve", "a", "b"},
                             {"serve", "a", "--json"},
                             {"serve", "a", "--to", "x"},
                             {"send", "a", "--rate", "0"},
                             {"send", "a", "--rate", "-1"},
                             {"send", "a", "--patience", "0"},
                             {"send", "a", "--device", "x", "--device", "y"}}) {
    INFO(words.size() << " words");
    CHECK(refusal(words).find("Fix: ") != std::string::npos);
  }
}

}  // namespace
}  // namespace urma::apps::notify
