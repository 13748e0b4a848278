// SPDX-License-Identifier: Apache-2.0
// Plays NIXL's agent: loads the plugin, and calls it as NIXL 1.4 does.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"
#include "tests/nixl/agent.h"

namespace urma::test {
namespace {

using Range = Agent::Range;

void fill(std::vector<std::byte>& memory, uint64_t seed) {
  Prng prng(seed);
  for (std::byte& one : memory) one = static_cast<std::byte>(prng.next());
}

// Calls `test` with each medium.
template <class Test>
void on_each(Test test) {
  const Media media;
  for (const std::string& device : media.devices()) {
    INFO(device);
    test(device);
  }
}

}  // namespace

TEST_CASE("the plugin says what it is") {
  nixlBackendPlugin& plugin = load_plugin();
  CHECK(plugin.api_version == NIXL_PLUGIN_API_VERSION);
  CHECK(std::string(plugin.get_plugin_name()) == "URMA");
  CHECK(!std::string(plugin.get_plugin_version()).empty());
  CHECK(plugin.get_backend_mems() == nixl_mem_list_t{DRAM_SEG, VRAM_SEG});
  const nixl_b_params_t options = plugin.get_backend_options();
  CHECK(options.at("depth") == "1024");
  CHECK(options.count("ucx_error_handling_mode") == 0);
}

TEST_CASE("random lists of ranges are written and read") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    Prng prng(1);
    const std::string note = "done";
    for (int round = 0; round < 30; ++round) {
      fill(a.memory, prng.next());
      fill(b.memory, prng.next());
      const bool reads = prng.chance(.5);
      std::vector<std::byte> expected = reads ? a.memory : b.memory;
      const std::vector<std::byte>& from = reads ? b.memory : a.memory;
      std::vector<Range> ranges;
      size_t at = 0;
      while (at < a.memory.size() && ranges.size() < 200) {
        const size_t bytes =
            std::min<size_t>(prng.below(round < 20 ? 3000 : 400'000), a.memory.size() - at);
        // Each range lies elsewhere at the source, and some continue the one before.
        const size_t source = prng.chance(.5) ? at : prng.between(0, a.memory.size() - bytes);
        ranges.push_back(reads ? Range{at, source, bytes} : Range{source, at, bytes});
        std::copy_n(from.begin() + static_cast<ptrdiff_t>(source), bytes,
                    expected.begin() + static_cast<ptrdiff_t>(at));
        at += bytes + prng.below(100);
      }
      REQUIRE(a.run(reads ? NIXL_READ : NIXL_WRITE, ranges, &note) == NIXL_SUCCESS);
      const notif_list_t notes = b.notes(1);
      REQUIRE(notes == notif_list_t{{"a", "done"}});
      REQUIRE((reads ? a.memory : b.memory) == expected);
    }
  });
}

TEST_CASE("a request is posted again and again") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    std::vector<Range> ranges;
    for (size_t i = 0; i < 298; ++i) ranges.push_back({i * 3000, i * 2900, 2000});
    nixlBackendReqH* const handle = a.prepare(NIXL_WRITE, ranges);
    REQUIRE(handle != nullptr);
    CHECK(a.engine().checkXfer(handle) == NIXL_ERR_NOT_POSTED);
    for (uint32_t round = 0; round < 20; ++round) {
      fill(a.memory, round);
      const std::string note = std::to_string(round);
      const nixl_status_t posted = a.post(handle, &note);
      if (posted == NIXL_IN_PROG) CHECK(a.post(handle) == NIXL_ERR_REPOST_ACTIVE);
      REQUIRE(a.finish(handle, posted) == NIXL_SUCCESS);
      CHECK(b.notes(1) == notif_list_t{{"a", note}});
      for (const Range& one : ranges) {
        REQUIRE(std::equal(a.memory.begin() + static_cast<ptrdiff_t>(one.here),
                           a.memory.begin() + static_cast<ptrdiff_t>(one.here + one.bytes),
                           b.memory.begin() + static_cast<ptrdiff_t>(one.there)));
      }
    }
    a.engine().releaseReqH(handle);
  });
}

TEST_CASE("more ranges than the depth of the queue") {
  on_each([](const std::string& device) {
    Agent a("a", device, 1 << 20, {{"depth", "4"}});
    Agent b("b", device);
    a.load(b);
    fill(a.memory, 5);
    std::vector<Range> ranges;
    for (size_t i = 0; i < 1000; ++i) ranges.push_back({i * 1000, i * 1001, 999});
    const std::string note(100'000, 'x');
    CHECK(a.run(NIXL_WRITE, ranges, &note) == NIXL_SUCCESS);
    CHECK(b.notes(1).at(0).second == note);
    CHECK(std::equal(a.memory.begin() + 999'000, a.memory.begin() + 999'999,
                     b.memory.begin() + 999'999));
  });
}

TEST_CASE("an agent transfers to itself") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    a.load_itself();
    fill(a.memory, 9);
    const std::string note = "to myself";
    REQUIRE(a.run(NIXL_WRITE, {{0, 500'000, 100'000}}, &note) == NIXL_SUCCESS);
    CHECK(std::equal(a.memory.begin(), a.memory.begin() + 100'000, a.memory.begin() + 500'000));
    CHECK(a.notes(1) == notif_list_t{{"a", note}});
    REQUIRE(a.run(NIXL_READ, {{700'000, 0, 100'000}}) == NIXL_SUCCESS);
    CHECK(std::equal(a.memory.begin(), a.memory.begin() + 100'000, a.memory.begin() + 700'000));
  });
}

TEST_CASE("notifications arrive once each, whatever their length") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    std::vector<std::string> sent = {"", "short", std::string(8000, 'y'), std::string(8192, 'z'),
                                     std::string(3 << 20, '\0')};
    for (int i = 0; i < 1000; ++i) sent.push_back("number " + std::to_string(i));
    for (const std::string& text : sent) {
      REQUIRE(a.engine().genNotif("b", text) == NIXL_SUCCESS);
    }
    std::vector<std::string> arrived;
    for (auto& [from, text] : b.notes(sent.size())) {
      CHECK(from == "a");
      arrived.push_back(text);
    }
    std::ranges::sort(sent);
    std::ranges::sort(arrived);
    CHECK(arrived == sent);
    CHECK(a.engine().genNotif("nobody", "x") == NIXL_ERR_NOT_FOUND);
  });
}

TEST_CASE("a notification that finds no room leaves without a further call") {
  on_each([](const std::string& device) {
    Agent a("a", device, 4096, {{"depth", "4"}});
    Agent b("b", device, 4096);
    a.load(b);
    const std::string text(1 << 20, 'x');  // 129 messages
    REQUIRE(a.engine().genNotif("b", text) == NIXL_SUCCESS);
    CHECK(b.notes(1) == notif_list_t{{"a", text}});
  });
}

TEST_CASE("several threads post their own requests") {
  on_each([](const std::string& device) {
    constexpr size_t each = 1 << 18;
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    fill(a.memory, 3);
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const std::vector<Range> ranges = {{i * each, i * each, 100'000},
                                           {i * each + 120'000, i * each + 120'000, 100'000}};
        for (int round = 0; round < 50; ++round) {
          // `prepare` stores its status in the agent, so threads make their own lists.
          nixl_meta_dlist_t here(DRAM_SEG);
          nixl_meta_dlist_t there(DRAM_SEG);
          for (const Range& one : ranges) {
            here.addDesc({reinterpret_cast<uintptr_t>(a.memory.data()) + one.here, one.bytes, 0});
            there.addDesc(a.meta(one));
          }
          nixlBackendReqH* handle = nullptr;
          nixl_opt_b_args_t options;
          options.hasNotif = true;
          options.notifMsg = std::to_string(i);
          const auto prepared = a.engine().prepXfer(NIXL_WRITE, here, there, "b", handle, &options);
          nixl_status_t status = prepared;
          if (prepared == NIXL_SUCCESS) {
            status = a.engine().postXfer(NIXL_WRITE, here, there, "b", handle, &options);
            status = a.finish(handle, status);
            a.engine().releaseReqH(handle);
          }
          if (status != NIXL_SUCCESS) ++failed;
        }
      });
    }
    const size_t notes = b.notes(200).size();
    for (std::thread& thread : threads) thread.join();
    CHECK(failed == 0);
    CHECK(notes == 200);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(std::equal(a.memory.begin() + static_cast<ptrdiff_t>(i * each),
                       a.memory.begin() + static_cast<ptrdiff_t>(i * each + 100'000),
                       b.memory.begin() + static_cast<ptrdiff_t>(i * each)));
    }
  });
}

TEST_CASE("what another agent says is checked") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    nixlBackendMD* memory = nullptr;
    CHECK(a.engine().loadRemoteConnInfo("b", "") == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().loadRemoteConnInfo("b", "ucx address") == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().loadRemoteConnInfo("b", "urma-nixl 2 urma1 at=x") == NIXL_ERR_MISMATCH);
    CHECK(a.engine().loadRemoteConnInfo("b", "urma-nixl 1 urma1 at=x") == NIXL_ERR_INVALID_PARAM);
    // Memory in place of a mailbox.
    CHECK(a.engine().loadRemoteConnInfo("b", "urma-nixl 1 " + b.published().metaInfo) ==
          NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().connect("b") == NIXL_ERR_NOT_FOUND);
    CHECK(a.engine().disconnect("b") == NIXL_ERR_NOT_FOUND);
    nixlBlobDesc published = b.published();
    const std::string whole = published.metaInfo;
    for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
      published.metaInfo = whole.substr(0, bytes);
      if (a.engine().loadRemoteMD(published, DRAM_SEG, "b", memory) == NIXL_SUCCESS) {
        a.engine().unloadMD(memory);  // a shorter number of a token is a number, too
      }
    }
    published.metaInfo = b.info().substr(12);  // a mailbox in place of memory
    CHECK(a.engine().loadRemoteMD(published, DRAM_SEG, "b", memory) == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().loadRemoteMD(b.published(), FILE_SEG, "b", memory) == NIXL_ERR_NOT_SUPPORTED);
    nixlBlobDesc nothing(0, 4096, 0);
    CHECK(a.engine().registerMem(nothing, DRAM_SEG, memory) == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().registerMem(b.published(), FILE_SEG, memory) == NIXL_ERR_NOT_SUPPORTED);
  });
}

TEST_CASE("lists that do not fit are refused before anything moves") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    const size_t end = b.memory.size();
    const std::vector<Range> outside = {{0, end - 10, 11}, {0, end, 1}, {0, SIZE_MAX - 5, 10}};
    for (const Range& one : outside) {
      CHECK(a.prepare(NIXL_WRITE, {one}) == nullptr);
      CHECK(a.prepared() == NIXL_ERR_INVALID_PARAM);
    }
    CHECK(a.run(NIXL_WRITE, {{0, end, 0}}) == NIXL_SUCCESS);
    nixl_meta_dlist_t here(DRAM_SEG);
    nixl_meta_dlist_t there(DRAM_SEG);
    nixlBackendReqH* handle = nullptr;
    here.addDesc({reinterpret_cast<uintptr_t>(a.memory.data()), 10, 0});
    CHECK(a.engine().prepXfer(NIXL_WRITE, here, there, "b", handle) == NIXL_ERR_INVALID_PARAM);
    there.addDesc({reinterpret_cast<uintptr_t>(b.memory.data()), 10, 0});  // no memory
    CHECK(a.engine().prepXfer(NIXL_WRITE, here, there, "b", handle) == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().prepXfer(NIXL_WRITE, nixl_meta_dlist_t(FILE_SEG), there, "b", handle) ==
          NIXL_ERR_NOT_SUPPORTED);
    CHECK(a.engine().checkXfer(nullptr) == NIXL_ERR_INVALID_PARAM);
    CHECK(a.engine().releaseReqH(nullptr) == NIXL_ERR_INVALID_PARAM);
  });
}

TEST_CASE("options are checked") {
  const Media media;
  const std::string device = media.devices().front();
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"depth", "0"},
                                                        {"depth", "many"},
                                                        {"depth", "99999"},
                                                        {"depth", ""},
                                                        {"timeout_ms", "1"},
                                                        {"timeout_ms", "10s"},
                                                        {"guarded", "perhaps"}}) {
    INFO(name << "=" << value);
    CHECK_THROWS(Agent("a", device, 4096, {{name, value}}));
  }
  CHECK_THROWS(Agent("a", "nonsense:"));
  CHECK_NOTHROW(Agent("a", device, 4096, {{"ucx_error_handling_mode", "peer"}}));
}

TEST_CASE("memory that is no longer registered is not written") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    fill(a.memory, 1);
    nixlBackendReqH* const handle = a.prepare(NIXL_WRITE, {{0, 0, 100'000}});
    REQUIRE(a.finish(handle, a.post(handle)) == NIXL_SUCCESS);
    b.deregister();
    const std::vector<std::byte> before = b.memory;
    fill(a.memory, 2);
    const std::string note = "not true";
    CHECK(a.finish(handle, a.post(handle, &note)) == NIXL_ERR_REMOTE_DISCONNECT);
    CHECK(b.memory == before);
    // The notification of a transfer that failed does not arrive; a later one does.
    REQUIRE(a.engine().genNotif("b", "true") == NIXL_SUCCESS);
    CHECK(b.notes(1) == notif_list_t{{"a", "true"}});
    a.engine().releaseReqH(handle);
  });
}

TEST_CASE("an agent ends and starts again under its name") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    fill(a.memory, 1);
    const std::string note = "x";
    for (int round = 0; round < 5; ++round) {
      auto b = std::make_unique<Agent>("b", device);
      a.load(*b);
      REQUIRE(a.run(NIXL_WRITE, {{0, 0, 300'000}}, &note) == NIXL_SUCCESS);
      REQUIRE(b->notes(1).size() == 1);
      nixlBackendReqH* const handle = a.prepare(NIXL_WRITE, {{0, 0, 1'000'000}});
      nixl_status_t status = NIXL_IN_PROG;
      if (round % 2 != 0) status = a.post(handle, &note);
      b.reset();
      if (round % 2 == 0) status = a.post(handle, &note);
      const auto begin = std::chrono::steady_clock::now();
      status = a.finish(handle, status);
      if (round % 2 == 0 || status != NIXL_SUCCESS) CHECK(status == NIXL_ERR_REMOTE_DISCONNECT);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
      a.engine().releaseReqH(handle);
    }
  });
}

TEST_CASE("requests to an agent whose metadata were loaded again are to be prepared again") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    auto b = std::make_unique<Agent>("b", device);
    a.load(*b);
    nixlBackendReqH* const old = a.prepare(NIXL_WRITE, {{0, 0, 300'000}});
    REQUIRE(a.finish(old, a.post(old)) == NIXL_SUCCESS);
    b = std::make_unique<Agent>("b", device);
    a.load(*b);
    CHECK(a.finish(old, a.post(old)) == NIXL_ERR_REMOTE_DISCONNECT);
    CHECK(a.engine().releaseReqH(old) == NIXL_SUCCESS);
    CHECK(a.run(NIXL_WRITE, {{0, 0, 300'000}}) == NIXL_SUCCESS);
  });
}

TEST_CASE("a child of a fork has no agent, and its requests end") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    nixlBackendReqH* const prepared = a.prepare(NIXL_WRITE, {{0, 0, 300'000}});
    nixlBackendReqH* const posted = a.prepare(NIXL_WRITE, {{0, 0, 300'000}, {1, 600'000, 9}});
    const nixl_status_t status = a.post(posted);
    const pid_t child = fork();
    if (child == 0) {
      // No check may throw here: the child must not run the rest of this program.
      nixl_status_t ended = a.engine().checkXfer(posted);
      const bool posted_ended = ended == (status == NIXL_IN_PROG ? NIXL_ERR_BACKEND : status);
      ended = a.post(prepared);
      if (ended == NIXL_IN_PROG) ended = a.engine().checkXfer(prepared);
      const std::string text = "from the child";
      const bool told = a.engine().genNotif("b", text) == NIXL_SUCCESS;
      _exit((posted_ended ? 0 : 1) | (ended == NIXL_ERR_BACKEND ? 0 : 2) | (told ? 4 : 0));
    }
    int code = 0;
    REQUIRE(waitpid(child, &code, 0) == child);
    REQUIRE(WIFEXITED(code));
    CHECK(WEXITSTATUS(code) == 0);
    // The parent's requests are as before.
    CHECK(a.finish(posted, status) == NIXL_SUCCESS);
    CHECK(a.finish(prepared, a.post(prepared)) == NIXL_SUCCESS);
    CHECK(a.engine().releaseReqH(posted) == NIXL_SUCCESS);
    CHECK(a.engine().releaseReqH(prepared) == NIXL_SUCCESS);
  });
}

TEST_CASE("a request is released while its works are outstanding") {
  on_each([](const std::string& device) {
    Agent a("a", device);
    Agent b("b", device);
    a.load(b);
    fill(a.memory, 4);
    const std::string note = "never";
    for (int round = 0; round < 20; ++round) {
      nixlBackendReqH* const handle = a.prepare(NIXL_WRITE, {{0, 0, 500'000}, {1, 600'000, 9}});
      (void)a.post(handle, &note);
      CHECK(a.engine().releaseReqH(handle) == NIXL_SUCCESS);
    }
    CHECK(a.run(NIXL_WRITE, {{0, 0, 1000}}) == NIXL_SUCCESS);
  });
}

}  // namespace urma::test
