// SPDX-License-Identifier: Apache-2.0
#include "engine/published_names.h"

#include "tests/catch.h"
#include "tests/runtime_directory.h"

namespace urma::test {
namespace {

using engine::NameFiles;
using engine::Publication;
using engine::Publications;
using engine::PublishedNames;
using std::chrono::milliseconds;

const Eid here = ipv4(127, 0, 0, 1);
const Eid friend_of_ours = ipv4(10, 0, 0, 1);
const Eid stranger = ipv4(10, 0, 0, 2);
const Time first_asked{milliseconds(5000)};

Publication line(std::string text, Audience audience = everyone()) {
  return {.line = std::move(text), .audience = std::move(audience), .device = {}};
}

void publish(PublishedNames& names, const std::string& name, Publication what) {
  Publications one;
  one.emplace(name, std::move(what));
  names.publish(one);
}

std::string found(PublishedNames& names, std::string_view name, const Eid& asker = stranger,
                  Time now = first_asked) {
  const Publication* const publication = names.find(name, asker, now);
  return publication != nullptr ? publication->line : "nothing";
}

TEST_CASE("a published name is found until it is replaced or ends") {
  PublishedNames names({.address = here});
  CHECK(found(names, "x") == "nothing");
  publish(names, "x", line("first"));
  publish(names, "y", line("other"));
  CHECK(found(names, "x") == "first");
  publish(names, "x", line("second"));
  CHECK(found(names, "x") == "second");
  names.unpublish("x");
  names.unpublish("never published");
  CHECK(found(names, "x") == "nothing");
  CHECK(found(names, "y") == "other");
}

TEST_CASE("a name is given to its audience only") {
  PublishedNames names({.address = here});
  publish(names, "all", line("for all"));
  publish(names, "one", line("for one", {.eids = {friend_of_ours}}));
  publish(names, "user", line("for this user", this_user()));
  CHECK(found(names, "all", stranger) == "for all");
  CHECK(found(names, "one", friend_of_ours) == "for one");
  CHECK(found(names, "one", stranger) == "nothing");
  CHECK(found(names, "user", friend_of_ours) == "nothing");
}

TEST_CASE("in a simulated network, which is one process, each name is given to all") {
  PublishedNames names({.address = here, .all_admitted = true});
  publish(names, "user", line("for this user", this_user()));
  CHECK(found(names, "user", stranger) == "for this user");
}

// The names that other processes of this user publish on this host.
struct Neighbours {
  RuntimeDirectory directory;
  NameFiles files = NameFiles::of_this_user();
  std::vector<NameFiles::Held> held;

  void publish(const std::string& name, const Publication& what, const Eid& at = here) {
    held.push_back(files.publish(Endpoint{at, ub_port}, name, what).value());
  }
};

TEST_CASE("a device answers for its neighbours only if it is asked to") {
  Neighbours neighbours;
  neighbours.publish("x", line("a neighbour's"));
  neighbours.publish("z", line("elsewhere"), ipv4(127, 0, 0, 2));
  neighbours.publish("secret", line("for one", {.eids = {friend_of_ours}}));
  PublishedNames alone({.address = here});
  CHECK(found(alone, "x") == "nothing");
  PublishedNames names({.address = here, .neighbours = neighbours.files});
  CHECK(found(names, "x") == "a neighbour's");
  CHECK(found(names, "z") == "nothing");
  CHECK(found(names, "secret", stranger) == "nothing");
  CHECK(found(names, "secret", friend_of_ours) == "for one");
  // Its own names come first.
  publish(names, "x", line("own"));
  CHECK(found(names, "x") == "own");
}

TEST_CASE("the directory of neighbours is read at most once in 10 ms") {
  Neighbours neighbours;
  PublishedNames names({.address = here, .neighbours = neighbours.files});
  CHECK(found(names, "x") == "nothing");
  neighbours.publish("x", line("later"));
  CHECK(found(names, "x", stranger, first_asked + milliseconds(9)) == "nothing");
  CHECK(found(names, "x", stranger, first_asked + milliseconds(10)) == "later");
  neighbours.held.clear();
  CHECK(found(names, "x", stranger, first_asked + milliseconds(19)) == "later");
  CHECK(found(names, "x", stranger, first_asked + milliseconds(20)) == "nothing");
}

}  // namespace
}  // namespace urma::test
