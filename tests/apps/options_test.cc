// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/options.h"

#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_perf/foreign_options.h"
#include "apps/urma_perf/messages.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

using nlohmann::json;

Options parse(std::vector<std::string> words) {
  words.insert(words.begin(), "urma_perf");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

// Returns the message of the refusal; empty if there is none.
std::string refusal(std::vector<std::string> words) {
  try {
    parse(std::move(words));
    return "";
  } catch (const Failure& failure) {
    REQUIRE(failure.exit() == Exit::usage);
    return failure.what();
  }
}

}  // namespace

TEST_CASE("the command line's options become cases") {
  const Options options =
      parse({"--self", "write_bw", "--size", "64,4K,1M", "--depth", "8", "--threads", "2"});
  const std::vector<Case> cases = options.cases();
  REQUIRE(cases.size() == 3);
  REQUIRE(cases[1].bytes == 4096);
  REQUIRE(cases[2].bytes == 1 << 20);
  REQUIRE(cases[2].depth == 8);
  REQUIRE(cases[0].jetties == 2);
  REQUIRE(cases[0].test->name == "write_bw");
  REQUIRE(parse({"--self"}).mode == Options::Mode::main_job);
  REQUIRE(parse({"server"}).mode == Options::Mode::server);
  REQUIRE(parse({"send_lat", "10.0.0.5:5000"}).host == "10.0.0.5:5000");
  REQUIRE(parse({"send_lat"}).host == "localhost");
}

TEST_CASE("--profile is for tests of works, and for servers") {
  REQUIRE(parse({"--self", "write_lat", "--profile"}).profile);
  REQUIRE(parse({"server", "--profile"}).profile);
  REQUIRE_FALSE(parse({"--self", "write_lat"}).profile);
  const std::string server = "Fix: urma_perf --self write_imm_lat --profile, or urma_perf server";
  REQUIRE(refusal({"--self", "--profile"}).find(server) != std::string::npos);
  REQUIRE(refusal({"reg", "--self", "--profile"}).find(server) != std::string::npos);
  REQUIRE(refusal({"--budget", "--profile"}).find(server) != std::string::npos);
  const std::string works = "or measure works: atomic_lat";
  REQUIRE(refusal({"--self", "lane_atomic_lat", "--profile"}).find(works) != std::string::npos);
}

TEST_CASE("a rate is for works that are posted when they are due") {
  CHECK(parse({"--self", "write_bw", "--rate", "20K"}).rate == 20'000.0);
  CHECK(parse({"--self", "write_lat", "--rate", "1.5M"}).rate == 1'500'000.0);
  CHECK_FALSE(parse({"--self", "write_bw"}).rate.has_value());
  const std::string slow = refusal({"--self", "write_bw", "--rate", "2", "--rounds", "4"});
  CHECK(slow.find("Fix: give --seconds 20, or") != slow.npos);
  CHECK(parse({"--self", "write_bw", "--rate", "2", "--rounds", "4", "--seconds", "20"}).rate ==
        2.0);
  CHECK(parse({"--self", "write_bw", "--rate", "2", "--count", "5"}).rate == 2.0);
}

TEST_CASE("a second test is not taken for a host") {
  CHECK(refusal({"--self", "write_lat", "write_bw"}).find("one test at a time") !=
        std::string::npos);
  CHECK(refusal({"--self", "write_lat", "10.0.0.5"}).find("takes no host") != std::string::npos);
}

TEST_CASE("an option of perftest or iperf3 is refused with what to type instead") {
  const auto fix = [](std::vector<std::string> words) {
    const std::string why = refusal(std::move(words));
    return why.substr(why.find("Fix: ") + 5);
  };
  CHECK(fix({"write_bw", "-n", "1000"}) == "give --count N; see urma_perf --help");
  CHECK(fix({"write_bw", "-n1000"}) == "give --count N; see urma_perf --help");
  CHECK(fix({"write_bw", "--iters=1000"}) == "give --count N; see urma_perf --help");
  CHECK(fix({"-c", "10.0.0.5"}).starts_with("name the host: urma_perf HOST"));
  for (const ForeignOption& one : foreign_options) {
    INFO(one.name);
    CHECK(fix({"--self", "write_bw", std::string(one.name)}) ==
          std::string(one.instead) + "; see urma_perf --help");
  }
  CHECK(fix({"--devise"}).starts_with("perhaps --device"));
  CHECK(fix({"--qqqqqqqqq"}) == "see urma_perf --help");
}

TEST_CASE("an impairment of another tool is answered with a device string that exists") {
  for (const ForeignOption& one : foreign_options) {
    const size_t at = one.instead.find("--device '");
    if (at == one.instead.npos) continue;
    INFO(one.instead);
    const size_t begin = at + std::string_view("--device '").size();
    const std::string device(one.instead.substr(begin, one.instead.rfind('\'') - begin));
    CHECK_FALSE(device.empty());
    // The driver and its options are checked before the file of a capture is made.
    if (device.starts_with("pcap")) continue;
    CHECK(urma::open(device).ok());
  }
}

TEST_CASE("--server and --loopback are other names of server and --self") {
  for (const char* option : {"-s", "--server"}) {
    CHECK(parse({option}).mode == Options::Mode::server);
    CHECK(parse({option, "--device", "udp:", "-v"}).verbose);
  }
  CHECK(parse({"--loopback", "write_bw"}).self);
  CHECK(parse({"--loopback"}).mode == Options::Mode::main_job);
  CHECK(parse({"--self", "-q"}).quiet);
  const auto fix = [](std::vector<std::string> words) {
    const std::string why = refusal(std::move(words));
    return why.substr(std::min(why.find("Fix: "), why.size()));
  };
  CHECK(fix({"--self", "write_bw", "--sweep", "size=64..4M:x2"}) ==
        "Fix: give --sweep alone, or --size 64,4K,1M");
  // perftest has numbers behind these.
  CHECK(fix({"--self", "write_bw", "-q", "4"}) == "Fix: give --jetties 4");
  CHECK(fix({"write_bw", "-q", "4", "localhost"}) == "Fix: give --jetties 4");
  CHECK(fix({"--self", "write_bw", "-s", "64"}) == "Fix: give --size 64");
  CHECK(fix({"-s", "write_bw"}).starts_with("Fix: run urma_perf --server, and on"));
  CHECK(fix({"-s", "--self"}).starts_with("Fix: run urma_perf server"));
}

TEST_CASE("an empty text is refused wherever a text is expected") {
  for (const char* option : {"--device", "--peer-device", "--cc", "--json-file", "--hist", "--plot",
                             "--fail-if", "--size", "--rate", "--pattern"}) {
    INFO(option);
    CHECK(refusal({"--self", "write_lat", option, ""}).find("Fix: ") != std::string::npos);
  }
  CHECK(refusal({"write_lat", ""}).find("Fix: give a value, or leave the quotes out") !=
        std::string::npos);
  CHECK(refusal({""}).find("Fix: ") != std::string::npos);
}

TEST_CASE("a sweep is a list of sizes, up to the largest message of the test") {
  const std::vector<Case> writes = parse({"--self", "write_bw", "--sweep"}).cases();
  REQUIRE(writes.size() == 20);
  REQUIRE(writes.front().bytes == 8);
  REQUIRE(writes.back().bytes == 4 << 20);
  REQUIRE(parse({"--self", "send_lat", "--sweep"}).cases().back().bytes == max_send_bytes);
}

TEST_CASE("--signal-every sets after how many works there is a completion") {
  const Case deep =
      parse({"--self", "send_bw", "--size", "8", "--depth", "256", "--signal-every", "64"})
          .cases()
          .front();
  REQUIRE(deep.depth == 256);
  REQUIRE(deep.signal_every == 64);
  REQUIRE(parse({"--self", "send_bw", "--signal-every", "48"}).cases().front().depth % 48 == 0);
  REQUIRE(parse({"--self", "send_lat", "--signal-every", "32"}).cases().front().depth == 1);
}

TEST_CASE("the threads that run the devices are chosen by one option") {
  REQUIRE(parse({"--self", "send_lat"}).threads_mode->threads == Threads::inlined);
  for (const ThreadsMode& mode : threads_modes) {
    REQUIRE(parse({"--self", "send_lat", mode.option}).threads_mode == &mode);
  }
}

TEST_CASE("an invalid command line is refused, with a fix") {
  const std::vector<std::vector<std::string>> nonsense = {
      {},
      {"tickle", "localhost"},
      {"server", "localhost"},
      {"--self", "write_lat", "localhost"},
      {"--self", "write_lat", "--size", ""},
      {"--self", "write_lat", "--size", "0"},
      {"--self", "write_lat", "--size", "64,"},
      {"--self", "write_lat", "--size", "-1"},
      {"--self", "write_lat", "--size", "64Q"},
      {"--self", "write_lat", "--size", "2G"},
      {"--self", "send_lat", "--size", "65537"},
      {"--self", "write_lat", "--seconds", "nan"},
      {"--self", "write_lat", "--seconds", "inf"},
      {"--self", "write_lat", "--seconds", "0"},
      {"--self", "write_lat", "--seconds", "2x"},
      {"--self", "write_lat", "--count", "0"},
      {"--self", "write_lat", "--count", "99999999999999999999"},
      {"--self", "write_lat", "--depth", "2"},
      {"--self", "write_bw", "--depth", "0"},
      {"--self", "write_bw", "--depth", "9", "--signal-every", "2"},
      {"--self", "write_lat", "--signal-every", "2"},
      {"--self", "send_lat", "--signal-every", "33"},
      {"--self", "wake_lat", "--depth", "2"},
      {"--self", "atomic_lat", "--size", "16"},
      {"--self", "atomic_bw", "--size", "3"},
      {"--self", "atomic_lat", "--atomic", "swop"},
      {"--self", "write_bw", "--sweep", "--size", "64"},
      {"--self", "--sweep"},
      {"--self", "write_bw", "--jetties", "0"},
      {"--self", "write_bw", "--jetties", "2", "--threads", "3"},
      {"--self", "write_bw", "--size", "1G", "--depth", "100"},
      {"--self", "write_bw", "--rounds", "x"},
      {"--self", "write_bw", "--inline", "--served"},
      {"--self", "write_bw", "--what-is-this"},
      {"--self", "send_lat", "--rate", "5K"},
      {"--self", "lane_write_lat", "--rate", "5K"},
      {"--self", "write_bw", "--rate", "5K", "--limit"},
      {"--self", "write_bw", "--rate", "5K", "--signal-every", "2"},
      {"--self", "write_bw", "--rate", "0"},
      {"--self", "--rate", "5K"},
      {"--self", "--hist", "x"},
      {"--self", "write_lat", "--size", "8,64", "--hist", "x"},
      {"--self", "write_lat", "--plot", "x", "--hist", "x"},
      {"--self", "--plot", "x", "--json-file", "x"},
      {"server", "--plot", "x"},
      {"send_bw", "--bidirectional"},
      {"--self", "write_bw", "--bidirectional", "--limit"},
      {"--self", "write_bw", "--pattern", "incast", "--bidirectional"},
      {"--self", "write_bw", "--pattern", "one_to_one", "--processes", "5"},
      {"--self", "write_bw", "--pattern", "all_to_all", "--processes", "17"},
      {"--self", "write_bw", "--pattern", "incast", "--rounds", "2"},
      {"--self", "write_bw", "--processes", "2"},
      {"write_bw", "--pattern", "incast"},
      {"--ping", "write_lat", "localhost"},
      {"--ping", "--self"},
      {"--selftest", "localhost"},
      {"--selftest", "--ping"},
      {"--self", "--size", "64"},
      {"server", "--json"},
      {"write_lat", "localhost", "--peer-device", "udp:"},
      {"write_lat", "local/host"},
      {"--self", "lane_write_lat", "--private"},
      {"--self", "lane_write_lat", "--device", "udp:"},
      {"--self", "lane_write_lat", "--device", "fault(dup=1%):cxl:"},
      {"--self", "lane_write_lat", "--peer-device", "udp:"},
      {"--self", "lane_write_lat", "--jetties", "2"},
      {"--self", "lane_write_lat", "--threads", "2", "--jetties", "4"},
      {"--self", "lane_write_lat", "--threads", "9"},
      {"--self", "lane_write_lat", "--depth", "2"},
      {"--self", "lane_write_lat", "--signal-every", "2"},
      {"--self", "lane_write_lat", "--fence-every", "2"},
      {"--self", "lane_write_lat", "--order", "ro"},
      {"--self", "lane_write_lat", "--mode", "uno"},
      {"--self", "lane_write_lat", "--spread", "64M"},
      {"--self", "lane_atomic_lat", "--size", "16"},
      {"--self", "write_bw", "--blocks", "4"},
      {"--self", "--plan", "x"},
      {"server", "--entries", "4"},
      {"--self", "kv", "--size", "64"},
      {"--self", "kv", "--depth", "8"},
      {"--self", "kv", "--jetties", "2"},
      {"--self", "kv", "--threads", "2"},
      {"--self", "kv", "--signal-every", "2"},
      {"--self", "kv", "--fence-every", "2"},
      {"--self", "kv", "--limit"},
      {"--self", "kv", "--rate", "5K"},
      {"--self", "kv", "--bidirectional"},
      {"--self", "kv", "--pattern", "incast"},
      {"--self", "kv", "--plot", "x.svg"},
      {"--self", "kv", "--spread", "64M"},
      {"--self", "kv", "--mode", "uno"},
      {"--self", "kv", "--blocks", "0"},
      {"--self", "kv", "--blocks", "16385"},
      {"--self", "kv", "--block", "2G"},
      {"--self", "kv", "--block", "1G", "--blocks", "9"},
      {"--self", "kv", "--entries", "0"},
      {"--self", "kv", "--entries", "1,2000"},
      {"--self", "kv", "--entries", "4", "--sweep"},
      {"--self", "kv", "--plan", ""},
      {"--self", "kv", "--plan", "/nonexistent/x"},
      {"--self", "kv", "--plan", "/"},
      {"--self", "kv", "--plan", "/dev/null"},
      {"--self", "kv", "--plan", "/dev/zero"},
      {"--self", "kv", "--plan", "x", "--blocks", "4"},
      {"--self", "kv", "--plan", "x", "--block", "4"},
      {"--self", "kv", "--sweep", "--hist", "x"},
      {"--self", "write_bw", "--fail-if", "prep>10us"},
  };
  for (const auto& words : nonsense) {
    const std::string why = refusal(words);
    CAPTURE(words);
    REQUIRE(why.find("Fix: ") != std::string::npos);
  }
}

TEST_CASE("kv has a row for its blocks, and one for each length of lists") {
  const std::vector<Case> plain = parse({"--self", "kv"}).cases();
  REQUIRE(plain.size() == 1);
  CHECK(plain[0].bytes == 351'535'104);
  CHECK(plain[0].depth == 298);
  CHECK(plain[0].plan.blocks == 298);
  CHECK(plain[0].plan.block_bytes == 1'179'648);
  CHECK(plain[0].plan.entries == 0);
  const std::vector<Case> lists =
      parse({"--self", "kv", "--block", "64K", "--blocks", "40", "--entries", "1,128"}).cases();
  REQUIRE(lists.size() == 3);
  CHECK(lists[1].plan.entries == 1);
  CHECK(lists[1].depth == 1);
  CHECK(lists[2].plan.works == 3);
  CHECK(lists[2].depth == 3);
  CHECK(parse({"--self", "kv", "--sweep"}).cases().size() == 9);
  CHECK(parse({"--self", "kv", "--fail-if", "of_one<0.95", "--fail-if", "prep>10us"})
            .thresholds.size() == 2);
  // The server reads the case from a message of the client.
  json sent = lists[2];
  const Case read = sent.get<Case>();
  CHECK(objection(read).empty());
  CHECK(Layout(read).bytes() == Layout(lists[2]).bytes());
  CHECK(Layout(read).ledger_bytes() == Layout(lists[2]).ledger_bytes());
  for (const auto& [field, value] :
       std::vector<std::pair<const char*, uint64_t>>{{"blocks", 0},
                                                     {"blocks", 16385},
                                                     {"source_bytes", UINT64_MAX},
                                                     {"target_bytes", 1ull << 34},
                                                     {"bytes", UINT64_MAX},
                                                     {"jetties", 2},
                                                     {"depth", 0},
                                                     {"depth", 1 << 20}}) {
    CAPTURE(field, value);
    json hostile = sent;
    hostile[field] = value;
    CHECK_FALSE(objection(hostile.get<Case>()).empty());
  }
}

TEST_CASE("each thread has a lane of its own, as many as a device has") {
  REQUIRE(parse({"--self", "lane_read_lat"}).cases().front().jetties == 1);
  const Options most = parse({"--self", "lane_read_lat", "--threads", "8", "--spread", "64M"});
  REQUIRE(most.cases().front().jetties == max_lanes);
  REQUIRE(parse({"--self", "lane_write_lat", "--device", "cxl:", "--size", "1G"}).threads == 1);
  REQUIRE(parse({"--self", "lane_atomic_lat", "--sweep"}).cases().size() == 4);
}

TEST_CASE("a device with several engines is not inlined, unless that is asked for") {
  const auto mode = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--self", "write_bw"});
    return parse(words).threads_mode->name;
  };
  REQUIRE(mode({"--device", "cxl:"}) == "inlined");
  REQUIRE(mode({"--device", "cxl:?engines=2"}) == "automatic");
  REQUIRE(mode({"--device", "udp:", "--peer-device", "udp:?engines=2"}) == "automatic");
  REQUIRE(mode({"--device", "cxl:?engines=2", "--served"}) == "served");
  REQUIRE(mode({"--device", "cxl:?engines=2", "--inline"}) == "inlined");
}

TEST_CASE("control messages are read as they were written") {
  const Options options = parse({"--self", "read_bw", "--size", "4K", "--no-verify"});
  const Setup sent{.what = options.cases().front(),
                   .side = {.segment = "urma1 ...",
                            .jetties = {{1, 2}, {3, 4}},
                            .engines = {"urma1 +++", "urma1 ---"},
                            .engine_of = {1, 0}},
                   .raw = "127.0.0.1:5"};
  const Message message =
      parse_message(to_text({.id = 9, .type = "setup", .body = sent}, wording()));
  REQUIRE(message.id == 9);
  REQUIRE(message.type == "setup");
  const auto got = body_of<Setup>(message);
  REQUIRE(got.what.test == sent.what.test);
  REQUIRE(got.what.bytes == 4096);
  REQUIRE(got.what.signal_every == 1);
  REQUIRE(!got.what.verify);
  REQUIRE(got.side.jetties == sent.side.jetties);
  REQUIRE(got.side.engines == sent.side.engines);
  REQUIRE(got.side.engine_of == sent.side.engine_of);
  REQUIRE(got.raw == sent.raw);
}

TEST_CASE("a setup with a number that none of its fields can have is refused") {
  const json good = Setup{.what = parse({"--self", "read_bw"}).cases().front(),
                          .side = {.segment = "urma1 ...",
                                   .jetties = {{1, 2}},
                                   .engines = {"urma1 +++"},
                                   .engine_of = {0}},
                          .raw = ""};
  const auto understood = [](const json& body) {
    try {
      body_of<Setup>({.id = 1, .type = "setup", .body = body});
      return true;
    } catch (const NotUnderstood&) {
      return false;
    }
  };
  REQUIRE(understood(good));
  for (const char* field : {"bytes", "depth", "jetties", "seed", "signal_every"}) {
    for (const json& value : {json(-1), json(1.5), json("1"), json(nullptr)}) {
      json body = good;
      body["what"][field] = value;
      CAPTURE(body.dump());
      CHECK_FALSE(understood(body));
    }
  }
  json body = good;
  body["side"]["jetties"] = json::array({json::array({1, -2})});
  CHECK_FALSE(understood(body));
}

}  // namespace urma::apps::perf
