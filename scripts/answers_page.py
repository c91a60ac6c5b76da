"""Write the page *All answers*: question, picture and answer of every chapter.

python scripts/answers_page.py
"""

from __future__ import annotations

from chapter_openings import ROOT, contents, inline, opening

FILE = ROOT / "book" / "answers.md"
HEAD = """---
nosearch: true
---

# All answers on one page

Each chapter asks one question. Here are all the questions, with short answers. The chapters
compute or check every number named here, and say on what data, and in how many repetitions.
"""


def text() -> str:
    """The page."""
    parts, number = [HEAD], 0
    for caption, slugs in contents():
        parts.append(f"## {caption}\n")
        for slug in slugs:
            number += 1
            found = opening(slug)
            parts += [
                f"### {number}. {found.title}\n",
                f"{inline(found.picture, found.alt)}\n",
                f"**{found.question}**\n",
                f"{found.answer} {{doc}}`Read the chapter. <chapters/{slug}>`\n",
            ]
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(text(), "utf8")
    print(f"wrote {FILE.name}")
