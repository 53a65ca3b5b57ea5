"""The output of each runner, whole and cut off, as outcomes of tests."""

from __future__ import annotations

import json

from tests.foreign.results import Outcome, count, read_go, read_librdkafka, read_pytest

PASSED, FAILED, LEFT_OUT = Outcome


def go(*events: tuple[str, str | None]) -> str:
    lines = [
        json.dumps({"Action": action, "Package": "a/kgo"} | ({"Test": test} if test else {}))
        for action, test in events
    ]
    return "\n".join(["go: downloading something", *lines])


def test_go_tests_have_the_outcome_of_their_last_event() -> None:
    text = go(("run", "A"), ("pass", "A"), ("run", "B"), ("fail", "B"), ("run", "C"), ("skip", "C"))
    assert read_go(text) == {"kgo:A": PASSED, "kgo:B": FAILED, "kgo:C": LEFT_OUT}


def test_a_go_test_that_holds_others_is_counted_by_them() -> None:
    text = go(("run", "A"), ("run", "A/x"), ("run", "A/y"), ("pass", "A/x"), ("fail", "A/y"), ("fail", "A"))
    assert read_go(text) == {"kgo:A/x": PASSED, "kgo:A/y": FAILED}


def test_a_go_test_that_fails_after_those_that_it_holds_is_counted_too() -> None:
    text = go(("run", "A"), ("run", "A/x"), ("pass", "A/x"), ("fail", "A"))
    assert read_go(text) == {"kgo:A": FAILED, "kgo:A/x": PASSED}


def test_a_go_test_that_did_not_end_has_failed() -> None:
    text = go(("run", "A"), ("pass", "A"), ("run", "B")) + '\n{"Action": "pass", "Packa'
    assert read_go(text) == {"kgo:A": PASSED, "kgo:B": FAILED}


def test_a_go_package_that_does_not_build_has_failed() -> None:
    assert read_go(go(("fail", None))) == {"kgo:(package)": FAILED}


def test_a_go_package_with_a_failed_test_is_not_counted_again() -> None:
    assert read_go(go(("run", "A"), ("fail", "A"), ("fail", None))) == {"kgo:A": FAILED}


PYTEST = """\
collected 6 items

test/test_a.py::test_one PASSED                    [ 16%]
test/test_a.py::test_two[x-1] FAILED               [ 33%]
test/test_a.py::test_three SKIPPED (no TLS)        [ 50%]
test/test_a.py::test_four PASSED                   [ 66%]
test/test_a.py::test_four ERROR                    [ 66%]
test/test_a.py::test_five"""


def test_pytest_tests_have_the_outcome_that_they_end_with() -> None:
    assert read_pytest(PYTEST) == {
        "test/test_a.py::test_one": PASSED,
        "test/test_a.py::test_two[x-1]": FAILED,
        "test/test_a.py::test_three": LEFT_OUT,
        "test/test_a.py::test_four": FAILED,
        "test/test_a.py::test_five": FAILED,
    }


def test_the_summary_of_pytest_is_not_read_as_tests() -> None:
    text = (
        PYTEST
        + " PASSED [100%]\n=== short test summary info ===\nFAILED test/test_a.py::test_two[x-1] - oh\n"
    )
    assert read_pytest(text)["test/test_a.py::test_five"] is PASSED
    assert len(read_pytest(text)) == 5


LIBRDKAFKA = """\
\x1b[33m[0000_unittests    /  0.000s] WARN: SKIPPING TEST: Filtered due to negative test flags
\x1b[0m\x1b[36m[0001_multiobj  /  0.000s] ======= Running test 0001_multiobj =======
\x1b[0m\x1b[36m[0002_unkpart   /  0.000s] ======= Running test 0002_unkpart =======
\x1b[0m\x1b[36m[0001_multiobj  /  1.100s] \x1b[32m======= Test 0001_multiobj PASSED =======\x1b[0m
\x1b[0m\x1b[36m[0003_msgmaxsize/  0.000s] ======= Running test 0003_msgmaxsize =======
\x1b[0m\x1b[36m[0003_msgmaxsize/  0.100s] \x1b[31m======= Test 0003_msgmaxsize FAILED =======\x1b[0m
\x1b[33m[0170_share_consumer/  0.000s] WARN: SKIPPING TEST: included in TESTS_SKIP list
\x1b[33m[0053_stats        /  0.000s] WARN: SKIPPING TEST: RapidJSON >=1.1.0 not available
"""


def test_librdkafkas_tests_fail_unless_they_pass_or_say_that_they_do_not_run() -> None:
    assert read_librdkafka(LIBRDKAFKA) == {
        "0001_multiobj": PASSED,
        "0002_unkpart": FAILED,
        "0003_msgmaxsize": FAILED,
        "0053_stats": LEFT_OUT,
    }


def test_the_count_names_every_outcome() -> None:
    assert count({"a": PASSED, "b": PASSED, "c": LEFT_OUT}) == "2 passed, 0 failed, 1 left out"
