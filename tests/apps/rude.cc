// A sender that breaks every rule of urma_notify's dialogue: rude ADDRESS
//
// It sends texts that are not messages, bodies with invalid numbers, and then a thousand questions
// whose answers it does not take. It prints the answers to its invalid offers.
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "urma/urma.hpp"

using namespace std::chrono_literals;

namespace {

class Rude {
 public:
  explicit Rude(const std::string& address)
      : device_(urma::open("udp:").value()),
        receiver_(device_.import("urma://" + address + "/urma_notify", 10s).value().jetty),
        jetty_(device_.jetty({.berths = 64, .receives = 64}).value()) {}

  // The end of an offer's body, behind the Jetty where answers go.
  std::string offer(const std::string& rest) const {
    return R"({"id":1,"type":"offer","body":{"speaks":1,"version":"0","jetty":")" +
           jetty_.descriptor() + R"(",)" + rest + "}}";
  }

  // Sends the text, and returns once it was taken.
  void say(const std::string& text) {
    while (jetty_.post(urma::send(std::as_bytes(std::span(text)), receiver_)) != 1) take();
    while (sent_ == 0) take();
    --sent_;
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

void be_rude(const std::string& address) {
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
  const std::string accepted =
      rude.ask(rude.offer(R"("name":"flooded","bytes":9,"replace":false)"));
  constexpr std::string_view field = R"("transfer":)";
  const size_t at = accepted.find(field);
  if (at == accepted.npos) throw std::runtime_error(accepted);
  const size_t number = at + field.size();
  const std::string transfer =
      accepted.substr(number, accepted.find_first_not_of("0123456789", number) - number);
  const std::string checks =
      R"({"id":9,"type":"checks","body":{"transfer":)" + transfer + R"(,"block":0}})";
  for (int i = 0; i < 1000; ++i) rude.say(checks);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: rude ADDRESS");
  be_rude(arguments[1]);
} catch (const std::exception& why) {
  return std::fprintf(stderr, "rude: %s\n", why.what()), 1;
}
