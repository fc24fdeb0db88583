"""What a person sees of a study in MLflow's pages."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pytest

# A chromium on a busy machine takes its time; each wait has its own bound.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NAME_LINKS = ".ag-pinned-left-cols-container .ag-row a[href*='/runs/']"


@dataclass(frozen=True)
class Served:
    """The study as the server has it: where its pages are, and what its journal tells."""

    experiment: str
    run_id: str
    trials: list[dict[str, Any]]
    record: dict[str, Any]

    @property
    def run(self) -> str:
        return f"{self.experiment}/runs/{self.run_id}"


@pytest.fixture(scope="module")
def served(server, make_atlas_study, tmp_path_factory) -> Served:
    from mlflow import MlflowClient

    study = make_atlas_study(tmp_path_factory.mktemp("study"), server.uri)
    experiment = MlflowClient(server.uri).get_experiment_by_name("atlas")
    lines = (study.run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    told = [line for line in map(json.loads, lines) if line["event"] == "told"]
    return Served(
        f"{server.uri}/#/experiments/{experiment.experiment_id}",
        study.record["mlflow_run_id"],
        told,
        study.record,
    )


@pytest.fixture
def runs_table(browser, served):
    """The experiment's page, as soon as it lists the study."""
    browser.open(f"{served.experiment}/runs?workflowType=machine_learning")
    browser.read("graphrag-atlas 20", within=NAME_LINKS)
    return browser


def shown_runs(browser) -> list[str]:
    return [link.text for link in browser.find(NAME_LINKS)]


def open_row(browser, name: str) -> None:
    """Press the plus sign before a run's name until it is a minus sign.

    The table takes no click while it is being drawn again.
    """
    row = f"//*[@role='row'][.//a[starts-with(., '{name}')]]"
    button = f"{row}//button[contains(@data-component-id, 'runnamecellrenderer')]"
    closed = browser.see(button).get_attribute("innerHTML")
    pressed_at = float("-inf")

    def is_open() -> bool:
        nonlocal pressed_at
        found = next(iter(browser.find(button)), None)
        if found is None:
            return False
        if found.get_attribute("innerHTML") != closed:
            return True
        if time.monotonic() > pressed_at + 5.0:
            pressed_at = time.monotonic()
            found.click()
        return False

    browser.until(f"the row {name} open", is_open)


def search(browser, words: str) -> None:
    box = browser.see("[data-testid=search-box]")
    box.send_keys(words)
    box.send_keys("\n")


def trial_names(served: Served, is_wanted) -> set[str]:
    return {f"{told['arm']} #{told['trial']}" for told in served.trials if is_wanted(told)}


def test_the_experiment_lists_the_study_and_its_rows_open(runs_table):
    assert len(shown_runs(runs_table)) == 1
    open_row(runs_table, shown_runs(runs_table)[0])
    runs_table.read("grid", "tpe", "baseline", within=NAME_LINKS)
    assert len(shown_runs(runs_table)) == 4
    open_row(runs_table, "tpe")
    runs_table.read("tpe #", within=NAME_LINKS)
    trials = [name for name in shown_runs(runs_table) if name.startswith("tpe #")]
    assert len(trials) == 10
    runs_table.shot("rows")


def test_a_filter_on_metric_and_param_leaves_the_trials_it_means(runs_table, served):
    search(runs_table, "metrics.objective > 0.7 and params.max_hops = '2'")
    expected = trial_names(
        served, lambda told: told["objective"] > 0.7 and told["params"]["max_hops"] == 2
    )
    assert expected
    # Their arms stand above them, closed.
    arms = {name.split()[0] for name in expected}
    runs_table.until(f"the arms {arms} alone", lambda: set(shown_runs(runs_table)) == arms)
    for arm in arms:
        open_row(runs_table, arm)
    runs_table.until(
        f"the trials {expected} alone", lambda: set(shown_runs(runs_table)) == expected | arms
    )
    runs_table.shot("filtered")


def test_metrics_and_params_show_in_columns(runs_table, served):
    search(runs_table, "tags.\"tuner.is_best\" = 'true' and tags.\"tuner.role\" = 'trial'")
    best = served.record["best"]
    runs_table.until("its arm alone", lambda: shown_runs(runs_table) == [best["arm"]])
    open_row(runs_table, best["arm"])
    name = f"{best['arm']} #{best['trial']}"
    runs_table.until("the best trial", lambda: shown_runs(runs_table) == [best["arm"], name])
    runs_table.click("//button[contains(., 'Columns')]")
    for name in ("objective", "max_hops"):
        checkbox = "*[contains(@class, 'checkbox')]"
        runs_table.click(f"//*[contains(@class, 'treenode')][.//*[text()='{name}']]//{checkbox}")
    for column, expected in (
        ("metrics.`objective`", best["tune_objective"]),
        ("params.`max_hops`", best["params"]["max_hops"]),
    ):
        cell = f".ag-row[row-index='1'] [col-id='{column}']"
        assert float(runs_table.see(cell).text) == pytest.approx(expected)
    runs_table.shot("columns")


def test_the_runs_page_tells_verdict_params_and_metrics(browser, served):
    browser.open(f"{served.run}?workflowType=machine_learning")
    sentence = served.record["verdict"]["sentence"].split(":")[0]
    shown = browser.read("Description", sentence, "winner.max_hops", "winner_holdout", "seed")
    assert "Deploy" in sentence
    for arm in ("grid", "tpe", "baseline"):
        assert arm in browser.see(f"//a[.='{arm}']").text
    assert "tuner.verdict" in shown
    browser.shot("run")


def test_the_pages_need_nothing_from_elsewhere(browser, served, server):
    for address in (f"{served.experiment}/runs?workflowType=machine_learning", served.run):
        browser.open(address)
        browser.read("graphrag-atlas 20")
        asked = browser.requests()
        assert asked
        assert [one for one in asked if not one.startswith(server.uri)] == []


def test_the_description_is_a_summary_with_tables(browser, served):
    browser.open(f"{served.run}?workflowType=machine_learning")
    browser.click("//button[contains(., 'Show more')]")
    browser.see("//strong[contains(., 'Deploy')]")
    cells = {cell.text for cell in browser.find("td, th")}
    winner, baseline = served.record["winner"], served.record["baseline"]
    assert {f"winner ({winner['arm']} #{winner['trial']})", "baseline"} <= cells
    assert f"{winner['holdout_objective']:.4f}" in cells
    assert f"{baseline['holdout_objective']:.4f}" in cells
    browser.shot("description")


def test_the_queries_that_changed_most_are_the_run_s_traces(browser, served):
    from mlflow import MlflowClient

    uri, _, experiment = served.experiment.partition("/#/experiments/")
    found = MlflowClient(uri).search_traces(
        locations=[experiment], run_id=served.run_id, order_by=["timestamp_ms DESC"]
    )
    browser.open(f"{served.run}/traces")
    first = found[0].info
    browser.read(first.trace_id, first.request_preview, first.response_preview, "change")
    browser.shot("traces")
    browser.click(f"//*[.='{first.trace_id}']")
    browser.read("a query that", "ranks of the relevant", "baseline composite")
    browser.click("//*[text()='winner']")  # in the tree of spans, before its outputs
    browser.read(found[0].data.spans[2].outputs[0]["page_content"][:40])
    browser.shot("trace")


def test_saved_views_show_the_columns_that_matter(browser, served):
    browser.open(f"{served.experiment}/runs?workflowType=machine_learning")
    browser.read("graphrag-atlas 20", within=NAME_LINKS)
    browser.click("[data-testid=saved-views-trigger]")
    browser.click("//*[@role='menu' or @role='dialog']//*[contains(text(), 'trials')]")
    objectives = [told["objective"] for told in served.trials]
    first = ".ag-row[row-index='0'] [col-id='metrics.`objective`']"
    browser.until(
        "the best trial first", lambda: float(browser.find(first)[0].text) == max(objectives)
    )
    headers = {cell.get_attribute("col-id") for cell in browser.find(".ag-header-cell")}
    assert {"metrics.`recall_at_10`", "params.`graph_weight`", "params.`max_hops`"} <= headers
    browser.shot("trials")


def test_the_artifacts_can_be_looked_at(browser, served):
    browser.open(f"{served.run}/artifacts?workflowType=machine_learning")
    browser.read("best.yaml", "config.yaml", "journal.jsonl", "report.html")
    browser.click("//*[text()='best.yaml']")
    browser.read("graph_weight:", "max_hops:")
    browser.click("//*[text()='per_query.json']")
    browser.read("query_id", "winner composite", "baseline composite")
    browser.shot("per_query")
    browser.click("//*[text()='plots']")
    browser.click("//*[text()='convergence.png']")
    picture = browser.see("img[src^='blob:']")
    browser.until(
        "the picture", lambda: browser.script("return arguments[0].naturalWidth > 300", picture)
    )
    browser.shot("convergence")


def test_the_report_is_shown_among_the_artifacts(browser, served):
    browser.open(f"{served.run}/artifacts/report.html?workflowType=machine_learning")
    frame = browser.see("iframe[src^='blob:']")
    browser.driver.switch_to.frame(frame)
    try:
        browser.read("Deploy", "Winner against baseline", "Convergence")
        browser.until("figures", lambda: browser.find(".js-plotly-plot .main-svg"))
    finally:
        browser.driver.switch_to.default_content()
    browser.shot("report")


def test_the_registered_model_tells_challenger_and_champion(browser, served, server):
    from tuner.tracking.registry import Registry

    registry = Registry(server.uri, "graphrag-atlas")
    (version,) = registry.versions()
    registry.set_alias("champion", version.version)
    browser.open(f"{server.uri}/#/models/graphrag-atlas?workflowType=machine_learning")
    browser.read("Version 1", "challenger", "champion", "deploy")
    browser.shot("model")


def test_the_arms_convergence_overlays_by_step(browser, served):
    browser.open(f"{served.experiment}/runs?workflowType=machine_learning&compareRunsMode=CHART")
    browser.read("graphrag-atlas 20")
    open_row(browser, shown_runs(browser)[0])
    browser.see("//input[contains(@placeholder, 'Search metric charts')]").send_keys("best_so_far")
    card = "//*[@data-testid='experiment-view-compare-runs-card'][.//*[text()='best_so_far']]"
    traces = f"{card}//*[name()='g' and contains(@class, 'scatterlayer')]/*[name()='g']"
    # Baseline, grid and TPE; a line of a single point is a mark.
    browser.until("a curve for each arm", lambda: len(browser.find(traces)) >= 3)
    chart = browser.find(card)[0]
    browser.script("arguments[0].scrollIntoView()", chart)
    browser.shot("convergence")
