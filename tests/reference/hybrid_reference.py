"""The hybrid engine's mathematics in plain Python: dicts, loops, no pool, no cache, no arrays.

Slow and meant to be read. It shares with the engine only how text is split into words, which
phrases of a passage are names, and where documents are cut; scores, graph, seeds, walks and fusion
are written out anew.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tuner.core.corpus import Corpus, Document
from tuner.core.words import fold, name_words
from tuner.retrieval.hybrid.chunks import cut
from tuner.retrieval.hybrid.names import is_usable, own_names, phrases
from tuner.retrieval.hybrid.seeds import QUESTION_WORDS
from tuner.retrieval.hybrid.text import STOP_WORDS, analyse, full_text

Name = tuple[str, ...]
Walk = dict[str, float]  # a share of the walkers by document id
# What a walk adds, the document whose names it starts from or "", its names, and its documents.
Way = tuple[float, str, tuple[Name, ...], tuple[str, ...]]


def spread(scores: dict[str, float]) -> dict[str, float]:
    """Scale scores from the least, 0, to the greatest, 1; equal ones are all 1."""
    low, high = min(scores.values()), max(scores.values())
    return {d: (s - low) / (high - low) if high > low else 1.0 for d, s in scores.items()}


def _groups(name: Name) -> list[str]:
    """Return the groups of three characters of ``" word "``, word by word; a short word is one."""
    padded = [f" {word} " for word in name]
    return [w[i : i + 3] for w in padded for i in range(max(len(w) - 2, 1))]


@dataclass
class HybridReference:
    corpus: Corpus
    k1: float = 1.5
    b: float = 0.75
    embed: Callable[[str], list[float]] | None = None
    dense_weight: float = 0.5
    seeds: int = 8
    hop_decay: float = 0.7
    passage_weight: float = 0.0
    names: str = "both"
    hub_cut: float = 0.02
    edge_weight: float = 10.0
    synonym_threshold: float = 0.0
    documents: list[Document] = field(init=False)
    to_passages: dict[Name, Walk] = field(init=False)
    to_names: dict[str, dict[Name, float]] = field(init=False)

    def __post_init__(self) -> None:
        self.documents = sorted(self.corpus.documents, key=lambda document: document.id)
        self.terms = {d.id: analyse([full_text(d)])[0] for d in self.documents}
        self.words = {d.id: set(name_words(full_text(d))) for d in self.documents}
        self._link()
        self._count_capitals()

    # --- text

    def bm25(self, text: str) -> dict[str, float]:
        total = len(self.documents)
        mean_length = sum(map(len, self.terms.values())) / total
        scores = {}
        for document in self.documents:
            counts = Counter(self.terms[document.id])
            score = 0.0
            for term in analyse([text])[0]:
                found = counts[term]
                if found:
                    holding = sum(term in terms for terms in self.terms.values())
                    idf = math.log(1 + (total - holding + 0.5) / (holding + 0.5))
                    length = len(self.terms[document.id]) / mean_length
                    score += idf * found / (found + self.k1 * (1 - self.b + self.b * length))
            scores[document.id] = score
        return scores

    def cosines(self, text: str) -> dict[str, float]:
        """Return 1 + the cosine of query and document; 0 where one of both is all zeros."""
        asked = self.embed(text)
        scores = {}
        for document in self.documents:
            vector = self.embed(full_text(document))
            product = math.sqrt(sum(a * a for a in asked) * sum(b * b for b in vector))
            dot = sum(a * b for a, b in zip(asked, vector, strict=True))
            scores[document.id] = max(1 + dot / product, 0.0) if product else 0.0
        return scores

    def vector_shares(self, text: str) -> dict[str, float]:
        cosines = self.cosines(text)
        is_flat = max(cosines.values()) - min(cosines.values()) < 1e-6
        return dict.fromkeys(cosines, 1.0) if is_flat else spread(cosines)

    def text_scores(self, text: str) -> dict[str, float]:
        scores = self.bm25(text)
        if self.embed is not None:
            vectors = self.vector_shares(text)
            words = spread(scores)
            scores = {
                d: (1 - self.dense_weight) * words[d] * (scores[d] > 0)
                + self.dense_weight * vectors[d]
                for d in scores
            }
        shares = spread(scores)
        return {d: max(shares[d], 1e-3) if scores[d] > 0 else 0.0 for d in scores}

    # --- graph

    def _link(self) -> None:
        facts: dict[str, list[Name]] = {}
        for document_id, names in self.corpus.entities.items():
            facts.setdefault(document_id, []).extend(map(name_words, names))
        for triple in self.corpus.triples:
            for name in (triple.subject, triple.object):
                facts.setdefault(triple.document_id, []).append(name_words(name))
        own = {document.id: own_names(document) for document in self.documents}
        titles: dict[Name, int] = {}
        for names in own.values():
            for name in names:
                titles.setdefault(name, len(titles))
        title_of = {number: name for name, number in titles.items()}
        links: dict[str, dict[Name, float]] = {}
        for document in self.documents:
            found = facts.get(document.id, [])
            if self.names == "titles" or (self.names == "both" and document.id not in facts):
                found = phrases(document.text)
            mentions = {name for name in found if is_usable(name)}
            longest = max(map(len, titles), default=0)
            if self.names != "triples":
                for number in known_titles(name_words(document.text), titles, longest=longest):
                    mentions.add(title_of[number])
            links[document.id] = dict.fromkeys(mentions, 1.0)
            links[document.id].update(dict.fromkeys(own[document.id], self.edge_weight))
        degrees = Counter(name for names in links.values() for name in names)
        limit = max(self.hub_cut * len(self.documents), 10)
        for document_id, names in links.items():
            for name in [n for n in names if n not in own[document_id] and degrees[n] > limit]:
                del names[name]
        self.degrees = Counter(name for names in links.values() for name in names)
        self.to_passages = {}
        for name in self.degrees:
            weights = {d: names[name] for d, names in links.items() if name in names}
            for other, alike in self.synonyms(name).items():
                for d, names in links.items():
                    if other in names:
                        weights[d] = weights.get(d, 0.0) + alike * names[other]
            self.to_passages[name] = {d: w / sum(weights.values()) for d, w in weights.items()}
        self.to_names = {}
        for document_id, names in links.items():
            rarity = {n: math.log(1 + len(self.documents) / self.degrees[n]) for n in names}
            self.to_names[document_id] = {n: r / sum(rarity.values()) for n, r in rarity.items()}

    def synonyms(self, name: Name) -> dict[Name, float]:
        if self.synonym_threshold == 0:
            return {}
        mine = self.groups(name)
        alike: dict[Name, float] = {}
        for other in sorted(self.degrees):
            theirs = self.groups(other)
            length = math.sqrt(
                sum(w * w for w in mine.values()) * sum(w * w for w in theirs.values())
            )
            product = sum(weight * theirs.get(group, 0.0) for group, weight in mine.items())
            cosine = product / length if length else 0.0
            if self.embed is not None:
                mine_, theirs_ = self.embed(" ".join(name)), self.embed(" ".join(other))
                length = math.sqrt(sum(a * a for a in mine_) * sum(b * b for b in theirs_))
                cosine = max(
                    cosine, sum(a * b for a, b in zip(mine_, theirs_, strict=True)) / length
                )
            cosine = round(cosine, 6)
            if other != name and cosine >= self.synonym_threshold:
                alike[other] = cosine
        return dict(sorted(alike.items(), key=lambda item: -item[1])[:10])

    def groups(self, name: Name) -> dict[str, float]:
        """Return the groups of three characters in a name's words, by tf-idf among all names."""
        counts = Counter(_groups(name))
        total = len(self.degrees)
        return {
            group: count * (math.log((1 + total) / (1 + self.group_names(group))) + 1)
            for group, count in counts.items()
        }

    def group_names(self, group: str) -> int:
        return sum(group in _groups(name) for name in self.degrees)

    # --- seeds

    def _count_capitals(self) -> None:
        self.capital: Counter[str] = Counter()
        self.lower: Counter[str] = Counter()
        for document in self.documents:
            previous_end = 0
            for match in re.finditer(r"[^\W_]+", document.text):
                gap = document.text[previous_end : match.start()]
                opens = previous_end == 0 or any(mark in gap for mark in '.!?:;"“”(')
                previous_end = match.end()
                if match.group()[0].islower():
                    self.lower[fold(match.group())] += 1
                elif match.group()[0].isupper() and not opens:
                    self.capital[fold(match.group())] += 1

    def information(self, word: str) -> float:
        holding = sum(word in words for words in self.words.values())
        is_known = holding > 0 or any(word in name for name in self.to_passages)
        if word in STOP_WORDS and is_known:
            return 0.1
        return math.log((len(self.documents) + 1) / (holding + 0.5))

    def weight(self, name: Name) -> float:
        total = len(self.documents)
        rarity = math.log(total / self.degrees[name]) / math.log(total) if total > 1 else 1.0
        proper = 1.0
        if len(name) == 1:
            capital, lower = self.capital[name[0]], self.lower[name[0]]
            proper = (capital + 0.5) / (capital + lower + 0.5)
        return (0.5 + 0.5 * rarity) * proper

    def candidates(self, text: str) -> dict[Name, float]:
        words = name_words(text)
        capitals = {fold(w) for w in re.findall(r"[^\W_]+", text) if w[0].isupper()}
        has_capitals = bool(capitals - set(words[:1]))
        trust = {w: 1.0 if w in capitals or not has_capitals else 0.5 for w in words}
        telling = [w for w in trust if w not in STOP_WORDS and w not in QUESTION_WORDS]
        in_query = sum(self.information(word) for word in set(words))
        scores: dict[Name, float] = {}
        for name in self.to_passages:
            shared = sum(trust[word] * self.information(word) for word in telling if word in name)
            if shared > 0:
                share = shared / sum(self.information(word) for word in set(name))
                part = 0.5 * share**2 * math.sqrt(shared / in_query)
                scores[name] = part * self.weight(name)
        taken: set[int] = set()
        for length in range(min(12, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                name, places = words[start : start + length], range(start, start + length)
                own_words = [word for word in name if word in telling]
                if name in self.to_passages and own_words and not taken & set(places):
                    taken |= set(places)
                    information = sum(self.information(word) for word in set(name))
                    match = max(trust[word] for word in own_words)
                    exact = match * self.weight(name) * information / (information + 1)
                    scores[name] = max(scores[name], exact)
        scores = {name: round(score, 12) for name, score in scores.items()}
        best = sorted(scores, key=lambda name: (-scores[name], name))[: self.seeds]
        return {name: scores[name] for name in best}

    def seed_weights(self, text: str, temperature: float) -> dict[Name, float]:
        scores = self.candidates(text)
        if not scores:
            return {}
        best = max(scores.values())
        powers = {name: math.exp((score - best) / temperature) for name, score in scores.items()}
        return {name: power / sum(powers.values()) for name, power in powers.items()}

    def best_passages(self, text: str) -> dict[str, float]:
        """Return the passages that words and vectors rank first, and what their walks count."""
        if self.passage_weight == 0:
            return {}
        scores = self.bm25(text)
        words = {d: max(share, 1e-3) * (scores[d] > 0) for d, share in spread(scores).items()}
        legs = [(words, 1.0)]
        if self.embed is not None:
            words = {d: share * (scores[d] > 0) for d, share in spread(scores).items()}
            legs = [(words, 1 - self.dense_weight), (self.vector_shares(text), self.dense_weight)]
        found: dict[str, float] = {}
        for shares, share in legs:
            # Scores of one step of the engine are equal.
            first = min(shares, key=lambda d: (-round(shares[d] * 2**20), d))
            if shares[first] > 0:
                found[first] = found.get(first, 0.0) + share * self.passage_weight
        return found

    # --- walks and fusion

    def graph_scores(self, text: str, temperature: float, max_hops: int) -> Walk:
        at_names = self.seed_weights(text, temperature)
        for document_id, weight in self.best_passages(text).items():
            for name, share in self.to_names[document_id].items():
                at_names[name] = at_names.get(name, 0.0) + weight * share
        total: Walk = {}
        for hop in range(1, max_hops + 1):
            at_passages: Walk = {}
            for name, share in at_names.items():
                for document_id, part in self.to_passages[name].items():
                    at_passages[document_id] = at_passages.get(document_id, 0.0) + share * part
            for document_id, share in at_passages.items():
                total[document_id] = total.get(document_id, 0.0) + self.hop_decay**hop * share
            at_names = {}
            for document_id, share in at_passages.items():
                for name, part in self.to_names[document_id].items():
                    at_names[name] = at_names.get(name, 0.0) + share * part
        greatest = max(total.values(), default=0.0)
        return {d: (score / greatest) ** 0.25 for d, score in total.items()}

    def ways(self, text: str, temperature: float, max_hops: int) -> list[Way]:
        """Return every walk of up to ``max_hops`` hops with what it adds to its last document."""
        begun = [("", name, share) for name, share in self.seed_weights(text, temperature).items()]
        for document_id, weight in self.best_passages(text).items():
            begun += [(document_id, n, weight * s) for n, s in self.to_names[document_id].items()]
        open_ways = [(share, start, (name,), ()) for start, name, share in begun]
        found: list[Way] = []
        for hop in range(1, max_hops + 1):
            arrived = [
                (share * part, start, names, (*documents, document_id))
                for share, start, names, documents in open_ways
                for document_id, part in self.to_passages[names[-1]].items()
            ]
            found += [(self.hop_decay**hop * share, *rest) for share, *rest in arrived]
            open_ways = [
                (share * part, start, (*names, name), documents)
                for share, start, names, documents in arrived
                for name, part in self.to_names[documents[-1]].items()
            ]
        return found

    def scores(
        self, text: str, *, graph_weight: float, max_hops: int, temperature: float
    ) -> dict[str, float]:
        """Return every document's fused score; 0 means that nothing speaks for it."""
        text_scores = self.text_scores(text)
        graph_scores = self.graph_scores(text, temperature, max_hops)
        if not graph_scores:
            return text_scores
        return {
            document_id: graph_weight * graph_scores.get(document_id, 0.0)
            + (1 - graph_weight) * score
            for document_id, score in text_scores.items()
        }


def known_titles(words: Name, known: dict[Name, int], *, longest: int) -> Iterator[int]:
    """Yield the numbers of the titles in ``words``, from the left, long ones first."""
    place = 0
    while place < len(words):
        for length in range(min(longest, len(words) - place), 0, -1):
            number = known.get(words[place : place + length])
            if number is not None:
                yield number
                place += length
                break
        else:
            place += 1


@dataclass
class ChunkedReference:
    """Documents cut into passages, each scored for itself; a document is worth its best one."""

    corpus: Corpus
    chunk_tokens: int
    chunk_overlap: int
    settings: dict[str, Any]
    owner: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names: dict[str, list[str]] = {d: list(found) for d, found in self.corpus.entities.items()}
        for triple in self.corpus.triples:
            names.setdefault(triple.document_id, []).extend([triple.subject, triple.object])
        passages, entities = [], {}
        for place, document in enumerate(sorted(self.corpus.documents, key=lambda d: d.id)):
            parts = [
                Document(f"{place:04}#{number:04}", document.title, text)
                for number, text in enumerate(
                    cut(document.text, tokens=self.chunk_tokens, overlap=self.chunk_overlap)
                )
            ]
            for part in parts:
                self.owner[part.id] = document.id
                if document.id in names:
                    entities[part.id] = tuple(
                        name
                        for name in names[document.id]
                        if _stands_in(name, part) or not any(_stands_in(name, p) for p in parts)
                    )
            passages += parts
        self.passages = HybridReference(Corpus(tuple(passages), (), entities), **self.settings)

    def scores(self, text: str, **params: Any) -> dict[str, float]:
        best: dict[str, float] = {}
        for passage, score in self.passages.scores(text, **params).items():
            owner = self.owner[passage]
            best[owner] = max(best.get(owner, 0.0), score)
        return best


def _stands_in(name: str, passage: Document) -> bool:
    words, text = name_words(name), name_words(full_text(passage))
    return any(text[i : i + len(words)] == words for i in range(len(text) - len(words) + 1))
