"""Wordings for passages on places.

A kind has slots in the order of the text; a slot is a list of wordings, of which the seeded hash
picks one among those whose placeholders are all filled, preferring the fullest. ``{N}`` is the
full name, ``{S}`` a shorter reference at the start of a sentence, ``{s}`` the same inside one.
"""

from __future__ import annotations

Slots = list[list[str]]

PLACES: dict[str, Slots] = {
    "country": [
        [
            "{N}, sometimes called {aliases}, is a land of {continent} governed from {capital}.",
            "The seat of government of {N} ({aliases}), a land of {continent}, is {capital}.",
            "{capital} is the centre of power in {N}, which is also referred to as {aliases} and belongs to {continent}.",
            "{N} is a land of {continent} whose government sits in {capital}.",
            "Ministers and lawmakers of {N}, a land of {continent}, work in {capital}.",
            "{N}, also styled {aliases}, is a land of {continent}.",
            "{N} is a land of {continent}.",
        ],
        ["{note}"],
        [
            "Officials there write in {languages}, and shoppers pay with the {currency}.",
            "Laws are published in {languages}; prices are given in the {currency}.",
            "Schools teach in {languages}, and wages are paid in the {currency}.",
            "Shoppers pay with the {currency}.",
            "Laws are published in {languages}.",
        ],
        [
            "{highest_mountain} is its loftiest elevation, while none of its streams runs farther than {longest_river}.",
            "Nothing there rises above {highest_mountain}, and of its streams {longest_river} covers the greatest distance.",
            "{highest_mountain} towers over everything else within its frontiers.",
            "Its loftiest elevation is {highest_mountain}.",
            "None of its streams runs farther than {longest_river}.",
        ],
        [
            "Its shores face {coast}.",
            "{coast} washes its beaches.",
            "Fishermen set out from it onto {coast}.",
        ],
        [
            "It broke away from {independence_from} in {independence_year}.",
            "Since {independence_year} it has been free of {independence_from}.",
            "Rule by {independence_from} came to an end in {independence_year}.",
            "It has been a state of its own since {independence_year}.",
        ],
        [
            "By land it touches only {neighbours}.",
            "Travellers who leave it by road arrive in {neighbours}.",
        ],
        [
            "Its passport, anthem and postage stamps are known to collectors all over the globe.",
            "Embassies, airlines and trade fairs spread its name abroad.",
        ],
    ],
    "city": [
        [
            "{N}, in other times or tongues {aliases}, is a city in {country}.",
            "{N} ({aliases}) belongs to {country}.",
            "{N}, in other times or tongues {aliases}, has long been a seat of rulers or ministers.",
            "{N} is a city in {country}.",
            "Among the towns of {country} is {N}.",
            "{N} is a well-known city with a long story.",
        ],
        ["{note}"],
        [
            "It was built along {river}.",
            "{river} passes between its houses.",
            "Its bridges span {river}.",
            "The quays of the town look on {river}.",
        ],
        [
            "Ships reach it from {sea}.",
            "Its harbour opens on {sea}.",
            "The waves of {sea} break on its shore.",
        ],
        [
            "{founder} laid it out in {founded}.",
            "It goes back to {founder}, and the year {founded} is given for its beginning.",
            "Its beginning is put in the year {founded}.",
            "The town dates from {founded}.",
            "It was begun by {founder}.",
        ],
        [
            "Visitors walk through its old quarters, while commuters crowd its stations on weekdays.",
            "Guide books give it a chapter of its own, with maps of streets, markets and museums.",
            "As in every town of some size, schools, courts, hospitals and a daily market serve the people around.",
            "Newcomers and families who have lived there for generations share its neighbourhoods.",
        ],
    ],
    "river": [
        [
            "{N}, known as well by the name {aliases}, starts in {source} and ends in {mouth}.",
            "{N} ({aliases}) gathers its water in {source} before it flows into {mouth}.",
            "Coming from {source}, {N} finally loses itself in {mouth}.",
            "{N} starts in {source} and gives its water to {tributary_of}.",
            "The water of {N}, also called {aliases}, is taken up by {tributary_of}.",
            "{N} is a feeder of {tributary_of}.",
            "{N}, known as well by the name {aliases}, flows into {mouth}.",
            "At its end {N} flows into {mouth}.",
            "{N} starts in {source}.",
            "{N} is a waterway of some fame.",
        ],
        ["{note}"],
        [
            "From beginning to end it measures about {length_km} km.",
            "Its course stretches over some {length_km} km.",
            "A drop of water travels roughly {length_km} km along it.",
        ],
        [
            "Anglers, barges and herons share its calmer reaches, and the level rises after heavy rain or snowmelt.",
            "Settlers chose its banks early, since it offered fish, a road for boats and soft ground to plough.",
            "Gauges along it warn of high water, which returns every few years.",
            "Bridges, ferries and mills have followed one another along it for centuries.",
        ],
    ],
    "mountain": [
        [
            "{N}, which others call {aliases}, reaches {height_m} m and is part of {range}.",
            "With {height_m} m, {N} ({aliases}) stands out in {range}.",
            "{N} reaches {height_m} m in {range}.",
            "{N}, which others call {aliases}, reaches {height_m} m.",
            "{N} reaches {height_m} m.",
        ],
        ["{note}"],
        ["It lies in {country}.", "Maps show it in {country}."],
        [
            "Its summit was reached by {first_ascent_by} in {first_ascent_year}.",
            "In {first_ascent_year} the way to the top was found by {first_ascent_by}.",
            "{first_ascent_by} opened the route to its top in {first_ascent_year}.",
        ],
        [
            "Weather on its upper slopes changes quickly, so walkers are advised to start early and to carry warm clothes.",
            "Maps, postcards and labels show its outline, by which locals recognise their home.",
            "Plants change with every few hundred metres of its slopes, from woods to bare rock.",
            "Geologists, pilgrims and climbers have all left accounts of it.",
        ],
    ],
    "region": [
        [
            "{N}, also called {aliases}, is a {form} shared by {countries}.",
            "{N} ({aliases}) is a {form} that reaches into {countries}.",
            "{N} is a {form} that belongs to {countries}.",
        ],
        ["{note}"],
        ["It is part of {continent}.", "Atlases of {continent} give it a page."],
        [
            "Roads and footpaths through it are few outside the main valleys, and distances are easily underrated.",
            "Its plants and animals have been described by generations of naturalists.",
            "Its villages keep dialects, dishes and festivals of their own.",
        ],
    ],
    "lake or island": [
        [
            "{N}, also called {aliases}, is {a_form} that belongs to {countries}.",
            "{N} ({aliases}) is {a_form} under the flag of {countries}.",
            "{N} is {a_form} that belongs to {countries}.",
            "{N}, also called {aliases}, is {a_form}.",
        ],
        ["{note}"],
        ["It is surrounded by the waters of {sea}.", "It lies in {sea}."],
        [
            "{capital} is its main settlement.",
            "Most of its offices and shops are found in {capital}.",
        ],
        [
            "{inflow} feeds it, and {outflow} carries its water away.",
            "{outflow} carries its water away.",
            "{inflow} feeds it.",
        ],
        [
            "Boats of fishermen and holiday makers share the shore, and the wind can turn within minutes.",
            "Birds rest there on their way, and summer brings guests with tents and towels.",
            "Its shape is easy to recognise on a map, even for schoolchildren.",
        ],
    ],
    "water": [
        [
            "{N}, also called {aliases}, is {a_form} that joins {connects}.",
            "{N} is {a_form} that joins {connects}.",
            "{N}, also called {aliases}, is {a_form} and a part of {part_of}.",
            "{N} is {a_form} and a part of {part_of}.",
            "{N}, also called {aliases}, is {a_form} known to every sailor or traveller.",
            "{N} is {a_form} known to every sailor or traveller.",
        ],
        ["{note}"],
        ["{countries} lie beside it.", "Its sides belong to {countries}."],
        [
            "It was opened in {opened} under the direction of {discoverer}.",
            "Traffic on it began in {opened}.",
            "Books of discovery connect it with {discoverer}.",
        ],
        [
            "Charts mark its depths, currents and lights, and coast guards keep watch on it by radar.",
            "Poets, painters and makers of postcards have never tired of it.",
            "Ferries and freighters cross paths there in every season.",
            "Researchers measure its salt, warmth and life with buoys and small boats.",
        ],
    ],
    "landmark": [
        [
            "{N}, also known as {aliases}, is {a_form} in {city}.",
            "{N} ({aliases}), {a_form}, rises in {city}.",
            "{N} is {a_form} in {city}.",
            "{city} has many sights, and {N}, {a_form}, is among the first on every list.",
            "{N}, also known as {aliases}, is {a_form} in {country}.",
            "{N} is {a_form} in {country}.",
        ],
        ["{note}"],
        [
            "It is the work of {architect} and dates from {year}.",
            "{architect} stands behind it, and the year {year} is given for it.",
            "The year {year} is given for it.",
            "It is ascribed to {architect}.",
        ],
        [
            "Queues form early, so visitors are advised to book a ticket or to come out of season.",
            "Souvenir sellers offer it in brass, plaster and chocolate.",
            "Restorers are busy with it year after year, and scaffolding often hides a part of it.",
            "It appears on stamps, mugs and school books.",
        ],
    ],
}
