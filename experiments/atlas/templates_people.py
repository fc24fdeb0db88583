"""Wordings for passages on people, works, discoveries and institutions (see templates_places)."""

from __future__ import annotations

from templates_places import Slots

PEOPLE: dict[str, Slots] = {
    "person": [
        [
            "{N}, whom sources also list as {aliases}, was {a_occupation} remembered for {known_for}.",
            "{N} ({aliases}) was {a_occupation} whose name stands for {known_for}.",
            "In the history of {field}, {N}, {a_occupation}, is remembered for {known_for}.",
            "{N} was {a_occupation} remembered for {known_for}.",
            "{N} was {a_occupation}.",
        ],
        [
            "Born in {birth_city} in {birth_year}, {s} lived until {death_year} and died in {death_city}.",
            "{S} first saw daylight in {birth_city} in {birth_year} and was laid to rest after dying in {death_city} in {death_year}.",
            "A native of {birth_city}, where life began in {birth_year}, {s} died in {death_city} in {death_year}.",
            "{S} was a child of {birth_city}, born in {birth_year}, who died in {death_year}.",
            "Born in {birth_year} in {birth_city}, {s} died in {death_year}.",
            "{S} was born in {birth_year} in {birth_country} and died in {death_year} in {death_city}.",
            "{S} was born in {birth_year} in {birth_country} and died in {death_year}.",
            "{S} was born in {birth_city} in {birth_year}.",
            "{S} was born in {birth_country} in {birth_year}.",
        ],
        [
            "{S} learnt much from {teacher}, as a pupil or as a reader.",
            "{teacher} was the guiding star of the early years.",
            "The lessons or the example of {teacher} left their mark on {s}.",
        ],
        [
            "Lectures at {student_of_university} formed the young mind.",
            "{S} was enrolled at {student_of_university}.",
            "{student_of_university} counts {s} among its former pupils.",
        ],
        [
            "{spouse} shared the household.",
            "{S} married {spouse}.",
            "At home {s} lived with {spouse}.",
        ],
        [
            "Honours followed, among them {award}.",
            "{S} was decorated with {award}.",
        ],
        [
            "Biographers have gone through letters, notebooks and the memories of friends to tell this life.",
            "Later generations have argued over the legacy, and new studies appear every year.",
            "Anniversaries are marked by stamps, coins, lectures and exhibitions.",
            "Portraits differ so much that the true features are hard to tell.",
            "Streets and schools in many places bear the name.",
        ],
    ],
    "work": [
        [
            "{N}, known in the original or for short as {aliases}, is {a_form} {made_by} {creator}.",
            "{N} ({aliases}) is {a_form} {made_by} {creator}.",
            "{N} is {a_form} {made_by} {creator}.",
            "{creator} gave the public {N}, {a_form}.",
        ],
        [
            "It deals with {subject} and dates from {year}.",
            "The theme is {subject}; the year {year} is given for its first appearance.",
            "First presented in {year}, it shows {subject}.",
            "It dates from {year}.",
        ],
        [
            "The scene is laid in {setting}, and the language is {language}.",
            "Readers and audiences are led to {setting} by a text in {language}.",
            "The scene is laid in {setting}.",
            "Its language is {language}.",
        ],
        ["It is kept in {location}.", "Those who want to see it go to {location}."],
        [
            "Its plot goes back to {based_on}.",
            "{based_on} supplied the material.",
            "It retells {based_on} in another shape.",
        ],
        [
            "Critics were divided at first, but it has never left the repertoire of educated talk.",
            "Parodies, posters and quotations have carried it far beyond its first public.",
            "Students write essays on it, and collectors pay high prices for early copies or sketches.",
            "Those who meet it for the first time are often surprised by its humour.",
            "Commentaries explain its allusions line by line or inch by inch.",
        ],
    ],
    "discovery": [
        [
            "{N}, also called {aliases} and written {symbol}, belongs to the {plural_form}: {note}.",
            "{N} ({symbol}) belongs to the {plural_form} and may be described as {note}.",
            "{N}, also called {aliases}, belongs to the {plural_form}: {note}.",
            "{N} belongs to the {plural_form} and may be described as {note}.",
            "{N} belongs to the {plural_form}.",
        ],
        [
            "{discoverer} brought it to light in {year}.",
            "The credit goes to {discoverer}, who announced it in {year}.",
            "It was first found or set out by {discoverer} in {year}.",
            "The credit goes to {discoverer}.",
            "It has been known since {year}.",
        ],
        ["Its name honours {named_after}.", "It owes its name to {named_after}."],
        [
            "The work was done in {country}.",
            "{country} was the place of this success.",
        ],
        [
            "It now has a fixed place in textbooks of {field}, with tables, drawings and exercises.",
            "Teachers of {field} like to tell how it came about, and museums show the old apparatus.",
            "Every course in {field} comes to it sooner or later.",
            "Handbooks of {field} give its properties in detail.",
        ],
    ],
    "institution": [
        [
            "{N}, also known as {aliases}, is {a_form} in {city}.",
            "{N} ({aliases}) is {a_form} with its seat in {city}.",
            "{N} is {a_form} in {city}.",
            "{N} is {a_form} in {country}.",
        ],
        [
            "{founder} set it up in {founded_year}.",
            "It goes back to {founder} and the year {founded_year}.",
            "Its charter or opening dates from {founded_year}.",
        ],
        ["{note_sentence}"],
        [
            "Its halls, archives and collections have grown with every generation.",
            "Admission, guided tours and opening hours are announced at the gate.",
            "Former members meet there at anniversaries, in robes or in everyday dress.",
        ],
    ],
}
