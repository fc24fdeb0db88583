"""What `tuner compare --answers` prints: two context strategies by their answers."""

from __future__ import annotations

from tuner.cli.out import echo
from tuner.cli.pair_table import print_changes, print_pairs
from tuner.cli.tables import print_types
from tuner.scoring.answers import AnswerDuel


def print_duel(duel: AnswerDuel) -> None:
    """Print the figures, the sentence, and the queries that changed most."""
    print_pairs(duel.metrics)
    echo(f"\n{duel.sentence}", bold=True)
    print_types(duel.to_record())

    def told(row: int) -> str:
        query = duel.queries[row]
        a, b = (side.texts.get(query.id, "") for side in duel.answers)
        return f"{query.id}  {query.text}  A: {a[:60]}  B: {b[:60]}"

    changes = duel.changes
    print_changes([one for one in reversed(changes) if one[1] > 0], told, title="gained most")
    print_changes([one for one in changes if one[1] < 0], told, title="lost most")
