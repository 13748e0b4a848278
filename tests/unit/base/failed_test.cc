// SPDX-License-Identifier: Apache-2.0
#include "base/failed.h"

#include "tests/catch.h"

namespace urma {
namespace {

TEST_CASE("an error's message says what failed, why, and the fix") {
  const uint32_t entries = 8;
  const std::string call = "jetty";
  const Error error = failed(Status::no_resources, call, ": its queue has ", entries, " entries, ",
                             std::string_view("all taken"))
                          .fix("make it with ", size_t{2} * entries);
  CHECK(error.status == Status::no_resources);
  CHECK(error.message == "jetty: its queue has 8 entries, all taken. Fix: make it with 16");
}

TEST_CASE("an error's message writes endpoints and addresses as a command line takes them") {
  const Endpoint at{ipv4(10, 0, 0, 5), 4792};
  const Error error = failed(Status::not_found, "no name at ", at).fix("open udp:", at.address);
  CHECK(error.message == "no name at 10.0.0.5:4792. Fix: open udp:10.0.0.5");
}

TEST_CASE("a part of an error's message can depend on a condition") {
  for (const bool also : {false, true}) {
    const Error error =
        failed(Status::not_found, "no name here").add_if(also, ", nor there").fix("publish it");
    CHECK(error.message ==
          (also ? "no name here, nor there. Fix: publish it" : "no name here. Fix: publish it"));
  }
}

TEST_CASE("the default fix of an error is the cure of its status") {
  const Error error = failed(Status::timed_out, "import: no answer").usual_fix();
  CHECK(error.message == urma::error(Status::timed_out, "import: no answer").message);
}

}  // namespace
}  // namespace urma
