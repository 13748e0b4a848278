// SPDX-License-Identifier: Apache-2.0
#include "urma/core/status.h"

#include <algorithm>
#include <set>
#include <string>

#include "tests/catch.h"
#include "urma/core/result.h"

namespace urma::test {
namespace {

bool is_sentence(std::string_view text) {
  return text.size() > 4 && text.front() >= 'A' && text.front() <= 'Z' && text.back() == '.';
}

TEST_CASE("every status has a name like its enumerator, a meaning, causes and a cure") {
  std::set<std::string_view> names, meanings;
  size_t count = 0;
  for (const StatusInfo& info : all_statuses()) {
    INFO(info.name);
    CHECK(static_cast<size_t>(info.status) == count++);
    CHECK(&describe(info.status) == &info);
    CHECK_FALSE(info.name.empty());
    CHECK(std::all_of(info.name.begin(), info.name.end(),
                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; }));
    CHECK(is_sentence(info.meaning));
    CHECK(is_sentence(info.cure));
    CHECK(info.causes().empty() == (info.status == Status::ok));
    for (const std::string_view cause : info.causes()) CHECK(is_sentence(cause));
    // A message ends with the cure of its status, so the cure must not refer to the message.
    CHECK(info.cure.find("The message") == std::string_view::npos);
    CHECK(names.insert(info.name).second);
    CHECK(meanings.insert(info.meaning).second);
  }
  CHECK(count == static_cast<size_t>(Status::not_fenced) + 1);
}

// Programs print names and compare them in logs, and the numbers are part of the C API.
TEST_CASE("names are those of the enumerators") {
#define URMA_TEST_NAME(status) CHECK(name(Status::status) == #status)
  URMA_TEST_NAME(ok);
  URMA_TEST_NAME(flushed);
  URMA_TEST_NAME(unknown);
  URMA_TEST_NAME(bad_work);
  URMA_TEST_NAME(remote_access);
  URMA_TEST_NAME(remote_unsupported);
  URMA_TEST_NAME(receiver_not_ready);
  URMA_TEST_NAME(receive_too_small);
  URMA_TEST_NAME(peer_unreachable);
  URMA_TEST_NAME(peer_restarted);
  URMA_TEST_NAME(would_block);
  URMA_TEST_NAME(invalid_argument);
  URMA_TEST_NAME(not_found);
  URMA_TEST_NAME(address_in_use);
  URMA_TEST_NAME(permission_denied);
  URMA_TEST_NAME(version_mismatch);
  URMA_TEST_NAME(no_resources);
  URMA_TEST_NAME(unsupported);
  URMA_TEST_NAME(closed);
  URMA_TEST_NAME(forked);
  URMA_TEST_NAME(timed_out);
  URMA_TEST_NAME(io_error);
  URMA_TEST_NAME(not_fenced);
#undef URMA_TEST_NAME
}

TEST_CASE("a number that is not a status is described as an error, too") {
  const auto last = static_cast<unsigned>(Status::not_fenced);
  for (unsigned number = last + 1; number < 256; ++number) {
    const StatusInfo& info = describe(static_cast<Status>(number));
    REQUIRE(info.status != Status::ok);
    REQUIRE_FALSE(info.name.empty());
    REQUIRE(is_sentence(info.meaning));
    REQUIRE(is_sentence(info.cure));
    REQUIRE_FALSE(info.causes().empty());
  }
}

// "Not executed" is a promise, so a status makes it only if the library can know that.
TEST_CASE("a status that may follow an execution does not say that nothing was executed") {
  CHECK(describe(Status::unknown).meaning.find("may or may not") != std::string_view::npos);
  for (const Status status : {Status::flushed, Status::peer_unreachable}) {
    CHECK(describe(status).meaning.find("not executed") != std::string_view::npos);
  }
}

TEST_CASE("an error says what happened and ends with the cure of its status") {
  const Error closed = error(Status::closed, "posting to Jetty 7");
  CHECK(closed.status == Status::closed);
  CHECK(closed.message == "posting to Jetty 7. Fix: " + std::string(describe(Status::closed).cure));
}

TEST_CASE("a result is a value or an error, and value() of an error throws its message") {
  Result<int> five = 5;
  CHECK(five.ok());
  CHECK(five.status() == Status::ok);
  CHECK(five.value() == 5);
  const Result<int> none = error(Status::not_found, "looking for \"x\"");
  CHECK_FALSE(none);
  CHECK(none.status() == Status::not_found);
  CHECK_THROWS_WITH(none.value(), "not_found: " + none.error().message);

  const Result<void> done;
  CHECK(done.ok());
  CHECK_NOTHROW(done.value());
  const Result<void> failed = error(Status::io_error, "writing");
  CHECK_FALSE(failed.ok());
  CHECK_THROWS_WITH(failed.value(), "io_error: " + failed.error().message);
}

TEST_CASE("an error is an error code, with the meaning of its status as the message") {
  const std::error_code code = Error{Status::peer_restarted, "it has ended"};
  CHECK(code == code_of(Status::peer_restarted));
  CHECK(code != code_of(Status::flushed));
  CHECK(code.category() == status_category());
  CHECK(code.category().name() == std::string("urma"));
  CHECK(code.message() == describe(Status::peer_restarted).meaning);
  CHECK_FALSE(code_of(Status::ok));
  CHECK(status_category().message(250) == describe(static_cast<Status>(250)).meaning);
}

TEST_CASE("a missing value is an exception that has the status") {
  const Result<int> none = Error{Status::not_found, "no such name. Fix: publish it"};
  try {
    (void)none.value();
    FAIL("nothing was thrown");
  } catch (const Exception& failed) {
    CHECK(failed.status() == Status::not_found);
    CHECK(failed.error().message == none.error().message);
    CHECK(failed.what() == std::string("not_found: no such name. Fix: publish it"));
  }
  CHECK_THROWS_AS(none.value(), std::runtime_error);
}

}  // namespace
}  // namespace urma::test
