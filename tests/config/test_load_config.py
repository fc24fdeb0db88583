"""A configuration's problems are named by file, line and key, all at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tuner.config import load_config
from tuner.config.model import Config
from tuner.config.params import read_params_file
from tuner.config.source import Source, with_overrides
from tuner.core.errors import InputError

ROOT = Path(__file__).resolve().parents[2]

SMALL = """\
study: {name: demo, seed: 7}
dataset: {path: "builtin:atlas"}
space:
  graph_weight: {type: real, low: 0.0, high: 1.0}
backends:
  - {kind: random, trials: 5}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def messages(tmp_path: Path, text: str, settings: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_config(write(tmp_path, text), settings)
    assert caught.value.exit_code == 2
    return [
        str(problem).replace(str(tmp_path / "config.yaml"), "FILE")
        for problem in caught.value.problems
    ]


def test_a_small_configuration_takes_the_defaults(tmp_path):
    config, _ = load_config(write(tmp_path, SMALL))
    assert config.study.seed == 7
    assert config.dataset.split.holdout == 0.5
    assert config.retriever.kind == "hybrid"
    assert config.objective.maximize == {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}
    assert config.execution.workers == "auto"
    assert config.tracking is not None


def test_a_section_that_holds_nothing_is_one_that_is_left_out(tmp_path):
    path = write(tmp_path, SMALL + "verdict:\n  # alpha: 0.1\n")
    config, _ = load_config(path, ["budget=null"])
    assert config == load_config(write(tmp_path, SMALL))[0]


@pytest.mark.parametrize(
    ("section", "wanted", "got"),
    [
        ("retriever: hybrid", "{kind: …}", "'hybrid'"),
        ("execution: dask", "{kind: …}", "'dask'"),
        ("objective: ndcg@10", "{maximize: …}", "'ndcg@10'"),
        ("racing: true", "{rungs: …}", "True"),
        ("nightly: {keep: 5}", "{days: …}", "5"),
    ],
)
def test_a_word_where_a_section_belongs_is_answered_with_the_sections_form(
    tmp_path, section, wanted, got
):
    [message] = messages(tmp_path, SMALL + section + "\n")
    assert message.endswith(f"should be a mapping such as {wanted}, got {got}")


def test_every_problem_is_reported_at_once_with_its_line(tmp_path):
    text = SMALL.replace("seed: 7", "sed: 7").replace("trials: 5", "trials: 0") + "trackin: {}\n"
    assert messages(tmp_path, text) == [
        "FILE:1: study.sed: unknown key; did you mean 'seed'?",
        "FILE:6: backends.0.trials: should be greater than or equal to 1, got 0",
        "FILE:7: trackin: unknown key; did you mean 'tracking'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed: 7", "seed: seven", "FILE:1: study.seed: should be a valid integer"),
        ("seed: 7", "seed: 7.5", "FILE:1: study.seed: should be a valid integer"),
        ("seed: 7", "seed: true", "FILE:1: study.seed: should be a valid integer"),
        ("name: demo", "name: a/b", "FILE:1: study.name: 'a/b' must start with a letter"),
        ("trials: 5", "trial: 5", "FILE:6: backends.0.trials: this key is required"),
        ("backends:\n  - {kind: random, trials: 5}\n", "backends: []\n", "FILE:5: backends: "),
        ("space:\n  graph_weight", "spaces:\n  graph_weight", "FILE:3: spaces: unknown key"),
        (
            "seed: 7",
            "measure_latency: true, seed: 7",
            "FILE:1: study.measure_latency: unknown key; latency is timed, in a pass of single "
            "queries, where a metric needs it: write metrics: [latency_p95_ms]",
        ),
    ],
)
def test_wrong_values_name_their_key(tmp_path, old, new, expected):
    found = messages(tmp_path, SMALL.replace(old, new))
    assert any(message.startswith(expected) for message in found), found


def test_a_key_that_stands_twice_is_refused(tmp_path):
    assert messages(tmp_path, SMALL + "study: {seed: 8}\n") == [
        "FILE:7: study: this key stands twice, first on line 1; keep one"
    ]


def test_anchors_and_aliases_are_refused_before_they_can_explode(tmp_path):
    bomb = "a: &a [x, x]\n" + "".join(
        f"{name}: &{name} [*{before}, *{before}]\n"
        for before, name in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
    )
    assert messages(tmp_path, bomb) == [
        "FILE:1: anchors and aliases (&a) are not supported; write the value out"
    ]


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.getcwd []", "!secret x", "!!set {a}"])
def test_tags_are_refused(tmp_path, tag):
    (message,) = messages(tmp_path, SMALL + f"metrics: {tag}\n")
    assert "FILE:7" in message
    assert not isinstance(message, dict)


def test_deep_nesting_is_refused(tmp_path):
    (message,) = messages(tmp_path, "a: " + "[" * 300 + "]" * 300)
    assert "nested deeper" in message


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n", "# only a comment\n"])
def test_something_that_is_no_mapping_is_refused(tmp_path, text):
    (message,) = messages(tmp_path, text)
    assert message.startswith("FILE:1: expected a mapping of sections")


def test_broken_yaml_names_the_line(tmp_path):
    (message,) = messages(tmp_path, "study: {name: a\nspace: ]\n")
    assert message.startswith("FILE:2: not valid YAML: ")


def test_not_utf8(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"study:\n  name: caf\xe9\n")
    with pytest.raises(InputError, match=r"config.yaml:2: not valid UTF-8"):
        load_config(path)


def test_a_missing_file_lists_those_there_are(tmp_path):
    write(tmp_path, SMALL)
    with pytest.raises(InputError, match=r"no such file; there are: .*config\.yaml"):
        load_config(tmp_path / "confg.yaml")


def test_a_folder_is_not_a_configuration(tmp_path):
    with pytest.raises(InputError, match="this is a folder"):
        load_config(tmp_path)


def test_scalars_are_those_of_yaml_1_2(tmp_path):
    text = SMALL.replace("low: 0.0", "low: 1e-3, choices: [no, on, 012, 1_000]")
    config, _ = load_config(write(tmp_path, text))
    assert config.space["graph_weight"]["low"] == 0.001
    assert config.space["graph_weight"]["choices"] == ["no", "on", 12, "1_000"]


def test_set_overrides_one_value_and_its_problems_name_it(tmp_path):
    settings = ("study.seed=9", "backends.0.trials=7", "dataset.split.holdout=0.25")
    config, _ = load_config(write(tmp_path, SMALL), settings)
    assert config.study.seed == 9
    assert config.backends[0].trials == 7
    assert config.dataset.split.holdout == 0.25
    assert messages(tmp_path, SMALL, ("study.seed=-1",)) == [
        "--set study.seed=-1: study.seed: should be greater than or equal to 0, got -1"
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("study.seed", "write it as key=value"),
        ("=3", "write it as key=value"),
        ("backends.x.trials=3", "backends is a list of 1; name an item by its number"),
        ("backends.4.trials=3", "backends is a list of 1; name an item by its number"),
        ("study.seed.value=3", "study.seed is a single value"),
        ("study.sead=3", "unknown key; did you mean 'seed'?"),
    ],
)
def test_wrong_settings_are_explained(tmp_path, setting, expected):
    (message,) = messages(tmp_path, SMALL, (setting,))
    assert message.startswith(f"--set {setting}")
    assert expected in message


def test_a_baseline_may_be_a_file_of_parameters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.yaml").write_text("top_k: 5\nmode: fast\n")
    run = tmp_path / "run"
    run.mkdir()
    (run / "best.yaml").write_text("params: {top_k: 7}\nverdict: fine\n")
    for written, expected in (
        ("plain.yaml", {"top_k": 5, "mode": "fast"}),
        ("run/best.yaml", {"top_k": 7}),
        ("run", {"top_k": 7}),
    ):
        config, _ = load_config(write(tmp_path, SMALL), (f"baseline={written}",))
        assert config.baseline == expected


def test_a_baseline_that_cannot_be_read_is_named_by_its_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (message,) = messages(tmp_path, SMALL + "baseline: bests.yaml\n")
    assert message.startswith("FILE:7: baseline: bests.yaml: no such file")
    (message,) = messages(tmp_path, SMALL + "baseline: .\n")
    assert message == "FILE:7: baseline: .: this folder holds no best.yaml"
    (tmp_path / "list.yaml").write_text("params: [1]\n")
    (message,) = messages(tmp_path, SMALL + "baseline: list.yaml\n")
    assert message == "list.yaml: baseline.params: must be a mapping of parameters"
    (message,) = messages(tmp_path, SMALL + "baseline: 3\n")
    assert message == "FILE:7: baseline: should be a valid dictionary or a valid string, got 3"


def test_the_context_section_has_a_tokenizer_and_weights(tmp_path):
    text = SMALL + "context: {tokenizer: 'words:split', discount: [1, 0.5]}\n"
    config, _ = load_config(write(tmp_path, text))
    assert (config.context.tokenizer, config.context.discount) == ("words:split", [1, 0.5])
    for wrong in ("[]", "[1, -1]", "[.nan]", "log"):
        (message,) = messages(tmp_path, SMALL + f"context: {{discount: {wrong}}}\n")
        assert message.startswith("FILE:7: context.discount"), message


def test_the_published_schema_is_that_of_the_model():
    published = json.loads((ROOT / "configs" / "schema.json").read_text(encoding="utf-8"))
    assert published == Config.model_json_schema()


def test_the_schema_has_the_bounds_of_numbers_for_editors():
    sections = Config.model_json_schema()["$defs"]
    holdout = sections["SplitSection"]["properties"]["holdout"]
    assert (holdout["minimum"], holdout["exclusiveMaximum"]) == (0, 1)
    (seconds, _) = sections["ExecutionSection"]["properties"]["trial_timeout_s"]["anyOf"]
    assert seconds["minimum"] == 0.01
    (weight, _) = sections["ContextSection"]["properties"]["efficiency"]["anyOf"]
    assert weight["additionalProperties"]["minimum"] == 0


def test_crlf_and_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load_config(path)[0].study.name == "demo"


def test_the_arms_have_a_default(tmp_path):
    config, _ = load_config(write(tmp_path, SMALL[: SMALL.index("backends:")]))
    assert [(arm.kind, arm.trials) for arm in config.backends] == [("gp", 40), ("tpe", 40)]


def test_context_efficiency_can_be_weighted(tmp_path):
    text = SMALL + "context: {efficiency: {density: 2, coverage: 1}}\n"
    config, _ = load_config(write(tmp_path, text))
    assert config.context.options.efficiency == {"density": 2.0, "coverage": 1.0}
    (message,) = messages(tmp_path, SMALL + "context: {efficiency: {density: -1}}\n")
    assert message.startswith("FILE:7: context.efficiency.density"), message


@pytest.mark.parametrize("nested", ["[" * 20_000, "{a: " * 5_000, "- " * 5_000, "? " * 5_000])
def test_what_is_nested_too_deep_is_found_while_it_is_read(tmp_path, nested):
    (tmp_path / "c.yaml").write_text(f"study:\n  {nested}")
    with pytest.raises(InputError, match=r"c.yaml:2: nested deeper than 20 levels"):
        load_config(tmp_path / "c.yaml")


def test_what_is_no_file_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="is a pipe or a device, which may never end"):
            load_config(path)
        with pytest.raises(InputError, match="is a pipe or a device, which may never end"):
            read_params_file(str(path))


def test_the_merge_key_is_named(tmp_path):
    (tmp_path / "c.yaml").write_text("study:\n  <<: {seed: 1}\n")
    with pytest.raises(InputError, match=r"c.yaml:2: study: YAML's merge key << is not supported"):
        load_config(tmp_path / "c.yaml")


def test_half_a_surrogate_pair_is_refused(tmp_path):
    (tmp_path / "c.yaml").write_text('study: {name: "a\\udce9"}\n')
    with pytest.raises(InputError, match=r"c.yaml:1: study.name: .* half of a surrogate pair"):
        load_config(tmp_path / "c.yaml")


def test_a_whole_surrogate_pair_as_json_escapes_it_is_one_character(tmp_path):
    file = tmp_path / "params.json"
    params = {"mode": "\U0001f355 and café", "\U0001f355": 1}
    file.write_text(json.dumps(params), encoding="utf-8")
    assert "\\ud83c\\udf55" in file.read_text(encoding="utf-8")
    assert read_params_file(file) == params


def test_very_long_values_are_cut_in_messages(tmp_path):
    (tmp_path / "c.yaml").write_text(f"study: {{name: {'x' * 20_000}!}}\n{'k' * 1_000}: 1\n")
    with pytest.raises(InputError) as caught:
        load_config(tmp_path / "c.yaml")
    assert "(20,003 characters) must start with a letter" in str(caught.value)
    assert len(str(caught.value)) < 2_000


def test_control_characters_of_a_key_or_a_value_are_written_out(tmp_path):
    text = 'study: {"\\e[31mname": 1}\nspace: {a: {type: "\\e]0;x\\a"}}\n'
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_config(tmp_path / "c.yaml")
    assert "\x1b" not in str(caught.value)
    assert r"c.yaml:1: study.\u001b[31mname: unknown key" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("space.bm25.top_k.high=7", ("space", "bm25.top_k", "high"), 7),
        ("baseline.bm25.top_k=5", ("baseline", "bm25.top_k"), 5),
        ("baseline.bm25.scale=true", ("baseline", "bm25.scale"), True),
        ("study.name=x", ("study", "name"), "x"),
    ],
)
def test_set_takes_names_with_dots_for_what_they_are(setting, key, value):
    data = {
        "study": {"name": "demo"},
        "space": {"bm25.top_k": {"type": "integer", "low": 1, "high": 9}},
        "baseline": {"bm25.scale": False},
    }
    found = with_overrides(Source("c.yaml", data), [setting])
    assert list(found.overridden) == [key]
    target = found.data
    for step in key[:-1]:
        target = target[step]
    assert target[key[-1]] == value
