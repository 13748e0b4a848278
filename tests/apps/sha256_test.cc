// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/sha256.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "tests/catch.h"

namespace urma::apps::notify {
namespace {

std::string digest(std::string_view text, Sha256 sha) {
  sha.add(std::as_bytes(std::span(text)));
  return sha.hex();
}

TEST_CASE("SHA-256 has the digests of FIPS 180-4 and of sha256sum") {
  std::vector<Sha256::Blocks> all = {Sha256::portable};
  if (Sha256::accelerated() != nullptr) all.push_back(Sha256::accelerated());
  for (const auto blocks : all) {
    CHECK(digest("", Sha256(blocks)) ==
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest("abc", Sha256(blocks)) ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", Sha256(blocks)) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest(std::string(1'000'000, 'a'), Sha256(blocks)) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST_CASE("SHA-256 of pieces is that of the whole, by each implementation") {
  Prng prng(3);
  for (int round = 0; round < 300; ++round) {
    std::string text(prng.below(400), ' ');
    for (char& c : text) c = static_cast<char>(prng.below(256));
    Sha256 pieces;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t some = std::min<size_t>(1 + prng.below(100), rest.size());
      pieces.add(std::as_bytes(std::span(rest.substr(0, some))));
      rest.remove_prefix(some);
    }
    CHECK(pieces.hex() == digest(text, Sha256(Sha256::portable)));
  }
}

}  // namespace
}  // namespace urma::apps::notify
