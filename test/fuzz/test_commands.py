"""Commands with changed files: each ends in time with a result or with one line; ``make bench`` tries many more."""

from support.fuzzing.commands import CommandFuzzer

DRAWS = 40


def test_commands_with_changed_files_end_with_a_result_or_one_line(tmp_path):
    fuzzer = CommandFuzzer(tmp_path)
    statuses = {fuzzer.run(seed).status for seed in range(DRAWS)}
    assert {0, 2} <= statuses
