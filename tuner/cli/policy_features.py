"""What ``tuner policy --by features`` shows of what was learned."""

from __future__ import annotations

from tuner.cli.options import note
from tuner.cli.out import echo
from tuner.run.by_features import FeaturesResult
from tuner.run.features_words import gain_sentence, left_out_sentences, rule_lines


def print_model(result: FeaturesResult) -> None:
    """Print the rule, what matters in it, and the gain to expect."""
    for sentence in left_out_sentences(result.learned):
        note(f"note: {sentence}")
    for line in rule_lines(result):
        echo(line)
    echo(gain_sentence(result.learned))
