"""Who has no token, or comes by another name, gets nothing; who has it loses nothing."""

from __future__ import annotations

import http.client
import json
import resource
import threading
from contextlib import contextmanager

import pytest

from tuner.core.errors import TunerError
from tuner.core.files import write_whole
from tuner.core.local_server import MOST_BYTES
from tuner.evalset.grading.answers import CHANGE, MOST_CHARACTERS, READ
from tuner.evalset.grading.page import make_page
from tuner.evalset.grading.server import Server
from tuner.evalset.sheets import Row, write_sheet

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"


@contextmanager
def room_for(size):
    """Let no file grow beyond a size: as on a full disk, a part is taken and the rest refused."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def raw(client, method, path, headers, body=None):
    """Ask with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", client.server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_only_this_machine_is_listened_to(client):
    assert client.server.server_address[0] == "127.0.0.1"
    assert client.server.address.startswith(f"http://127.0.0.1:{client.server.server_port}/")


@pytest.mark.parametrize("name", ["", *READ, *CHANGE, "anything"])
def test_every_request_needs_the_token(client, name):
    server = client.server
    origin = f"http://127.0.0.1:{server.server_port}"
    for token in ("", "wrong", server.token[:-1], server.token.swapcase(), "%00", "..", "ä"):
        for method in ("GET", "POST"):
            answer = client.http.request(method, f"{origin}/{token}/{name}", json={"by": "anna"})
            assert answer.status_code == 403, token
            assert "anna" not in answer.text
            assert server.token not in answer.text
    assert not server.grading.journal.exists()


def test_the_token_of_two_starts_is_not_the_same(client, serving):
    other = serving(client.server.grading)
    assert len(client.server.token) >= 32
    assert other.server.token != client.server.token


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200), ("localhost:{port}", 200), ("[::1]:{port}", 200),
        ("localhost:9000", 200), ("127.0.0.1", 200),  # the other end of a tunnel
        ("evil.example:{port}", 403), ("127.0.0.1.evil.example", 403), ("", 403), ("[", 403),
        ("evil.example@127.0.0.2", 403), ("0.0.0.0:{port}", 403),
    ],
)  # fmt: skip
def test_another_host_name_is_refused(client, host, status):
    """A page elsewhere may let its own name point here, and would be let in by it."""
    path = f"/{client.server.token}/"
    named = host.format(port=client.server.server_port)
    assert raw(client, "GET", path, {"Host": named})[0] == status


def test_a_request_without_a_host_is_refused(client):
    assert raw(client, "GET", f"/{client.server.token}/", {})[0] == 403


def test_a_request_of_another_page_is_refused(client):
    address = f"{client.server.address}grade"
    asked = {"by": "anna", "at": 0, "grade": 1}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"):
        answer = client.http.post(address, json=asked, headers={"Origin": origin})
        assert answer.status_code == 403
    # What a form, or a script that may not read the answer, can send.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.http.post(
            address, content=json.dumps(asked), headers={"Content-Type": kind}
        )
        assert answer.status_code == 415
    assert not client.server.grading.journal.exists()
    own = {"Origin": client.server.address.rsplit("/", 2)[0]}
    assert client.http.post(address, json=asked, headers=own).status_code == 200


def test_an_address_leads_to_the_page_once(client):
    first = client.server.first_address
    assert client.server.token not in first
    answer = client.http.get(first)
    assert answer.status_code == 303
    assert client.http.get(answer.next_request.url).status_code == 200
    assert client.http.get(first).status_code == 403
    assert client.http.get(first.rsplit("/", 1)[0] + "/").status_code == 403


def test_a_page_takes_nothing_from_elsewhere_and_is_kept_nowhere(client):
    answer = client.get()
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "://" not in answer.text.replace("http://www.w3.org", "")
    assert client.server.token not in answer.text


def test_texts_that_are_code_are_no_part_of_the_page(tmp_path, opened, serving):
    file = tmp_path / "code.csv"
    write_sheet(file, [Row(HOSTILE, HOSTILE, HOSTILE, HOSTILE, f"{HOSTILE}\x1b[31m\u202e")])
    client = serving(opened(file))
    assert "alert(" not in client.get().text
    answer = client.get("passages", by="anna", **{"from": 0}, count=1)
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (one,) = answer.json()["passages"]
    assert one["query"] == HOSTILE
    # What a terminal or a page would act on is written out.
    assert "".join(one["passage"]) == f"{HOSTILE}\\u001b[31m\\u202e"


def test_the_name_of_a_sheet_is_text():
    page = make_page("<img src=x onerror=alert(1)>.csv", [], annotator='"><script>')
    assert "<img" not in page.html
    assert 'data-annotator="&#34;&gt;&lt;script&gt;"' in page.html


def test_a_grade_is_on_the_disk_when_it_is_answered(client):
    answer = client.post("grade", by="anna", at=1, grade=2, comment=" two\nlines ")
    assert answer.json() == {"at": 1, "grade": 2}
    (line,) = map(json.loads, client.server.grading.journal.read_text().splitlines())
    assert (line["by"], line["document_id"], line["grade"], line["comment"]) == (
        "anna", "d2", 2, "two lines",
    )  # fmt: skip
    assert client.get("open", by="Anna").json()["given"] == [None, 2, None, None, None]
    assert client.post("undo", by="anna").json() == {"at": 1, "grade": None, "comment": ""}
    assert client.post("undo", by="anna").json() == {"at": None}


def test_two_people_see_how_far_they_agree_and_settle_what_differs(client):
    for name, grades in {"anna": [3, 1, 0, 2], "ben": [3, 0, 0, 3]}.items():
        for at, grade in enumerate(grades):
            assert client.post("grade", by=name, at=at, grade=grade).status_code == 200
    standing = client.get("standing").json()
    assert [(one["name"], one["graded"]) for one in standing["people"]] == [("anna", 4), ("ben", 4)]
    (one,) = standing["agreements"]
    # Weighted observed: (1 + 1) = 2; expected by their shares, 4 x 4 pairs / 4:
    # anna 3 against ben 3, 0, 0, 3: 0 + 9 + 9 + 0; 1: 4 + 1 + 1 + 4; 0: 9 + 0 + 0 + 9; 2: 1 + 4 +
    # 4 + 1; in all 56 / 4 = 14; kappa = 1 - 2 / 14.
    assert one["kappa"] == pytest.approx(1 - 2 / 14)
    assert (one["pairs"], one["same"]) == (4, 0.5)
    assert standing["differing"] == 2
    first = client.get("disputed", number=0, open=1).json()
    assert [(o["by"], o["grade"]) for o in first["opinions"]] == [("anna", 1), ("ben", 0)]
    assert (first["number"], first["of"], first["settled"], first["grade"]) == (0, 2, 0, None)
    client.post("settle", by="carla", at=first["at"], grade=1)
    second = client.get("disputed", number=0, open=1).json()
    assert (second["number"], second["at"], second["settled"]) == (1, 3, 1)
    assert client.get("disputed", number=0).json()["by"] == "carla"
    assert client.post("unsettle", by="carla").json() == {"number": 0, "at": 1}
    assert client.get("disputed", number=9).json()["number"] is None
    # Nobody sees another one's grades where they grade.
    assert client.get("open", by="carla").json()["given"] == [None] * 5


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("grade", {"by": "anna", "at": 5, "grade": 1}, "there is no passage 5; the sheet has 5"),
        ("grade", {"by": "anna", "at": -1, "grade": 1}, "'at' is -1; a whole number is wanted"),
        ("grade", {"by": "anna", "at": 0, "grade": 4}, "4 is no grade; give one of 0, 1, 2, 3"),
        ("grade", {"by": "anna", "at": 0, "grade": "3"}, "'3' is no grade"),
        ("grade", {"by": "anna", "at": 0, "grade": True}, "True is no grade"),
        ("grade", {"by": "../x", "at": 0, "grade": 1}, "the name '../x': write 1 to 40 letters"),
        ("grade", {"at": 0, "grade": 1}, "the name None"),
        ("grade", {"by": "anna", "at": 0, "grade": 1, "comment": 7}, "a comment is a text"),
        ("settle", {"by": "anna", "at": "x", "grade": 1}, "'at' is 'x'"),
        ("undo", {"by": "settled"}, "is kept for the grades that are settled"),
    ],
)
def test_what_cannot_be_is_refused_in_words(client, name, asked, said):
    answer = client.post(name, **asked)
    assert answer.status_code == 400
    assert said in answer.json()["problem"]
    assert not client.server.grading.journal.exists()


def test_what_is_sent_is_bounded_and_json(client):
    address = f"{client.server.address}grade"
    kind = {"Content-Type": "application/json"}
    assert (
        client.http.post(address, content=b"x" * (MOST_BYTES + 1), headers=kind).status_code == 413
    )
    for content in (b"{", b"[]", b"\xff", b"[" * 50_000):
        assert client.http.post(address, content=content, headers=kind).status_code == 400
    assert client.get("passages", by="anna", **{"from": 0}, count=51).status_code == 400
    assert client.get("nothing").status_code == 404
    assert client.get("grade").status_code == 404  # asks to be sent
    assert client.http.put(client.server.address).status_code == 501


def test_on_a_full_disk_nothing_is_said_to_be_saved(client):
    client.post("grade", by="anna", at=0, grade=3)
    journal = client.server.grading.journal
    before = journal.read_bytes()
    with room_for(len(before) + 50):
        answer = client.post("grade", by="anna", at=1, grade=2)
        assert answer.status_code == 507
        assert "sheet.grades.jsonl" in answer.json()["problem"]
        assert client.post("undo", by="anna").status_code == 507
    assert journal.read_bytes() == before
    assert client.get("open", by="anna").json()["given"][:2] == [3, None]
    assert client.post("grade", by="anna", at=1, grade=2).status_code == 200
    assert client.get("open", by="anna").json()["given"][:2] == [3, 2]


def test_a_very_long_passage_comes_in_two_steps(tmp_path, opened, serving):
    file = tmp_path / "long.csv"
    text = "word " * 20_000
    write_whole(file, f"query_id,query,document_id,title,passage,grade\nq,word,d,,{text},\n")
    client = serving(opened(file))
    (one,) = client.get("passages", by="a", **{"from": 0}, count=20).json()["passages"]
    assert len("".join(one["passage"])) == MOST_CHARACTERS
    assert one["left_out"] == len(text) - MOST_CHARACTERS
    assert "".join(client.get("passage", at=0).json()["passage"]) == text


def test_a_port_that_is_taken_is_named_with_what_to_do(client):
    server = client.server
    with pytest.raises(TunerError, match=f"port {server.server_port}: .*choose another: --port"):
        Server(server.grading, server.page, server.server_port)


def test_many_people_at_once(client):
    def work(name):
        for turn in range(15):
            assert client.post("grade", by=name, at=turn % 5, grade=turn % 4).status_code == 200

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(client.server.grading.journal.read_text().splitlines()) == 60
    for name in "abcd":
        assert client.get("open", by=name).json()["given"] == [2, 3, 0, 1, 2]


def test_ten_thousand_passages_are_not_sent_together(tmp_path, opened, serving):
    file = tmp_path / "large.csv"
    rows = [
        Row(f"q{n // 20}", f"what is word {n // 20}?", f"d{n}", "", f"word {n} " * 40)
        for n in range(10_000)
    ]
    write_sheet(file, rows)
    size = file.stat().st_size
    client = serving(opened(file))
    opening = client.get("open", by="anna").content
    page = client.get("passages", by="anna", **{"from": 5_000}, count=20).content
    assert len(opening) < size / 40
    assert len(page) < size / 100
