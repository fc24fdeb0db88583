"""Passages that share names and topics with the questions but answer none of them.

Every statement is generic or follows from the fact tables; none repeats a fact that links two
entities.
"""

from __future__ import annotations

from collections import defaultdict

from asking import World
from passages import Passage, capital_first, indefinite, joined, short_name, with_article
from tables import Entity, choose, seeded, shuffled

# Kind -> title and sentences; {n} is the name in a sentence, {b} the bare name.
TOPICS: dict[str, list[tuple[str, list[str]]]] = {
    "country": [
        ("{b} national football team", ["The {b} national football team represents {n} in matches between nations.", "It is chosen by a coach whom the football association of {b} appoints.", "Supporters follow the team to qualifiers, friendly games and tournaments, and sing before kick-off.", "Shirts in the colours of {b} are sold in every size."]),
        ("Cuisine of {b}", ["The cuisine of {n} differs from region to region and from family to family.", "Cooks in {b} work with what fields, orchards, herds and markets supply in each season.", "Restaurants abroad that announce dishes from {b} often adapt them to the taste of their guests.", "Cookery books on {b} fill long shelves."]),
        ("Postage stamps of {b}", ["The postage stamps of {n} are collected in albums all over the globe.", "Series on {b} show rulers, animals, flowers, ships and jubilees.", "Catalogues list the issues of {b} by year, colour and perforation, and rare misprints fetch high prices at auctions."]),
        ("Geography of {b}", ["The geography of {n} is a subject of school lessons and of statistical yearbooks.", "Works on the geography of {b} treat relief, rivers, soils, climate, settlement and traffic in separate chapters.", "Maps of {b} exist in many scales, from wall charts to sheets for walkers."]),
    ],
    "city": [
        ("{b} in popular culture", ["{b} serves as a setting, like other cities, for songs, films, detective stories and computer games.", "Directors who want to show {b} begin with a view over its roofs.", "Novels set in {b} seldom agree on what the place is like, since each writer meets another town.", "Lists of songs about {b} are never complete."]),
        ("Public transport in {b}", ["Public transport in {b} relies on vehicles of several kinds and on staff who work in shifts.", "Tickets for {b} can be bought for a single ride or for longer periods.", "Timetables are thinned out at night, and works on the network lead to diversions.", "Fans of trains and buses photograph every series that has run in {b}."]),
        ("Football clubs of {b}", ["Football in {b} is played by professionals, amateurs and children on many grounds.", "Derbies between clubs of {b} divide families for a day.", "Scarves, fanzines and songs belong to the clubs, whose histories fill books.", "Local papers in {b} give the sport several pages on Mondays."]),
        ("Maps of {b}", ["Maps of {b} are printed for drivers, walkers, planners and tourists.", "Old plans of {b} show walls, gardens and fields where houses stand today.", "Collectors compare maps of {b} by date, scale and colouring, and archives keep the rarest ones flat in drawers."]),
    ],
    "river": [
        ("Bridges over {n}", ["Bridges over {n} have been built of wood, stone, iron, steel and concrete.", "Ice, floods and wars have damaged crossings of the {b}, and engineers have replaced them.", "Walkers collect the bridges of the {b} as others collect stamps.", "A crossing decides where roads meet and towns grow."]),
        ("Ships and river names: {b}", ["Navies and shipping lines like to name vessels after rivers, and {b} makes a short, easy name.", "Whoever looks for a ship called {b} should ask registers for tonnage, yard and fate.", "Several vessels may share one name such as {b}, one after the other or at the same time.", "Models of such ships stand in museums."]),
        ("Fishing in {n}", ["Fishing in {n} is bound by licences, closed seasons and least sizes.", "Anglers on the {b} swap stories about baits, pools and the ones that got away.", "Clubs along the {b} stock its waters and count what is caught.", "Old nets and traps are shown in local collections."]),
    ],
    "mountain": [
        ("{b} in art", ["Pictures of {n} range from careful drawings to loud posters.", "Painters and photographers have returned to {n} in every season and at every hour.", "Labels on bottles, cheese and tins borrow the outline of {b}.", "Collectors look for early views of it."]),
    ],
    "person": [
        ("Quotations ascribed to {b}", ["Quotations ascribed to {b} fill calendars and web pages.", "Not every saying under the name {s} can be traced to a source, and translators make {b} speak in many voices.", "Careful readers ask for the title and the page before they repeat a word of {b}."]),
        ("Streets named after famous people: {b}", ["Councils like to name avenues, squares and schools after famous people, and {b} is no exception.", "Whoever looks for a {s} Street or a {s} Square on a map should add the name of the town.", "Small plates below such signs sometimes explain who {b} was."]),
        ("Bibliography on {b}", ["A bibliography on {b} lists editions, translations, lives and articles.", "Letters and papers by or on {s} are edited by scholars with many footnotes.", "Reviewers of books on {b} seldom agree.", "Beginners are sent to a short introduction before they open a collected edition."]),
        ("{s} as a family name", ["The family name {s} tells little by itself.", "Genealogists warn that sharing the name {s} proves no kinship with {b}.", "Parish registers, tax lists and gravestones are the sources for such research, and spelling varies from one clerk to the next."]),
    ],
    "work": [
        ("Adaptations of {b}", ["Adaptations of {b} are many, for stage, screen, radio and for the young.", "Each one of them leaves out scenes of {b} and invents others.", "Purists complain, while others are led to {b} by such versions.", "Lists of them are kept by fans."]),
    ],
    "discovery": [
        ("{b} in fiction", ["{b} has its place in stories about laboratories, inventors and journeys to other worlds.", "Writers take liberties with {b}, and readers with training in science enjoy finding the mistakes.", "Comics and games borrow from science as well, and {b} is within their reach."]),
    ],
    "lake or island": [
        ("Tourism at {b}", ["Tourism at {b} brings income to some families and noise to others.", "Brochures on {b} show sunsets, boats and smiling waiters.", "Guests come back to {b} year after year and complain that it was quieter before.", "Rooms are scarce in the high season."]),
    ],
}  # fmt: skip


def bare(entity: Entity) -> dict[str, str]:
    return {"n": with_article(entity.base, entity.kind), "b": entity.base, "s": short_name(entity)}


def namesake_lists(world: World) -> list[Passage]:
    """List what an ambiguous name may stand for, as disambiguation pages do."""
    found = []
    for name, holders in sorted(world.atlas.names.items()):
        entities = [world.atlas.entities[h] for h in holders]
        if len(entities) < 2 or len(name) < 4 or name.islower():
            continue
        meanings = [
            indefinite(entity.one("form") or entity.one("occupation") or entity.kind).replace(
                "lake or island", "lake"
            )
            for entity in entities
        ]
        several = joined(list(dict.fromkeys(meanings)))
        if len(set(meanings)) == 1:
            several = f"{several}, or another one of the same kind"
        text = (
            f"{name} may refer to several things: {several}. Which {name} is meant can only be told from the context. "
            f"Librarians who index {name} therefore add a word in parentheses. Further bearers of the name {name} exist that have no article here."
        )
        title = f"{name} (disambiguation)"
        if title not in world.passages:
            found.append(Passage(title, text, frozenset()))
    return found


def distractors(world: World, subjects: list[str], count: int) -> list[Passage]:
    """Write ``count`` passages without any answer, on subjects that questions mention first."""
    passages = shuffled_passages(namesake_lists(world))[: count // 4]
    taken: defaultdict[str, int] = defaultdict(int)
    titles = {p.title for p in passages} | world.passages.keys()
    for name in dict.fromkeys([*subjects, *shuffled(world.passages, "distractor")]):
        if len(passages) == count:
            break
        entity = world.atlas.entities[name]
        topics = TOPICS.get(entity.kind, [])
        # One article a subject, and no kind may crowd out the others.
        if not topics or taken[entity.kind] > count // 4 or len(world.atlas.names[entity.base]) > 1:
            continue
        title, sentences = choose(topics, name, "topic")
        words = bare(entity)
        heading = capital_first(title.format(**words))
        if heading in titles:
            continue
        taken[entity.kind] += 1
        titles.add(heading)
        kept = sentences if seeded(name, "short") % 2 else sentences[:3]
        passages.append(
            Passage(heading, " ".join(capital_first(s.format(**words)) for s in kept), frozenset())
        )
    return passages


def shuffled_passages(passages: list[Passage]) -> list[Passage]:
    by_title = {passage.title: passage for passage in passages}
    return [by_title[title] for title in shuffled(by_title, "namesakes")]
