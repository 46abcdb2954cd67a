"""The figures of a campaign: what they show, read without running anything, and how it is drawn.

`history`, `maps` and `distributions` read frozen records of plain numbers, which a page may draw in its own
way (`store.plain_records.to_plain` makes JSON of them). `drawing` turns them into SVG or PNG.
"""
