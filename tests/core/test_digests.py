"""Digests: the same on every machine, whatever the order of keys, and never of two things one."""

from __future__ import annotations

from tuner.core.json_text import digest_of, fingerprint_of, text_digest


def test_a_digest_of_a_text_is_its_sha256():
    # printf abc | sha256sum
    assert text_digest("abc") == "ba7816bf8f01cfea"
    assert text_digest("caf\udce9.txt", 6) != text_digest("café.txt", 6)


def test_the_order_of_keys_does_not_count_but_that_of_a_list_does():
    assert digest_of({"a": 1, "b": [2, 3]}) == digest_of({"b": [2, 3], "a": 1})
    assert digest_of([2, 3]) != digest_of([3, 2])
    assert len(digest_of([], 24)) == 24


def test_parts_do_not_run_into_each_other():
    assert fingerprint_of(["a", "bc"]) != fingerprint_of(["ab", "c"])
    # printf '["a","bc"]' | sha256sum
    assert fingerprint_of(["a", "bc"]).startswith("42a6f3f44be0")
