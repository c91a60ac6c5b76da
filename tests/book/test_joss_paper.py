"""The paper that introduces the software says what the book says, in the journal's form.

The form is that of the Journal of Open Source Software: its sections, 750 to 1,000 words (which its
former limits and today's both allow), entries with a DOI or an arXiv number.
"""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import ibukit as ik
import portable
from chapter_openings import contents, glued, opening
from ibukit_claims import counts

ROOT = Path(__file__).resolve().parents[2]
_, HEAD, BODY = (ROOT / "paper" / "paper.md").read_text("utf8").split("---\n", 2)
FIGURE = (ROOT / "paper" / "figure.py").read_text("utf8")
CITATION = r"@([a-z]+\d{4}[a-z]+)"
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]
# What only the authors can say.
OPEN = "To be filled in before submission"
# No DOI is known to us, and there is no arXiv number that we could look up.
WITHOUT_NUMBER = {"elsalamouny2020generalized"}


def entries(text):
    """Each key of a bibliography, its kind and its fields."""
    found = {}
    for kind, key, body in re.findall(
        r"^@(\w+)\{([^,]+),\n(.*?)^\}", text, re.MULTILINE | re.DOTALL
    ):
        assert key not in found, key
        found[key] = kind, dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, re.MULTILINE))
    return found


BIBLIOGRAPHY = entries((ROOT / "book" / "references.bib").read_text("utf8"))


def plain(text):
    """Text on one line, with plain spaces."""
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def sentences():
    """Phrases of the paper with their numbers, as the book, the data and the scripts have them."""
    landing, steps, sure = glued("index"), glued("fast-ibu"), glued("how-sure")
    found, n_chapters = counts(), sum(len(slugs) for _, slugs in contents())
    words = found.verdicts
    errata = Counter(pd.read_csv(ROOT / "data" / "errata.csv")["class"])
    epsilon = re.search(r"^EPSILON, SEED = ([\d.]+), 1 ", FIGURE, re.MULTILINE)[1]
    noisy = sum(machine.noise is not None for machine in portable.MACHINES)
    (settings,) = re.findall(
        r"RAPPOR the same (300) steps are too few in (\d+ of \d+) settings, and INV wins",
        opening("comparison").answer,
    )
    dense = pd.read_csv(ROOT / "benchmarks" / "results" / "dense.csv")
    quickest = dense.groupby("kind")["ratio"].min()
    assert len(quickest) == 14
    return [
        f"Ages of {ik.datasets.load_adult_ages().n:,} people",
        rf"$\varepsilon = {epsilon}$ per year",
        f"A report is off by {landing['index_shift']} years on average",
        f"The estimate is off by {landing['index_off']} years (earth mover's distance); "
        f"in {landing['index_reps']} repetitions the mean is {landing['index_smooth']}.",
        f"IBU takes {steps['ibu_steps']} steps to reach a gap of $10^{{-10}}$",
        f"{settings[0]} steps are too few in {settings[1]} settings of randomised response and "
        "RAPPOR, where matrix inversion wins",
        f"takes {steps['conic_least']} to {steps['conic_most']} times as long",
        f"and {quickest.min():.2g} to {quickest.max():.2g} times on fourteen matrices",
        f"it takes {landing['index_steps']} steps. The gap",
        f"in at least {sure['worst_auto']} of the draws at each of {sure['n_questions']} questions "
        f"that the book counts, typically in {sure['typical_auto']}.",
        f"as if on {len(portable.MACHINES)} machines, {noisy} of which perturb",
        f"Its {n_chapters} chapters list {found.n_results} results",
        f"{words['reproduced']} are reproduced, {words['fitted']} fitted with a free choice of "
        f"ours, {words['holds with a condition']} hold with a condition that the paper does not "
        f"state, {words['deviates']} deviate, and {words['not checkable']} cannot be checked",
        f"names {errata['error']} errors and {errata['missing condition']} missing conditions",
    ]


def unsupported(body, phrases):
    """Phrases that the text has not, and digits of the text that are in no phrase."""
    text = re.sub(rf"{CITATION}", "", plain(body))
    missing = [phrase for phrase in map(plain, phrases) if phrase not in text]
    for phrase in map(plain, phrases):
        text = text.replace(phrase, "")
    return missing, re.findall(r"\S*\d\S*", text)


def test_every_number_is_that_of_the_book():
    assert unsupported(BODY, sentences()) == ([], [])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("17.6 years", "17.5 years"), ("89 are", "98 are"), ("again,", "40 times,")],
)
def test_another_number_is_found(right, wrong):
    assert right in BODY
    assert unsupported(BODY.replace(right, wrong), sentences()) != ([], [])


def test_the_figure_shows_the_estimate_of_the_landing_page():
    spec = importlib.util.spec_from_file_location("figure", ROOT / "paper" / "figure.py")
    figure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figure)
    found, ages = figure.curves(), ik.datasets.load_adult_ages()
    off = ik.emd(found["smooth"], found["true ages"], ages.alphabet)
    assert f"{off:.2f}" == glued("index")["index_off"]
    assert found["reports"] @ np.arange(100) == pytest.approx(39.9, abs=0.05)
    figures = re.findall(r"\]\(([^)]+)\)", BODY)
    assert figures == ["ages.png"]
    assert (ROOT / "paper" / "ages.png").is_file()


def test_what_the_paper_says_of_other_programs_is_on_record():
    races = pd.read_csv(ROOT / "benchmarks" / "results" / "races.csv")
    raced = set(races["contender"])
    page = (ROOT / "book" / "other-libraries.md").read_text("utf8")
    field = plain(BODY.split("# State of the field")[1].split("\n# ")[0])
    for program in ("qif", "multi-freq-ldpy"):
        assert f"{program} IBU" in raced
        assert re.search(rf"{program}\W[^.]*\bIBU\b", field)
    for library in ("pure-ldp", "multi-freq-ldpy", "ldp-toolbox", "OpenDP", "qif"):
        assert f"\n## {library}\n" in page
        assert library in field
    assert "to reach a larger gap on three of the book's workloads" in field
    for workload in ("W1", "W2-1", "W5"):
        race = races[races["workload"] == workload].set_index("contender")
        conic = race[race.index.str.contains("Clarabel|ECOS")]
        assert conic.loc[conic["seconds"].idxmin(), "gap"] > race.loc["ibukit", "gap"]
    assert "**Under strong noise, clipping wins.**" in page
    assert "Under strong noise, with few people, estimates that are clipped and rescaled" in field
    recorded = pd.read_csv(ROOT / "benchmarks" / "results" / "libraries.csv")
    few = recorded.query("people == 'ages' and n == 10000 and epsilon == 1")
    errors = few.pivot_table("squared_error", ["library", "protocol"], "estimate", "first")
    both = errors[["ibukit, Norm-Mul", "ibukit, MLE"]].dropna()
    assert len(both) > 20
    assert (both["ibukit, Norm-Mul"] < both["ibukit, MLE"]).all()


def test_the_sections_and_the_length_are_the_journals():
    head = yaml.safe_load(HEAD)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(head)
    assert "`" not in head["title"]
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]+ \d{4}", head["date"])
    assert {str(author["affiliation"]) for author in head["authors"]} == {
        str(place["index"]) for place in head["affiliations"]
    }
    assert re.findall(r"^# (.*)$", BODY, re.MULTILINE) == SECTIONS
    assert 750 <= len(BODY.split()) <= 1000


def test_what_the_authors_must_add_is_marked():
    """Affiliation, use of generative programs, support: nobody else can state them."""
    assert HEAD.count(OPEN) == 1
    left = [part.split("\n")[0] for part in BODY.split("\n# ")[1:] if OPEN in part]
    assert left == ["AI usage disclosure", "Acknowledgements"]


def test_every_citation_has_an_entry_that_a_reader_can_follow():
    head = yaml.safe_load(HEAD)
    assert (ROOT / "paper" / head["bibliography"]).resolve() == ROOT / "book" / "references.bib"
    cited = set(re.findall(CITATION, BODY))
    assert len(cited) > 10
    assert cited <= set(BIBLIOGRAPHY)
    assert {
        key for key in cited if not {"doi", "eprint"} & set(BIBLIOGRAPHY[key][1])
    } == WITHOUT_NUMBER


def faults_of(bibliography):
    """Entries with a malformed number, one that another has, or a year that is not its own."""
    found, owners = [], {}
    for key, (kind, fields) in bibliography.items():
        number = fields.get("eprint")
        if "doi" in fields and not re.fullmatch(r"10\.\d{4,5}/[^\s{}]+", fields["doi"]):
            found.append(f"{key}: DOI {fields['doi']}")
        if number and not re.fullmatch(r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}", number):
            found.append(f"{key}: arXiv {number}")
        # What was only posted has the year of its number.
        if number and kind == "misc" and fields["year"][2:] != number[:2]:
            found.append(f"{key}: {fields['year']} and arXiv {number}")
        for each in {number, fields.get("doi")} - {None}:
            if each in owners:
                found.append(f"{key}: {each}, as {owners[each]}")
            owners[each] = key
    return found


def test_each_number_in_the_bibliography_is_well_formed_and_of_one_entry():
    assert faults_of(BIBLIOGRAPHY) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("eprint", "2307.07744"), ("eprint", "22208.1126"), ("year", "2023"), ("doi", "doi:10.1/x")],
)
def test_a_wrong_number_is_found(field, value):
    kind, fields = BIBLIOGRAPHY["elsalamouny2023freewill"]
    wrong = BIBLIOGRAPHY | {"elsalamouny2023freewill": (kind, fields | {field: value})}
    assert faults_of(wrong) != []
