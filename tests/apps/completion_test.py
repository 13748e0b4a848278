#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do shells complete the words of the tools? completion_test.py TOOL...

Compares the options that a shell offers with the help of the tool, and lets bash, fish and zsh
complete lines as they do for a user. A shell that is not installed is left out.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from running import help_of

LONG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
# A line that is typed, words that must be offered, among others, and a word that must not.
LINES = (
    ("urma_perf ", {"write_lat", "server", "compare"}, "--json"),
    ("urma_perf write_", {"write_lat", "write_imm_bw"}, "read_lat"),
    ("urma_perf --ord", {"--order"}, "--mode"),
    ("urma_perf --order ", {"no", "ro", "so", "chain"}, "write_lat"),
    ("urma_perf --size 64 --order=c", {"chain"}, "no"),
    ("urma_perf write_lat --device ", {"cxl:", "udp:"}, "write_lat"),
    ("urma_perf --json-file res", {"results.json"}, "write_lat"),
    ("urma_perf --atomic cas --retransmit gbn", {"gbn-fast", "gbn-timeout"}, "sel-fast"),
    ("urma_perf kv --plan res", {"results.json"}, "write_lat"),
    ("urma_info --error ", {"unknown", "peer_restarted"}, "udp"),
    ("urma_info --help ", {"udp", "fault"}, "unknown"),
    ("urma_info ", {"udp:", "cxl:"}, "udp"),
    ("urma_notify ", {"serve", "send"}, "results.json"),
    ("urma_notify send res", {"results.json"}, "serve"),
    ("urma_feed --topic 3 ", {"consume", "produce"}, "3"),
    ("urma_sim --scenario ", {"I1", "X3"}, "aimd"),
    ("urma_sim --topology ", {"star", "leaf_spine"}, "I1"),
    ("urma_stat --wa", {"--watch"}, "--json"),
    ("urma_top --wa", {"--watch"}, "--user"),
    ("urma_admin ", {"show"}, "--json"),
    ("urma_admin show --wh", {"--whole"}, "--json"),
    ("urma_ping --in", {"--interval"}, "--size"),
    ("urma_switch --cc ", {"caqm_r", "none"}, "aimd"),
)


def output_of(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=20, check=False, cwd=cwd, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, (command, done)
    return done.stdout


def check_options(tool, script):
    """Checks that a shell offers the options that the help has, and no others."""
    offered = set(re.search(r"-\*:?\*?\) offered='([^']*)'", script).group(1).split())
    offered = {name for name in offered if name.startswith("--")}
    # The help of a tool may name options of other tools.
    own = re.sub(rf"\burma_(?!{tool.name.removeprefix('urma_')}\b)\w+ --\S+", "", help_of(tool))
    shown = set(LONG.findall(own)) | {"--help"}
    assert offered == shown, f"{tool}: lacks {shown - offered}, invents {offered - shown}"


class Terminal:
    """An interactive shell, which types as a user does, once the shell has printed its prompt."""

    PROMPT = "READY>"

    def __init__(self, command, cwd):
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(cwd)
            os.environ.update({"TERM": "dumb", "HOME": str(cwd), "COLUMNS": "4000"})
            os.execvp(command[0], command)
        self.count = 0
        self.ask("PS1='REA''DY>'; echo MARK\n")

    def ask(self, keys):
        """Types the keys, which have to print MARK, and returns what is printed before that."""
        self.count += 1
        mark = f"END{self.count}."
        # The command that is typed has the mark in two parts, so that its echo is not the mark.
        os.write(self.fd, keys.replace("MARK", f"EN''D{self.count}.").encode())
        printed, end = "", time.monotonic() + 20
        while self.PROMPT not in printed.partition(mark)[2]:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"no answer to {keys!r}: {printed!r}"
            printed += os.read(self.fd, 65536).decode(errors="replace")
        return printed.split(mark)[0]

    def close(self):
        os.close(self.fd)
        os.waitpid(self.child, 0)


def try_bash(scripts, work):
    """Lets readline insert all completions into the line, and prints the words of that line."""
    shell = Terminal(["bash", "--norc"], work)
    shell.ask("bind 'set enable-bracketed-paste off'; bind '\"\\C-t\": insert-completions'; "
              "echo MARK\n")
    for name in scripts:
        shell.ask(f"source {scripts[name]}; echo MARK\n")
    shell.ask("show() { printf '<%s>\\n' \"$@\"; }; echo MARK\n")
    for line, wanted, unwanted in LINES:
        printed = shell.ask(f"{line}\x14\x01show \x05; echo MARK\n")
        words = re.findall(r"<(.*?)>\r?\n", printed)
        check_line("bash", line, words[line.count(" "):], wanted, unwanted)
    shell.close()


def try_zsh(scripts, work):
    """Lets zsh list the completions, which it prints below the line."""
    shell = Terminal(["zsh", "-f", "-i"], work)
    for script in scripts.values():
        shutil.copy(script, work / f"_{script.stem}")
    shell.ask("unsetopt prompt_cr prompt_sp; zstyle ':completion:*' list-separator '<<'; "
              f"fpath=({work} $fpath); autoload -U compinit; compinit -u -D; echo MARK\n")
    shell.ask("bindkey '^T' list-choices; echo MARK\n")
    for line, wanted, unwanted in LINES:
        listed = shell.ask(f"{line}\x14\x15echo MARK\n").split("\r\n", 1)[1]
        listed = listed.split(shell.PROMPT)[0]  # the line, drawn again
        words = [row.split("<<")[0] for row in listed.splitlines()]
        check_line("zsh", line, " ".join(words).split(), wanted, unwanted)
    shell.close()


def check_line(shell, line, words, wanted, unwanted):
    words = {word.split("=")[-1] if word.startswith("--") and "=" in word else word
             for word in words}
    assert wanted <= words, f"{shell}: {line!r} offers {sorted(words)}, not {wanted - words}"
    assert unwanted not in words, f"{shell}: {line!r} offers {unwanted}: {sorted(words)}"


def try_fish(scripts, work):
    for line, wanted, unwanted in LINES:
        script = scripts[line.split()[0]]
        said = output_of("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'",
                         cwd=work)
        words = [row.split("\t")[0] for row in said.splitlines()]
        check_line("fish", line, words, wanted, unwanted)


TRIALS = {"bash": try_bash, "zsh": try_zsh, "fish": try_fish}


def main():
    tools = [pathlib.Path(name) for name in sys.argv[1:]]
    assert tools, "no tools were given"
    tried = []
    with tempfile.TemporaryDirectory(prefix="urma-completion-") as folder:
        work = pathlib.Path(folder)
        (work / "results.json").touch()
        for shell in TRIALS:
            scripts = {tool.name: work / f"{tool.name}.{shell}" for tool in tools}
            for tool in tools:
                script = output_of(tool, "--completion", shell)
                scripts[tool.name].write_text(script, encoding="utf-8")
                if shell == "bash":
                    check_options(tool, script)
            if not shutil.which(shell):
                continue
            for script in scripts.values():
                output_of(shell, "-n", script)
            TRIALS[shell](scripts, work)
            tried.append(shell)
    print("completed by", ", ".join(tried))


main()
