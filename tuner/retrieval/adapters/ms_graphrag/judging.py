"""Which ids text units are judged by: their own, or those of the data set's documents."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, did_you_mean
from tuner.retrieval.adapters.ms_graphrag.output import Output

JUDGE = ("document", "text_unit")

JudgedBy = Annotated[str, "whose ids the judgements name: `document` or `text_unit`"]


def judged_ids(output: Output, corpus: Corpus, judge: object) -> dict[str, str]:
    """Return text unit id -> the id that it is judged by.

    Under ``"text_unit"`` these are the text units' own ids, and the data set's corpus, where it
    has one, must hold some of them. Under ``"document"`` a text unit counts as its document, and
    that is the document of the data set with the same id; or with GraphRAG's title as its id; or
    with that title less its ending (``d1.txt`` is ``d1``). The first of these three rules under
    which every document of the folder is in the data set holds for all of them.

    Raises:
        InputError: another value of ``judge``, or no rule under which the two fit together.
    """
    if judge not in JUDGE:
        message = f"{judge!r} is not one of {', '.join(JUDGE)}{did_you_mean(str(judge), JUDGE)}"
        raise InputError(message, key=("judge",))
    known = {document.id for document in corpus.documents}
    if judge == "text_unit":
        if known and known.isdisjoint(unit.id for unit in output.units):
            message = (
                f"none of the data set's documents, such as {min(known)!r}, is a text unit of the "
                f"folder, such as {output.units[0].id!r}; write judge: document"
            )
            raise InputError(message, key=("judge",))
        return {unit.id: unit.id for unit in output.units}
    if not known:
        message = "judge: document needs the data set's corpus; the data set has judgements alone"
        raise InputError(message, key=("judge",))
    used = {unit.document_id for unit in output.units}
    titles = {id_: title for id_, title in output.titles.items() if id_ in used}
    rules = {  # the safest first
        "id": {id_: id_ for id_ in titles},
        "title": titles,
        "file name": {id_: PurePath(title).stem for id_, title in titles.items()},
    }
    lost: dict[str, list[str]] = {}
    for name, called in rules.items():
        lost[name] = [id_ for id_ in called.values() if id_ not in known]
        if not lost[name]:
            return {unit.id: called[unit.document_id] for unit in output.units}
    found = ", ".join(f"{len(titles) - len(ids)} by {name}" for name, ids in lost.items())
    nearest = min(lost, key=lambda name: len(lost[name]))
    message = (
        f"of the folder's {len(titles)} documents the data set has {found}; the {nearest} "
        f"{lost[nearest][0]!r} is not one of its ids, such as {min(known)!r}. "
        "Index the data set's corpus.jsonl with id_column: _id, or write judge: text_unit"
    )
    raise InputError(message, key=("judge",))
