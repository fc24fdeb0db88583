"""Turn entities into passages, and say which facts a passage states."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from dataclasses import dataclass, field

from tables import Atlas, Entity, choose, seeded, shuffled
from templates_people import PEOPLE
from templates_places import PLACES

TEMPLATES = PLACES | PEOPLE
THE_COUNTRIES = (
    "Netherlands|United Kingdom|United States|United Arab Emirates|Czech Republic|Maldives|Gambia|"
    "Philippines|Dominican Republic|Democratic Republic of the Congo|Republic of the Congo"
).split("|")
THE_MOUNTAINS = "Matterhorn|Eiger|Jungfrau|Zugspitze|Grossglockner|Dufourspitze".split("|")
BARE_NAMES = re.compile(
    r"Big Ben|Stonehenge|Hadrian's|Notre|Mont-|St\.? |Saint Basil|Neuschwan|Schönbrunn|Cologne C|"
    r"La Scala|Hagia|Ayaso|Topkapı|Angkor|Borobudur|Petra|Abu S|Great Zim|Machu|Chichen|Chris|Uluru|Burj|"
    r"Ha Long|Hudson Bay|.* Falls|Bab-el|Rialto|Mount |Lake |Loch |Lough |Versailles|Ayers|.*Lady |Lal Q"
)
THE_REGIONS = re.compile(
    r"Mountains|Alps|Pyr|Carp|Apen|Cauc|Forest|Himal|Kara|Hindu|Pamir|Tian|Altai|Plateau|Draken|Rwen|Andes|"
    r"Range|Nevada|Highlands|Sahara|Gobi|Ataca|Kalah|Namib|Rub|Thar|Takla|Negev|Mojave|Desert|Rockies"
)
NICKNAMES = re.compile(
    r"(City|Venice|Paris|Pearl|Place|Haven|Florence|Land|Lands|Abode|Home|Gateway|Lighthouse|Mountain|Lord|"
    r"Chariot|Isle|Island|Principality|Green City|Republic) (of|in|on|to) |Hexagon|.* (Republic|Kingdom|Isle|"
    r"Nation|Confederation|Federation|Duchy|North|Islands|Archipelago|See)$|Gold Coast|Lion City|Ogre|Maiden|"
    r"(White|Turquoise|Smoking|Stone|Hungarian|Hot|Salt|Jade|Great) (Lady|Mountain|Head|Goddess|Sentinel|Sea|Lake)$|"
    r"(White|Pink|Eternal|Granite|Magic|Salt|Steel|Derby|Gateway|Crescent|Bluff|Mill|Motor|Emerald|Rose|Harbour|"
    r"Fair|Mother|Round|Red|Federal|Marvellous|Windy|Humblest|Auld) City$|Big Apple"
)
THE_FINDS = re.compile(
    r"(?!.*['’]s? ).*(tron|Proton|hypothesis|model|principle|equation|effect|limit|gravitation|inheritance|cycle|"
    r"table|helix|theory|theorems|vaccine|antitoxin|bacillus|process|pile|lamp|scope|gram|meter|clock|rod|press|"
    r"[Ee]ngine|Pascaline|machine|calculus|Web|phone|graph|motor|type|wagen|balloon|Flyer|burner|scale)$|Law of"
)
THE_PEOPLES = re.compile(
    r"(Romans|Greeks|Vikings|Celts|Phoenicians|Danes|Teutonic Knights|Fatimids|Almoravids|Tuareg|Incas|Aztecs|"
    r"Jesuits|Puritans|Corinthians|Dutch|Soviet Union|.* Empire|American Colonization Society)$"
)
# Names that would be out of place in passages on later times; questions may still use them.
OUTDATED = frozenset(
    "Londinium|Lutetia|Lugdunum|Burdigala|Aurelianum|Massalia|Colonia|Moguntiacum|Argentoratum|Singidunum|Eboracum|"
    "Jorvik|Mancunium|Aquae Sulis|Olisipo|Barcino|Hispalis|Caesaraugusta|Valentia|Malaca|Gades|Gadir|Florentia|"
    "Mediolanum|Neapolis|Serdica|Syene|Eblana|Erebuni|Berytus|Maracanda|Pataliputra|Lucilinburhuc|Hochelaga|Shawmut|"
    "New Amsterdam|Fort Orange|Yerba Buena|Fort Duquesne|Granville|Bytown|Ville-Marie|Tenochtitlan|Byzantium|Men-nefer|"
    "Lusitania|Albion|Caledonia|Helvetia|Hexagon|Bessarabia|New Spain|New Holland|New Granada|Buda and Pest|"
    "Khanbaliq|Chang'an|Edo|Heian-kyō|Batmania|Christopolis|Siam|Annam|Abyssinia|Dahomey|Upper Peru".split(
        "|"
    )
)
WATER_COLUMNS = (
    "river",
    "longest_river",
    "tributary_of",
    "outflow",
    "inflow",
    "part_of",
    "connects",
    "mouth",
)
MAKERS = {
    "novel": "author", "novella": "author", "play": "playwright", "poem": "poet", "story": "author",
    "painting": "painter", "fresco": "painter", "opera": "composer", "symphony": "composer",
    "ballet": "composer", "tone poem": "composer", "film": "director", "building": "architect",
    "sculpture": "sculptor", "treatise": "author", "epic poem": "poet", "fairy tale": "author",
}  # fmt: skip
MADE_BY = {
    "author": "written by", "playwright": "written by", "poet": "composed by", "painter": "from the hand of",
    "composer": "with music by", "director": "directed by", "architect": "designed by",
    "sculptor": "carved or cast by", "creator": "by",
}  # fmt: skip
PLURALS = {
    "theory": "theories",
    "discovery": "discoveries",
    "phenomenon": "phenomena",
    "medicine": "medicines",
}
UNNAMED_ALIASES = re.compile(r".{0,3}$")


@dataclass(frozen=True)
class Passage:
    """A document; ``links`` are the columns of its entity whose values the text states.

    ``sentences`` are those that state them, by column.
    """

    title: str
    text: str
    links: frozenset[str]
    sentences: dict[str, str] = field(default_factory=dict)


def with_article(text: str, kind: str) -> str:
    """Put ``the`` before a name where English wants it inside a sentence."""
    match kind:
        case "river":
            needed = True
        case "region":
            needed = bool(THE_REGIONS.search(text))
        case "country":
            needed = text in THE_COUNTRIES
        case "mountain":
            needed = text in THE_MOUNTAINS
        case "water" | "landmark":
            needed = not BARE_NAMES.match(text)
        case "lake or island":
            needed = bool(re.match(r"(Dead|Aral|Caspian|Great S.*) |Isle", text))
        case "discovery":
            needed = bool(THE_FINDS.match(text))
        case "institution":
            needed = bool(
                re.match(r"(University|Royal|École|National|Museum|Bank|Institute|Academy)\b", text)
            )
        case _:
            needed = False
    needed |= kind in ("country", "city", "mountain", "lake or island") and bool(
        NICKNAMES.match(text)
    )
    return (
        f"the {text}"
        if needed and not text.lower().startswith(("the ", "la ", "le ", "den "))
        else text
    )


def indefinite(words: str) -> str:
    if re.search(r"[^s]s$", words):
        return f"a set of {words}"
    return f"an {words}" if re.match(r"[aeioAEIO]|u(?!ni)", words) else f"a {words}"


def joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def short_name(entity: Entity) -> str:
    """Return how running text refers to an entity at second mention."""
    if entity.kind != "person":
        return entity.base
    surname = entity.base.split()[-1]
    return surname if surname in entity.aliases else entity.base


def mention(atlas: Atlas, value: str, column: str, *seed: object, by_name: bool = False) -> str:
    """Write a value in a passage of another entity: by name, sometimes by alias or surname."""
    entity = atlas.linked(value)
    if entity is None:
        year = re.fullmatch(r"-(\d+)", value)
        needs_article = THE_PEOPLES.match(value) or column in WATER_COLUMNS
        if year:
            return f"{year[1]} BC"
        kind = re.fullmatch(r"(.+) \(([a-z ]+)\)", value)
        return f"the {kind[2]} {kind[1]}" if kind else f"the {value}" if needs_article else value
    if entity.kind == "work" and len(atlas.names[entity.base]) > 1:
        return f"the {entity.one('form')} {entity.base}"
    own = [
        alias
        for alias in entity.aliases
        if atlas.resolve(alias) is entity
        and re.match(r"(?!The ).{4}", alias)
        and alias not in OUTDATED
    ]
    dice = 99 if by_name else seeded("mention", value, *seed) % 100
    if entity.kind == "person" and dice < 30:
        return short_name(entity)
    if own and entity.kind != "work" and 30 <= dice < 45:
        return with_article(choose(own, value, *seed), entity.kind)
    return with_article(entity.base, entity.kind)


def omitted(atlas: Atlas) -> set[tuple[str, str]]:
    """Return the (entity, column) pairs that another entity's passage already states."""
    skip: set[tuple[str, str]] = set()
    for entity in atlas.entities.values():
        if entity.kind == "country":
            skip |= {
                (entity.one("capital"), "country"),
                (entity.one("highest_mountain"), "country"),
            }
        if entity.kind == "landmark" and entity.one("city"):
            skip.add((entity.name, "country"))
        if entity.kind == "institution" and entity.one("city"):
            skip.add((entity.name, "country"))
        if entity.kind == "person":
            birth_city = atlas.linked(entity.one("birth_city"))
            if birth_city is not None and birth_city.kind == "city":
                skip.add((entity.name, "birth_country"))
    return skip


def fields(atlas: Atlas, entity: Entity, skip: set[tuple[str, str]]) -> dict[str, str]:
    """Return the text that fills each placeholder of the entity's templates."""
    filled: dict[str, str] = {}
    for column, values in entity.values.items():
        if not values or (entity.name, column) in skip:
            continue
        filled[column] = joined(
            [mention(atlas, v, column, entity.name, by_name=len(values) > 2) for v in values[:7]]
        )
    if "note" in filled:
        filled["note"] = (
            entity.one("note")
            if len(entity.values["note"]) == 1
            else joined(list(entity.values["note"]))
        )
    plain = [re.sub(r" \([^)]*\)$", "", alias) for alias in entity.aliases]
    aliases = [a for a in dict.fromkeys(plain) if not UNNAMED_ALIASES.match(a) and a != entity.base]
    if aliases:
        filled["aliases"] = " or ".join(aliases[:3])
    if "birth_city" in filled and "birth_country" in filled:
        filled["birth_city"] += f", {filled.pop('birth_country')},"
    if "award" in filled:
        awards = dict.fromkeys(entity.values["award"])
        filled["award"] = joined([a if a.startswith("Prix") else f"the {a}" for a in awards])
    form = entity.one("form") or entity.kind
    filled |= {"a_form": indefinite(form), "plural_form": PLURALS.get(form, f"{form}s")}
    if entity.kind == "person":
        filled["a_occupation"] = indefinite(entity.one("occupation"))
    if entity.kind == "work":
        filled["made_by"] = MADE_BY[MAKERS.get(form, "creator")]
    if entity.kind == "institution" and "note" in filled:
        note = filled["note"].rstrip(".")
        filled["note_sentence"] = (
            f"{capital_first(note)}."
            if re.search(r"^(It|Its|The) ", note)
            else f"In a few words: {note}."
        )
    filled["N"] = with_article(entity.base, entity.kind)
    return filled


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def references(entity: Entity) -> tuple[list[str], list[str]]:
    """Return the references that open a sentence and those inside one."""
    if entity.kind == "person":
        role = f"the {entity.one('occupation').split(' and ')[0]}"
        return [short_name(entity), capital_first(role), short_name(entity)], [
            short_name(entity),
            role,
        ]
    return ["It"], ["it"]


def write_passage(
    atlas: Atlas, entity: Entity, skip: set[tuple[str, str]], extra: Iterable[str] = ()
) -> Passage:
    """Write one passage from the entity's facts; ``extra`` sentences are added at the end."""
    filled = fields(atlas, entity, skip)
    openers, inner = references(entity)
    free = {"N", "S", "s", "a_form", "plural_form", "made_by"}
    sentences: list[str] = []
    stated: dict[str, str] = {}
    *slots, closing_lines = TEMPLATES[entity.kind]
    for index, slot in enumerate(slots):
        able = [(placeholders(t) - free, t) for t in slot]
        able = [(needs, t) for needs, t in able if needs <= filled.keys()]
        if not able:
            continue
        fullest = max(len(needs) for needs, _ in able)
        needs, template = choose(
            [pair for pair in able if len(pair[0]) == fullest], entity.name, index
        )
        words = filled | {
            "S": choose(openers, entity.name, index, "S"),
            "s": choose(inner, entity.name, index, "s"),
        }
        sentences.append(
            capital_first(template.format(**words)).replace(",,", ",").replace(",.", ".")
        )
        stated |= dict.fromkeys(sorted(needs), sentences[-1])
    sentences += extra
    # Lines without a fact lengthen short passages, as background does in real articles.
    for line in shuffled(closing_lines, entity.name, "closing"):
        if len(" ".join(sentences).split()) >= 38 + seeded(entity.name, "length") % 16:
            break
        if placeholders(line) <= filled.keys():
            sentences.append(line.format(**filled))
    head, *rest = sentences
    text = " ".join([head, *shuffled(rest, entity.name, "order")])
    columns = entity.values.keys() | {"aliases"}
    stated = {column: sentence for column, sentence in stated.items() if column in columns}
    return Passage(entity.name, text, frozenset(stated), stated)
