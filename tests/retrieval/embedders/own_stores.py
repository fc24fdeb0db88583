"""Vector stores of a user's own, as functions that open them."""

from __future__ import annotations

import odd_embedders

TEXTS = {
    "10": ("Night Ferry is a film directed by Ada Holm in 1954.", ["night ferry", "ada holm"]),
    "11": ("Ada Holm was a director. She was born in Kvarnby.", ["ada holm", "kvarnby"]),
    "12": ("Kvarnby is a town on the river Lissa.", ["kvarnby", "lissa"]),
}


def films():
    """Open the library's own store in memory, over three documents."""
    from graph_retriever import Content
    from graph_retriever.adapters.in_memory import InMemory

    def embedding(text):
        return odd_embedders.letters([text])[0].tolist()

    contents = [
        Content.new(id_, text, embedding, metadata={"keywords": names})
        for id_, (text, names) in TEXTS.items()
    ]
    return InMemory(embedding, contents)


def nothing():
    return None


def unreachable():
    raise ConnectionError("no route to the store")
