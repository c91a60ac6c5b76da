"""What other programs answer, recorded once,
and how far their answers are ours; README.md has the table.
"""
