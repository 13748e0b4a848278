// SPDX-License-Identifier: Apache-2.0
// A sender that breaks every rule of urma_notify's dialogue: rude ADDRESS
//
// It sends texts that are not messages, bodies with invalid numbers, and questions whose answers it
// does not take. It prints the answers to its invalid offers.
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/urma_notify/sha256.h"
#include "urma/urma.hpp"

using namespace std::chrono_literals;

namespace {

// The most answers that the receiver keeps for one sender: 32 in berths, 64 that wait.
constexpr size_t most_answers = 32 + 64;

class Rude {
 public:
  explicit Rude(const std::string& address)
      : device_(urma::open("udp:").value()),
        receiver_(device_.import("urma://" + address + "/urma_notify", 10s).value().jetty),
        jetty_(device_.jetty({.berths = 64, .receives = 64}).value()) {}

  // Returns an offer that names this sender's Jetty for answers; `rest` is the rest of its body.
  std::string offer(const std::string& rest) const {
    return R"({"id":1,"type":"offer","body":{"speaks":2,"version":"0","jetty":")" +
           jetty_.descriptor() + R"(","attributes":{"mode":420,"seconds":0,"nanoseconds":0},)" +
           rest + "}}";
  }

  // Sends the text several times, and returns once all were taken.
  void say(const std::string& text, size_t times = 1) {
    sent_ = 0;
    for (size_t i = 0; i < times; ++i) {
      while (jetty_.post(urma::send(std::as_bytes(std::span(text)), receiver_)) != 1) take();
    }
    while (sent_ < times) take();
  }
  // Sends the text, and returns the answer.
  std::string ask(const std::string& text) {
    if (!jetty_.receive(answer_, 1)) throw std::runtime_error("a buffer was refused");
    answer_bytes_ = 0;
    say(text);
    for (int turns = 0; turns < 1000 && answer_bytes_ == 0; ++turns) take();
    if (answer_bytes_ == 0) throw std::runtime_error("no answer to " + text);
    return {reinterpret_cast<const char*>(answer_.data()), answer_bytes_};
  }
  // Offers a file, and returns a question's text as far as its body has the transfer's number.
  std::string question(const std::string& name, int bytes) {
    const std::string accepted = ask(offer(R"("name":")" + name + R"(","bytes":)" +
                                           std::to_string(bytes) + R"(,"replace":false)"));
    constexpr std::string_view field = R"("transfer":)";
    const size_t at = accepted.find(field);
    if (at == accepted.npos) throw std::runtime_error(accepted);
    const size_t number = at + field.size();
    return R"({"id":9,"body":{"block":0,"transfer":)" +
           accepted.substr(number, accepted.find_first_not_of("0123456789", number) - number);
  }

 private:
  void take() {
    for (const urma::Completion& one : jetty_.wait(10ms)) {
      if (one.operation == urma::Operation::send) ++sent_;
      if (one.operation == urma::Operation::receive && one.ok()) answer_bytes_ = one.bytes;
    }
  }

  urma::Device device_;
  urma::RemoteJetty receiver_;
  std::array<std::byte, 64 * 1024> answer_{};
  size_t answer_bytes_ = 0;
  size_t sent_ = 0;
  urma::Jetty jetty_;
};

constexpr const char* checks = R"(},"type":"checks"})";

void say_nonsense(const std::string& address) {
  Rude rude(address);
  for (const char* text : {
           "no JSON",
           "[]",
           R"({"id":-1,"type":"checks","body":{"transfer":1,"block":0}})",
           R"({"id":1.5,"type":"checks","body":{"transfer":1,"block":0}})",
           R"({"id":1,"type":"checks","body":{"transfer":-1,"block":0}})",
           R"({"id":1,"type":"checks","body":{"transfer":4294967296,"block":0}})",
           R"({"id":1,"type":7,"body":{}})",
           R"({"id":1,"type":"offer","body":{"jetty":7}})",
           R"({"id":1,"type":"offer","body":{"jetty":"not a descriptor"}})",
       }) {
    rude.say(text);
  }
  for (const char* rest : {
           R"("name":"x","bytes":-1,"replace":false)",
           R"("bytes":1,"replace":false)",
           R"("name":"x","bytes":1,"replace":7)",
       }) {
    std::puts(rude.ask(rude.offer(rest)).c_str());
  }
}

void take_no_answers(const std::string& address) {
  Rude rude(address);
  rude.say(rude.question("flooded", 9) + checks, 1000);
}

// Floods the receiver until it has no room for the message that this transfer has failed.
void take_no_failure(const std::string& address) {
  Rude rude(address);
  rude.say(rude.question("failed", 9) + checks, most_answers);
  rude.say("no JSON");
}

// Floods the receiver until it has no room for the message that this empty file is complete.
void take_no_success(const std::string& address) {
  Rude rude(address);
  const std::string question = rude.question("complete", 0);
  rude.ask(question + R"(},"type":"begin"})");
  rude.say(question + checks, most_answers);
  rude.say(question + R"(,"sha256":")" + urma::apps::notify::Sha256().hex() +
           R"("},"type":"finish"})");
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: rude ADDRESS");
  say_nonsense(arguments[1]);
  take_no_answers(arguments[1]);
  take_no_failure(arguments[1]);
  take_no_success(arguments[1]);
} catch (const std::exception& why) {
  return std::fprintf(stderr, "rude: %s\n", why.what()), 1;
}
