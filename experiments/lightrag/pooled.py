"""Several splits together: the default, the winner and the best of each study on its held-out half.

    python experiments/lightrag/pooled.py runs/lightrag-musique-*

One split of 100 queries leaves 50 to judge by. Over several splits each query is held out a few
times; its differences are averaged, so that the interval at the end is over queries and not over
looks at them. Winners of different splits share tune queries: take it as an indication.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from tuner.config import load_config
from tuner.core.rankings import FloatArray
from tuner.core.trial import Params
from tuner.run.assembly import Assembly, assemble
from tuner.run.planning import make_plan
from tuner.stats import PairedComparison, compare_paired


def main(run_dirs: Sequence[str]) -> None:
    pooled: dict[str, dict[str, list[float]]] = {
        name: defaultdict(list) for name in ("winner", "best")
    }
    print(
        "| seed | default | winner | difference | best | difference | tokens: default, winner, best |"
    )
    print("| ---: | ---: | ---: | --- | ---: | --- | --- |")
    for run_dir in map(Path, run_dirs):
        config, source = load_config(run_dir / "config.yaml")
        assembly = assemble(config, source, make_plan(config, source), say=lambda _: None)
        default, tokens = score(assembly, assembly.baseline or {})
        row = [str(config.study.seed), f"{default.mean():.3f}"]
        counts = [tokens]
        for name, params in chosen(run_dir).items():
            values, tokens = score(assembly, params)
            counts.append(tokens)
            row += [f"{values.mean():.3f}", described(compare_paired(values, default, seed=0))]
            for query, difference in zip(assembly.holdout_queries, values - default, strict=True):
                pooled[name][query.id].append(float(difference))
        print(
            f"| {' | '.join(row)} | {', '.join(f'{count:.0f}' for count in counts)} |", flush=True
        )
    for name, differences in pooled.items():
        values = np.array([np.mean(each) for each in differences.values()])
        comparison = compare_paired(values, np.zeros(len(values)), seed=0)
        print(f"{name} less default, over {len(values)} queries: {described(comparison)}")


def chosen(run_dir: Path) -> dict[str, Params]:
    """Return the parameters of a study's winner and of its best trial."""
    winner = yaml.safe_load((run_dir / "best.yaml").read_text(encoding="utf-8"))["params"]
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    summary = next(
        record for record in map(json.loads, reversed(lines)) if record.get("kind") == "summary"
    )
    return {"winner": winner, "best": summary["best"]["params"]}


def score(assembly: Assembly, params: Params) -> tuple[FloatArray, float]:
    """Return the objective by held-out query, and the mean words of a context."""
    outcome = assembly.evaluate(assembly.params(params), assembly.holdout_queries)
    return assembly.plan.objective.by_query(outcome.per_query), outcome.metrics["context_tokens"]


def described(comparison: PairedComparison) -> str:
    low, high = comparison.interval or (float("nan"), float("nan"))
    return f"{comparison.mean_difference or 0:+.3f} [{low:+.3f}, {high:+.3f}]"


if __name__ == "__main__":
    main(sys.argv[1:])
