"""The wording of questions: how a relation names an unnamed entity, and what can be asked of it.

A hop turns the description of one entity into that of another ("the birthplace of {x}"); an end
asks for one fact ("Into which body of water does {x} empty?"). The words differ on purpose from
those of the passages.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hop:
    """A link from an entity of ``kind`` through ``column`` to another entity.

    With ``inverse`` the link stands in the passage of the entity that is reached.
    """

    kind: str
    column: str
    reaches: tuple[str, ...]
    phrases: tuple[str, ...]
    label: str
    inverse: bool = False


@dataclass(frozen=True)
class End:
    """A fact that a question can ask for."""

    kind: str
    column: str
    questions: tuple[str, ...]
    label: str


HOPS = (
    Hop("work", "creator", ("person",), ("the {maker} of {x}", "the {maker} who created {x}"), "created by"),
    Hop("discovery", "discoverer", ("person",), ("the person who discovered or devised {x}", "the discoverer or inventor of {x}", "the scientist credited with {x}"), "discovered by"),
    Hop("discovery", "named_after", ("person", "city", "country"), ("the namesake of {x}", "the person or place that {x} is called after"), "named after"),
    Hop("person", "birth_city", ("city",), ("the birthplace of {x}", "the city where {x} was born", "the home town of {x}"), "born in"),
    Hop("person", "death_city", ("city",), ("the city where {x} passed away", "the place of death of {x}"), "died in"),
    Hop("person", "teacher", ("person",), ("the teacher or model of {x}", "the master whom {x} followed"), "pupil or follower of"),
    Hop("person", "student_of_university", ("institution",), ("the university attended by {x}", "the alma mater of {x}"), "studied at"),
    Hop("person", "spouse", ("person",), ("the husband or wife of {x}",), "married to"),
    Hop("institution", "city", ("city",), ("the city that is home to {x}", "the city of {x}"), "located in"),
    Hop("institution", "founder", ("person",), ("the founder of {x}",), "founded by"),
    Hop("landmark", "city", ("city",), ("the city where {x} can be visited", "the city that boasts {x}"), "located in"),
    Hop("landmark", "architect", ("person",), ("the designer of {x}",), "designed by"),
    Hop("work", "location", ("institution", "landmark"), ("the museum that owns {x}", "the building where {x} hangs or stands"), "kept in"),
    Hop("work", "setting", ("city", "country", "lake or island"), ("the place in which {x} is set", "the place where the story of {x} unfolds"), "set in"),
    Hop("work", "based_on", ("work",), ("the work on which {x} is based", "the source of {x}"), "based on"),
    Hop("city", "river", ("river",), ("the river on which {x} stands", "the river of {x}"), "on the river"),
    Hop("city", "country", ("country",), ("the country in which {x} is situated", "the nation that {x} is part of"), "in the country"),
    Hop("city", "sea", ("water",), ("the sea or ocean at whose coast {x} is situated",), "on the coast of"),
    Hop("city", "capital", ("country",), ("the country whose capital is {x}", "the nation whose capital is {x}"), "capital", inverse=True),
    Hop("country", "capital", ("city",), ("the capital of {x}", "the capital city of {x}"), "capital"),
    Hop("country", "highest_mountain", ("mountain",), ("the highest mountain of {x}", "the tallest peak in {x}"), "highest mountain"),
    Hop("country", "longest_river", ("river",), ("the longest river of {x}", "the longest of the rivers in {x}"), "longest river"),
    Hop("country", "independence_from", ("country",), ("the state from which {x} gained independence",), "independent from"),
    Hop("river", "mouth", ("water", "lake or island", "river"), ("the body of water into which {x} empties", "the water at the mouth of {x}"), "mouth"),
    Hop("river", "tributary_of", ("river",), ("the larger river joined by {x}", "the river of which {x} is a tributary"), "tributary of"),
    Hop("river", "source", ("region", "lake or island"), ("the source region of {x}", "the place where {x} rises"), "source"),
    Hop("mountain", "range", ("region",), ("the mountain range of {x}",), "in the range"),
    Hop("lake or island", "outflow", ("river",), ("the river that drains {x}",), "outflow"),
    Hop("lake or island", "sea", ("water",), ("the sea or ocean around {x}",), "in the sea"),
    Hop("water", "part_of", ("water", "river"), ("the larger water that {x} belongs to",), "part of"),
)  # fmt: skip

ENDS = (
    End("person", "birth_year", ("In what year was {x} born?", "What is the year of birth of {x}?"), "birth year"),
    End("person", "birth_city", ("Where was {x} born?", "What is the birthplace of {x}?"), "born in"),
    End("person", "death_city", ("In which place did {x} pass away?", "What is the place of death of {x}?"), "died in"),
    End("person", "death_year", ("In what year did {x} pass away?", "What is the year of death of {x}?"), "death year"),
    End("person", "spouse", ("Who was the husband or wife of {x}?",), "married to"),
    End("person", "teacher", ("Who was the teacher or model of {x}?",), "pupil or follower of"),
    End("person", "student_of_university", ("Which university did {x} attend?", "What was the alma mater of {x}?"), "studied at"),
    End("person", "award", ("Which prize or medal did {x} win?",), "award"),
    End("work", "creator", ("Who created {x}?", "Whose work is {x}?"), "created by"),
    End("work", "year", ("When was {x} published or finished?", "In what year did {x} appear?"), "year"),
    End("work", "setting", ("In which place is {x} set?", "Where does the story of {x} unfold?"), "set in"),
    End("work", "location", ("In which museum or place is {x} to be found?",), "kept in"),
    End("work", "language", ("In which tongue was {x} written?",), "language"),
    End("discovery", "discoverer", ("Who discovered or devised {x}?", "Who found or invented {x}?"), "discovered by"),
    End("discovery", "year", ("When was {x} discovered or invented?",), "year"),
    End("discovery", "named_after", ("After whom or what is {x} called?",), "named after"),
    End("institution", "founded_year", ("When was {x} founded?", "What is the founding year of {x}?"), "founded"),
    End("institution", "founder", ("By whom was {x} founded?",), "founded by"),
    End("institution", "city", ("In which city is {x} located?",), "located in"),
    End("landmark", "architect", ("Who designed or commissioned {x}?",), "designed by"),
    End("landmark", "year", ("When was {x} completed?",), "year"),
    End("landmark", "city", ("In which city can {x} be visited?",), "located in"),
    End("city", "river", ("Which river crosses {x}?", "On which river is {x} situated?"), "on the river"),
    End("city", "founded", ("When was {x} founded?", "What is the founding year of {x}?"), "founded"),
    End("city", "founder", ("By whom was {x} founded?",), "founded by"),
    End("city", "sea", ("On the coast of which sea or ocean is {x} situated?",), "on the coast of"),
    End("city", "country", ("In which country is {x} situated?",), "in the country"),
    End("country", "capital", ("What is the capital of {x}?",), "capital"),
    End("country", "currency", ("Which currency is used in {x}?", "What money do people spend in {x}?"), "currency"),
    End("country", "languages", ("Which official tongues has {x}?", "What is spoken officially in {x}?"), "official language"),
    End("country", "highest_mountain", ("What is the highest peak of {x}?",), "highest mountain"),
    End("country", "independence_year", ("When did {x} gain independence?", "What is the year of independence of {x}?"), "independence year"),
    End("country", "neighbours", ("Which states border {x}?",), "neighbours"),
    End("river", "mouth", ("Into which body of water does {x} empty?", "Where is the mouth of {x}?"), "mouth"),
    End("river", "tributary_of", ("Of which river is {x} a tributary?",), "tributary of"),
    End("river", "source", ("Where does {x} rise?", "Where is the source of {x}?"), "source"),
    End("river", "length_km", ("How long is {x} in kilometres?", "What is the length of {x}?"), "length in km"),
    End("mountain", "height_m", ("How tall is {x} in metres?", "What is the altitude of {x}?"), "height in m"),
    End("mountain", "first_ascent_by", ("Who made the first ascent of {x}?", "Who climbed {x} first?"), "first climbed by"),
    End("mountain", "first_ascent_year", ("When was {x} first climbed?",), "first climbed in"),
    End("mountain", "range", ("To which mountain range does {x} belong?",), "in the range"),
    End("lake or island", "outflow", ("Which river drains {x}?",), "outflow"),
    End("lake or island", "capital", ("What is the chief town of {x}?",), "chief town"),
    End("lake or island", "sea", ("Which sea or ocean encloses {x}?",), "in the sea"),
    End("region", "countries", ("Which states have a share of {x}?",), "in the countries"),
    End("water", "part_of", ("Of which larger water is {x} an arm?",), "part of"),
    End("water", "opened", ("When was {x} inaugurated?",), "opened in"),
    End("water", "connects", ("Which waters are linked by {x}?",), "connects"),
)  # fmt: skip
