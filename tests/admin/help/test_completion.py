"""Completion in shells: the script offers what may follow, as the shell itself asks it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kohort import cli
from kohort.admin.help.completion import completion_script

LINES = [
    ("kohort top", {"topics", "top"}),
    ("kohort topics cr", {"create"}),
    ("kohort topics create orders --repl", {"--replication-factor"}),
    ("kohort users add alice --mechanism ", {"SCRAM-SHA-256", "SCRAM-SHA-512"}),
    ("kohort acls list --princ", {"--principal"}),
    ("kohort --vers", {"--version"}),
]


@pytest.fixture(scope="module")
def parser() -> cli._Parser:
    return cli._make_parser(tuple(cli._COMMANDS))


def offered(shell: str, script: Path, line: str) -> set[str]:
    """What a shell offers for the last word of a line."""
    words = line.split(" ")
    if shell == "bash":
        code = (
            f'source {script}; COMP_WORDS=({" ".join(words[:-1])} "{words[-1]}"); '
            f'COMP_CWORD={len(words) - 1}; _kohort; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
    elif shell == "fish":
        code = f'source {script}; complete -C "{line}" | string split -f 1 \\t'
    else:
        code = (
            f"words=({' '.join(words[:-1])} '{words[-1]}'); CURRENT={len(words)}; "
            f"compadd() {{ shift; print -l -- ${{(M)@:#{words[-1]}*}} }}; source {script}; _kohort"
        )
    done = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=False, timeout=30)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_shell_offers_what_may_follow(
    shell: str, line: str, expected: set[str], parser: cli._Parser, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = tmp_path / "kohort"
    script.write_text(completion_script(shell, parser))
    assert offered(shell, script, line) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_action_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for name in (*cli._COMMANDS, "reset-offsets", "delete-records"):
        assert name in script


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["completion", "tcsh"])
    assert left.value.code == 2
    assert "bash" in capsys.readouterr().err
