// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_line.h"

#include <array>

#include "tests/catch.h"

namespace urma::apps {
namespace {

struct Colour {
  std::string_view name;
  int value;
};
constexpr std::array<Colour, 2> colours = {{{"red", 1}, {"blue", 2}}};

struct Values {
  std::string word;
  std::string host = "localhost";
  std::optional<uint64_t> count;
  uint32_t depth = 7;
  uint64_t bytes = 0;
  std::vector<uint64_t> sizes;
  std::optional<double> seconds;
  uint64_t rate = 0;
  const Colour* colour = nullptr;
  std::vector<std::string> devices;
  bool loud = false;
  bool quiet = false;
};

// A command line with an option of each type.
class Line {
 public:
  Line() {
    line_.text("word", values.word);
    line_.value("host", values.host, Host{});
    line_.value("--count", values.count, WholeNumber{.least = 1});
    line_.value("--depth", values.depth, WholeNumber{1, 64});
    line_.value("--bytes", values.bytes, Bytes{1 << 20});
    line_.value("--sizes", values.sizes, ListOf{Bytes{1 << 20}});
    line_.value("--seconds", values.seconds, Seconds{0.5, 60});
    line_.value("--rate", values.rate, BitRate{1e8, 8e11});
    line_.value("--colour", values.colour, OneOf{colours});
    line_.texts("--device", values.devices);
    line_.flag("-l,--loud", values.loud);
    line_.flag("--quiet", values.quiet);
  }

  CommandLine::Asked parse(std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return line_.parse(static_cast<int>(arguments.size()), arguments.data());
  }
  const CommandLine& operator*() const { return line_; }

  Values values;

 private:
  CommandLine line_{"program"};
};

// Returns the message of the refusal; empty if the words are accepted.
std::string refusal(std::vector<std::string> words) {
  try {
    Line().parse(std::move(words));
    return "";
  } catch (const Failure& failure) {
    CHECK(failure.exit() == Exit::usage);
    return failure.what();
  }
}

TEST_CASE("command line: each option has the value that was given, or its default") {
  Line line;
  line.parse({"word", "10.0.0.5:99", "--count", "18446744073709551615", "--bytes", "1M", "--sizes",
              "64,4K,010", "--seconds", "1e1", "--rate", "2.5Gbit", "--colour", "blue", "--device",
              "a", "--device", "b", "-l"});
  CHECK(line.values.word == "word");
  CHECK(line.values.host == "10.0.0.5:99");
  CHECK(line.values.count == UINT64_MAX);
  CHECK(line.values.depth == 7);
  CHECK(line.values.bytes == 1 << 20);
  CHECK(line.values.sizes == std::vector<uint64_t>{64, 4096, 10});
  CHECK(line.values.seconds == 10);
  CHECK(line.values.rate == 312'500'000);
  CHECK(line.values.colour == &colours[1]);
  CHECK(line.values.devices == std::vector<std::string>{"a", "b"});
  CHECK(line.values.loud);
  CHECK(!line.values.quiet);
  CHECK((*line).given("--loud"));
  CHECK((*line).given("host"));
  CHECK(!(*line).given("--depth"));
  CHECK((*line).first_given({"--depth", "--bytes", "--count"}) == "--bytes");
  CHECK(!(*line).first_given({"--depth", "--quiet"}));
}

TEST_CASE("command line: a value of another form is refused, with what is valid") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> forms = {
      {"--depth", {"", "0", "65", "-1", "+1", "0x10", "1.5", " 1", "1 ", "x", "1K"}},
      {"--count", {"0", "18446744073709551616"}},
      {"--bytes", {"0", "2M", "4k", "4KB", "4 K", "17179869184G", "K"}},
      {"--sizes", {"", "64,", ",64", "64,,64", "64,2M"}},
      {"--seconds", {"nan", "inf", "0.4", "61", "1s", ""}},
      {"--rate", {"", "1", "1G", "1gbit", "99Mbit", "801Gbit", "-1Gbit", "nanGbit", "Gbit"}},
      {"--colour", {"green", "", "RED", "1"}},
  };
  for (const auto& [option, words] : forms) {
    for (const std::string& word : words) {
      CAPTURE(option, word);
      const std::string why =
          word.empty() ? refusal({option, word}) : refusal({option + "=" + word});
      CHECK(why.starts_with(option + ": \"" + word + "\" is invalid. Fix: give "));
    }
  }
  CHECK(refusal({"--depth", "65"}).ends_with("give a whole number from 1 to 64"));
  CHECK(refusal({"--bytes", "2M"}).ends_with("give 1 to 1M bytes, as 64, 4K or 1M"));
  CHECK(refusal({"--rate", "1"}).ends_with("give 100Mbit to 800Gbit, as 100Mbit or 2.5Gbit"));
  CHECK(refusal({"--colour", "1"}).ends_with("give one of red, blue"));
  CHECK(refusal({"word", "a/b"}).ends_with("give localhost, ADDRESS or ADDRESS:PORT"));
}

TEST_CASE("command line: misspelt and unknown options are refused, and the nearest is named") {
  CHECK(refusal({"--deepth", "1"}) ==
        "\"--deepth\" is not an option of program. Fix: perhaps --depth; see program --help");
  CHECK(refusal({"--xyzzyxyzzy"}) ==
        "\"--xyzzyxyzzy\" is not an option of program. Fix: see program --help");
  CHECK(refusal({"a", "b", "c"}) == "\"c\" is one word too many. Fix: see program --help");
  const std::string takes_one = "--depth takes one value, and may be given once. Fix: see program";
  CHECK(refusal({"--depth"}).starts_with(takes_one));
  CHECK(refusal({"--depth", "1", "--depth", "2"}).starts_with(takes_one));
  CHECK(refusal({"--loud=maybe"}) == "--loud takes no value. Fix: give it alone");
}

TEST_CASE("command line: values are not checked when the user asks for help") {
  using Asked = CommandLine::Asked;
  CHECK(Line().parse({"--depth", "x", "--help"}) == Asked::help);
  CHECK(Line().parse({"-h", "--version"}) == Asked::help);
  CHECK(Line().parse({"--version"}) == Asked::version);
  CHECK(Line().parse({}) == Asked::nothing);
  CHECK(!refusal({"--help", "--no-such-option"}).empty());
  CHECK(!refusal({"--help-all"}).empty());
}

TEST_CASE("command line: what a shell offers for an option is described by the help") {
  CommandWords words{.program = "program",
                     .options = {{.names = {"-l", "--loud"}},
                                 {.names = {"--quiet"}},
                                 {.names = {"--file"}, .value = {.placeholder = "VALUE"}},
                                 {.names = {"--error"}},
                                 {.names = {"--speaks"}, .value = {.placeholder = "VALUE"}},
                                 {.names = {"-h", "--help"}, .meaning = "print the help"}}};
  words.describe(R"(program - does nothing

  program --file x         this line is not about an option
  -l, --loud         print much; more than is read
  --file FILE        write what is printed
                     to a file. It is replaced
  --quiet            RNR is not printed
  --error [STATUS]   describe one
)");
  REQUIRE(words.options.size() == 5);  // the help does not show --speaks
  const auto& options = words.options;
  CHECK(options[0].meaning == "print much");
  CHECK(options[0].value.placeholder.empty());
  CHECK(options[1].meaning == "RNR is not printed");
  CHECK(options[1].value.placeholder.empty());
  CHECK(options[2].meaning == "write what is printed to a file");
  CHECK(options[2].value.placeholder == "FILE");
  CHECK(options[3].value.placeholder == "STATUS");
  CHECK(options[3].value.optional);
  CHECK(options[4].meaning == "print the help");
}

TEST_CASE("command line: an unknown shell is refused, whatever else is asked for") {
  CHECK(refusal({"--completion", "ksh", "--help"}) ==
        "--completion: \"ksh\" is invalid. Fix: give one of bash, zsh, fish");
  CHECK(refusal({"--completion"}).starts_with("--completion takes one value"));
}

TEST_CASE("command line: two options that exclude each other are refused") {
  Line line;
  line.parse({"-l", "--quiet", "--depth", "3"});
  CHECK_NOTHROW((*line).exclude({"--loud", "--count"}));
  CHECK_THROWS_WITH((*line).exclude({"--depth", "--count", "--quiet"}),
                    "--depth and --quiet exclude each other. Fix: leave one of them out");
}

}  // namespace
}  // namespace urma::apps
