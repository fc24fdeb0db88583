"""A file of the working folder that is called like a module is not run in its place."""

from __future__ import annotations

CALLED_LIKE = ("numpy", "json", "typing", "yaml", "click", "scipy", "joblib", "pandas", "filelock")


def shadow(tuner) -> None:
    for name in CALLED_LIKE:
        code = (
            f"open({str(tuner.folder / 'ran')!r}, 'a').write({name!r} + '\\n')\nraise SystemExit\n"
        )
        (tuner.folder / f"{name}.py").write_text(code, encoding="utf-8")
    # As for somebody who did not put the folder first himself.
    tuner.environment["PYTHONPATH"] = tuner.environment["PYTHONPATH"].removeprefix(
        f"{tuner.folder}:"
    )


def test_it_is_the_last_place_looked_into(tuner):
    shadow(tuner)
    assert "graph_weight" in tuner("knobs", "hybrid").stdout
    assert not (tuner.folder / "ran").exists()


def test_nor_is_it_run_by_worker_processes_which_find_the_user_s_modules_all_the_same(tuner):
    shadow(tuner)
    module = "def search(query, top_k=3):\n    return ['Lima-river', 'Oslo-river'][:top_k]\n"
    (tuner.folder / "app.py").write_text(module, encoding="utf-8")
    tuner.edit('{kind: "word_overlap:WordOverlap"}', "{kind: function, function: 'app:search'}")
    tuner.edit("  title_weight: {type: real, low: 0.0, high: 4.0}\n", "")
    tuner.edit("{title_weight: 1.0, top_k: 10}", "{top_k: 10}")
    tuner.edit("kind: inline", "kind: processes, workers: 2")
    tuner("run", "config.yaml", "--quiet")
    assert not (tuner.folder / "ran").exists()
