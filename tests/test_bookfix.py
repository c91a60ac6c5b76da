"""What the book's own extension does to a page: errata that are named become links, code stays as it is."""

import bookfix
import pytest

KNOWN = frozenset({"P2", "P27", "A6"})
P27 = '<a class="reference internal" href="../errata.html#row-p27">P27</a>'


@pytest.mark.parametrize(
    ("body", "linked"),
    [
        ("holds for every kernel (P27).", f"holds for every kernel ({P27})."),
        ("<td>slower (P27)</td>", f"<td>slower ({P27})</td>"),
        ("(A6, P27)", f"({P27.replace('27', '6').replace('P6', 'A6').replace('p6', 'a6')}, {P27})"),
        ("withdrawn (A15)", "withdrawn (A15)"),
        ("P27 without brackets, (P27b), (12)", "P27 without brackets, (P27b), (12)"),
        ("<pre>say('(P27)')</pre> (P27)", f"<pre>say('(P27)')</pre> ({P27})"),
    ],
)
def test_numbers_of_errata_in_brackets_are_links(body, linked):
    assert bookfix.link_errata(body, KNOWN, "../errata.html") == linked
