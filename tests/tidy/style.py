# SPDX-License-Identifier: Apache-2.0
"""Does the text keep the rules of the project: lines, banned calls, limits of the data path?"""

import re
import shutil
import subprocess

from tree import CPP, LIBRARY, code_of, expect, main

COLUMNS = 100
PROSE_COLUMNS = 120
README_LINES = 20
# Versions of clang-format differ. Debian 12 has this one.
FORMATTER = 14
LICENSE = "SPDX-License-Identifier: Apache-2.0"
SPACES_ONLY = CPP + (".py", ".lua", ".cmake", "CMakeLists.txt")
DATA_PATH = ("transport/", "jetty/", "memseg/", "ordering/", "congestion/")

# Banned code: (pattern in code without comments and literals, why and what instead, where it is
# looked for, where it is allowed). A place is the beginning of a path.
EVERYWHERE = ("",)
CLOCK = r"\bclock_gettime\b|\bgettimeofday\b|_clock::now\b|(?<![\w.>:])time\s*\(\s*(NULL|nullptr|0)"
# Calls that make a descriptor, unless it is immediately passed to above_standard(). An open() of
# the library's own takes no flags (O_).
MAKER = (r"(?:::\s*)?(?:eventfd|timerfd_create|signalfd|epoll_create1?|inotify_init1?|memfd_create|"
         r"accept4|pipe2?|dup|shm_open|mkostemps?|mkstemps?)\s*\((?=[^)])|"
         r"::\s*(?:socket|accept|open|openat)\s*\(|"
         r"(?:open(?:at)?\s*\([^;{}]*?\bO_|socket(?:pair)?\s*\(\s*[AP]F_)")
OPENS = re.compile(r"(?<![\w.>:])(above_standard\(\s*)?(?:" + MAKER + ")")
# This file moves both ends of its pipe itself.
OPENS_ALLOWED = ("base/guarded_copy.cc",)
BANNED = (
    (r"\bs?rand\s*\(|\brandom\s*\(", "no seed repeats it: base/prng.h or base/entropy.h",
     EVERYWHERE, ()),
    (r"\b(v?sprintf|strcpy|strcat|gets)\s*\(", "it knows no bound: std::string, snprintf",
     EVERYWHERE, ()),
    (r"\.\s*detach\s*\(\s*\)", "the thread is never joined: join it", EVERYWHERE, ()),
    (CLOCK, "time is told, not read: take a Time, or read_clock() of base/clock.h",
     EVERYWHERE, ("base/clock.h", "apps/", "python/", "tests/")),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>:])sleep\s*\(",
     "nothing in the library sleeps but in ppoll and futex", LIBRARY,
     # Looking again for a name that is not published yet is the caller's own wait. Jfc has a
     # method of that name, which waits in futex.
     ("api/look_up.cc", "jetty/jfc.")),
    (r"\b(m|c|re)alloc\s*\(|\bnew\b(?!\s*[(>])", "the data path never allocates: Slab, ChunkQueue, "
     "RegionArray, or placement into their memory", DATA_PATH, ()),
    (r"\bmake_(unique|shared)\b", "the data path never allocates: base/slab.h", DATA_PATH,
     # Queues are made when a Jetty is, on the control path.
     ("jetty/jfc.cc", "jetty/queues.cc")),
    (r"\bstd::(recursive_|shared_|timed_)?mutex\b|\bpthread_mutex|\bstd::condition_variable",
     "the data path has no lock: one thread, or an atomic with its writer named", DATA_PATH, ()),
    (r"\bthrow\b", "nothing throws: Result, a Status, URMA_ASSERT", DATA_PATH, ()),
    (r"\b[io]?fstream\b|\bf(d|re)?open\s*\(|\bopendir\s*\(",
     "it does not say where its descriptor lies: above_standard(::open(...))", LIBRARY, ()),
    (r"#\s*include\s*<(iostream|fstream|sstream|ostream|istream|iomanip)>|\bstd::c(out|err|log)\b",
     "no streams: std::string, snprintf", DATA_PATH, ()),
)
# Spelled so that this file itself passes.
LEFT_OVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")


def in_one_of(path, places):
    return any(path.startswith(place) for place in places)


def check_lines(tree):
    for path in tree.named(*SPACES_ONLY):
        for number, line in enumerate(tree.lines(path), 1):
            if len(line) > COLUMNS:
                yield "%s:%d: %d columns, at most %d" % (path, number, len(line), COLUMNS)
            if "\t" in line:
                yield "%s:%d: a tab; indent with spaces" % (path, number)
            if line != line.rstrip():
                yield "%s:%d: blanks at the end of the line" % (path, number)
            if LEFT_OVERS.search(line):
                yield "%s:%d: do it, or open an issue and say so in words" % (path, number)
        if tree.text(path) and not tree.text(path).endswith("\n"):
            yield "%s:%d: the last line has no end" % (path, len(tree.lines(path)))


def check_licenses(tree):
    """A file that is copied elsewhere still says under which license it may be used."""
    for path in tree.named(*SPACES_ONLY, ".pyi"):
        first = tree.lines(path)[:2]
        if not any(line.endswith(LICENSE) for line in first):
            yield "%s:1: begin with a comment: %s" % (path, LICENSE)


def check_readmes(tree):
    """A directory whose README needs more than a screen answers more than one question."""
    for path in tree.named("README.md"):
        count = tree.text(path).count("\n")
        if path != "README.md" and count > README_LINES:
            yield "%s:%d: %d lines, at most %d" % (path, README_LINES + 1, count, README_LINES)


def check_prose(tree):
    """Texts are read in terminals, too; a table's row cannot be broken."""
    for path in tree.named(".md"):
        for number, line in enumerate(tree.lines(path), 1):
            if len(line) > PROSE_COLUMNS and not line.startswith("|"):
                yield "%s:%d: %d columns, at most %d" % (path, number, len(line), PROSE_COLUMNS)


def check_banned(tree):
    rules = [(re.compile(pattern), *rest) for pattern, *rest in BANNED]
    for path in tree.named(*CPP):
        code = code_of(tree.text(path))
        for pattern, instead, where, allowed in rules:
            if not in_one_of(path, where) or in_one_of(path, allowed):
                continue
            for found in pattern.finditer(code):
                line = code.count("\n", 0, found.start()) + 1
                yield "%s:%d: %s: %s" % (path, line, found.group().strip(), instead)


def check_descriptors(tree):
    """Otherwise a process that has closed a standard descriptor would print into a library's
    file."""
    for path in tree.named(*CPP):
        if not in_one_of(path, LIBRARY) or in_one_of(path, OPENS_ALLOWED):
            continue
        code = code_of(tree.text(path))
        for found in OPENS.finditer(code):
            if found.group(1) is None:
                line = code.count("\n", 0, found.start()) + 1
                yield "%s:%d: %s...): above_standard(...) of base/above_standard.h" % (
                    path, line, found.group().split("(")[0] + "(")


def check_allowances(tree):
    """An exception that is no longer needed would hide the next violation."""
    texts = {path: code_of(tree.text(path)) for path in tree.named(*CPP)}
    for pattern, _, where, allowed in BANNED:
        for place in allowed:
            if place in ("apps/", "tests/"):
                continue
            used = any(path.startswith(place) and in_one_of(path, where)
                       and re.search(pattern, text) for path, text in texts.items())
            if not used:
                yield "tests/tidy/style.py:1: %s needs no exception for %s" % (place, pattern)


def check_format(tree):
    tool = shutil.which("clang-format-%d" % FORMATTER) or shutil.which("clang-format")
    if tool is None:
        print("clang-format is not installed: formatting is not checked")
        return
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version (\d+)", version.stdout)
    if found is None or int(found.group(1)) != FORMATTER:
        print("formatting is not checked: clang-format %d formats this tree, and another one is "
              "installed" % FORMATTER)
        return
    if not (tree.root / ".clang-format").exists():
        yield ".clang-format:1: is missing"
        return
    # In batches: a start of clang-format takes longer than a hundred files.
    paths = tree.named(*CPP)
    for first in range(0, len(paths), 100):
        command = [tool, "--dry-run", "-Werror", *paths[first:first + 100]]
        result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
        places = {}
        for path, line in re.findall(r"^(?:\./)?(\S+?):(\d+):\d+: error:", result.stderr, re.M):
            places.setdefault(path, line)
        for path, line in places.items():
            yield "%s:%s: is not formatted: clang-format -i %s" % (path, line, path)
        if result.returncode != 0 and not places:
            yield ".clang-format:1: clang-format fails: %s" % result.stderr.strip()


def check(tree):
    problems = []
    for part in (check_lines, check_licenses, check_readmes, check_prose, check_banned,
                 check_descriptors, check_allowances, check_format):
        problems += part(tree)
    return problems


def self_test():
    def lines_and_bans(tree):
        return list(check_lines(tree)) + list(check_banned(tree))

    def finds(path, text, *fragments):
        expect(lines_and_bans, {path: text}, *fragments)

    # Comments, literals and other words are not calls.
    finds("jetty/a.cc", '// rand() throw new\nauto s = "malloc(";  /* std::mutex\n throw */\n'
          "#include <new>\nnew (place) T(1);\nnewest = brand(1); x.sleep_at();\n"
          "int n = 1'000; char c = '\"';\n"
          "auto r = R\"(throw)\";\n")
    finds("apps/a.cc", "steady_clock::now(); throw new int; std::mutex m; sleep_for(1);\n")
    finds("base/clock.h", "clock_gettime(CLOCK_MONOTONIC, &now);\n")
    finds("a.py", "x" * 100 + "\n")
    finds("a.py", "x" * 101 + "\n", "a.py:1: 101 columns")
    finds("CMakeLists.txt", "a\n\tb\n", "CMakeLists.txt:2: a tab")
    finds("a.lua", "a\n\tb\n", "a.lua:2: a tab")
    finds("cmake/x.cmake", "a \nb\n", "x.cmake:1: blanks")
    finds("a.h", "// TO" "DO\n// XX" "X y\n// FIX" "ME\n// XX" "XXXX\n", "a.h:1: do it", "a.h:2: ",
          "a.h:3: ")
    finds("a.h", "int a;", "a.h:1: the last line")
    finds("tests/a.cc", "int a = rand();\nsrand(1);\n", "tests/a.cc:1: rand(", "a.cc:2: srand(")
    finds("apps/a.cc", "sprintf(a, b);\nstrcpy(a, b);\nstrcat(a, b);\n", "1: sprintf", "2: strcpy",
          "3: strcat")
    finds("drivers/a/b.cc", "std::thread(f).detach();\n", ".detach()")
    finds("drivers/a/b.cc", "gettimeofday(&a, 0);\nclock_gettime(b, &c);\nd = time(nullptr);\n"
          "std::chrono::steady_clock::now();\nevent.time(0);\n",
          "1: gettimeofday", "2: clock_gettime", "3: time(", "4: _clock::now")
    finds("urma/a.cc", "std::this_thread::sleep_for(1);\nusleep(3);\nsleep(1);\nx.sleep(2);\n",
          "1: sleep_for", "2: usleep", "3: sleep(")
    finds("api/look_up.cc", "std::this_thread::sleep_for(1);\n")
    for folder in DATA_PATH:
        finds(folder + "a.cc", "p = malloc(1);\nq = new int;\nr = new T[3];\n"
              "s = std::make_unique<T>();\n", "1: malloc(", "2: new", "3: new", "4: make_unique")
        finds(folder + "a.h", "std::mutex m;\nthrow 1;\n#include <iostream>\nstd::cerr << 1;\n",
              "1: std::mutex", "2: throw", "3: #include", "4: std::cerr")
    finds("jetty/queues.cc", "std::make_unique<T>();\n")
    finds("urma/a.cc", "std::ifstream e;\nfopen(f);\nopendir(d);\n", "1: ifstream", "2: fopen(",
          "3: opendir(")

    def makes(path, text, *fragments):
        expect(lambda tree: list(check_descriptors(tree)), {path: text}, *fragments)

    makes("drivers/a/b.cc", "a = eventfd(0, 1);\nb = ::socket(1, 2, 3);\nc = ::open(path, f);\n"
          "d = open(path, O_RDONLY);\n", "1: eventfd(", "2: ::socket(", "3: ::open(", "4: open(")
    makes("drivers/a/b.cc", "a = above_standard(eventfd(0, 1));\nb = above_standard(\n"
          "    ::open(path, flags));\nResult<B> B::open(C c) { return file.open(O_X); }\n"
          "int socket() const;\nopen(c);\n")
    makes("tests/a.cc", "a = ::open(b, O_RDWR);\n")
    makes("base/guarded_copy.cc", "pipe2(ends, 0);\n")

    tag = "// " + LICENSE + "\n"
    expect(lambda tree: list(check_licenses(tree)),
           {"a.h": tag, "b.py": "#!/x\n# " + LICENSE + "\n", "c.md": "", "d.cc": "\n\n" + tag},
           "d.cc:1: begin with")

    expect(lambda tree: list(check_readmes(tree)),
           {"README.md": "a\n" * 99, "a/README.md": "a\n" * 20, "b/README.md": "a\n" * 21},
           "b/README.md:21: 21 lines")
    expect(lambda tree: list(check_prose(tree)),
           {"a.md": "x" * 120 + "\n|" + "x" * 120 + "\n" + "x" * 121 + "\n"}, "a.md:3: 121 columns")
    needed = "steady_clock::now();\nsleep_for(1);\nmake_unique;\nstd::mutex m;\n"
    every = {place + ("x.cc" if place.endswith(("/", ".")) else ""): needed
             for _, _, _, allowed in BANNED for place in allowed}
    expect(lambda tree: list(check_allowances(tree)), {**every, "api/look_up.cc": ""},
           "api/look_up.cc needs no exception")
    if shutil.which("clang-format"):
        config = {".clang-format": "BasedOnStyle: Google\n"}
        expect(lambda tree: list(check_format(tree)),
               {**config, "a.h": "int a;\n", "b.cc": "int a;\nint  b;\n"}, "b.cc:2:")
        expect(lambda tree: list(check_format(tree)), {"a.h": "int a;\n"}, "is missing")


if __name__ == "__main__":
    main(__doc__, check, self_test)
