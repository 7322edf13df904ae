"""What a table measures, where its numbers alone would mislead."""

from __future__ import annotations

NOTES = {
    "mnist": (
        "The rows of uPU and PUbN are trained on images shifted by up to one pixel, all others on images as they are "
        "(docs/lab/tuning.md): compare a row with the paper's and with its plain row, but uPU and PUbN not with others."
    ),
    "alzheimer": (
        "The official folders hold slices of the same 200 people: 1 to 25 of each in the training set, 26 to 32 in the "
        "test set. What a row measures here is to a large part whether it recognises people. The row communities does "
        "nothing else: it finds people without labels, calls those positive who have a label, and gives a test scan "
        "the class of the scan most like it. The preset best makes it explicit for the paper's methods: its features "
        "say how near a scan is to each person of the training set, found without labels, and a linear model learns "
        "the risk on them. The next table has the same rows with no person in both parts."
    ),
    "alzheimer-subjects": (
        "People are found by their looks (datasets.alzheimer.subjects) and a fifth of them held out. What is left of a "
        "row's accuracy is what it knows about dementia, as far as slices of new people show it. No two families look "
        "like two scans of one person (docs/lab/tuning.md). Healthy brains look alike, sick ones differ, each in its "
        "way; the row that knows all classes learns the names of people too, and is no ceiling here."
    ),
}
REMARKS = {
    "mnist": "MNIST: uPU and PUbN see images shifted by up to a pixel, others do not; compare rows with the paper's.",
    "alzheimer": (
        "Alzheimer: both official folders hold scans of the same 200 people, so these numbers say how well people are "
        "recognised. Another section has the same rows with no person in both parts: they are lower there."
    ),
}
"""The same in a sentence, for the table that opens the page; by data set."""
