"""What a practitioner has, read and written: `sources` opens tables and images, `labels` reads the PU labels,
`vectorize` turns a frame into numbers, `write` puts results on the disk whole or not at all.

Nothing is imported here: pandas, Arrow and skrub are slow to load, and no command needs all of them.
"""
