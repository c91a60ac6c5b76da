"""Messages show the size and the first labels of an alphabet, and not hundreds of them."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

LABELS = [f"label number {i}" for i in range(490)]
OTHERS = [f"another label {i}" for i in range(490)]
ALPHABET = ik.Alphabet(LABELS)
RR, OTHER = ik.RandomizedResponse(LABELS, 2.0), ik.RandomizedResponse(OTHERS, 2.0)
LOSSY = ik.MatrixMechanism(np.eye(490) * 0.5, ALPHABET, efficiency=True)

MESSAGES = {
    "add": lambda: RR.tally(LABELS) + OTHER.tally(OTHERS),
    "lossy": lambda: RR.tally(LABELS) + LOSSY.tally(LABELS),
    "gibu": lambda: ik.gibu([RR.tally(LABELS), OTHER.tally(OTHERS)]),
    "free will": lambda: ik.FreeWill([RR, OTHER]),
    "one mechanism": lambda: ik.FreeWill(RR),
    "average": lambda: ik.average_mechanism([RR, OTHER]),
    "other reports": lambda: ik.average_mechanism([RR, ik.HadamardResponse(LABELS, 1.0)]),
    "release": lambda: LOSSY.release(LABELS),
    "smooth": lambda: ik.smooth(RR.tally(LABELS)),
    "line": lambda: ik.LinearGeometric(ALPHABET, 1.0),
    "grid": lambda: ik.PlanarLaplace(ALPHABET, 1.0),
    "rows": lambda: ik.MatrixMechanism(
        pd.DataFrame(np.eye(490), index=OTHERS, columns=OTHERS), ALPHABET
    ),
    "k": lambda: ik.uniform(ALPHABET),
    "epsilon": lambda: ik.RandomizedResponse(3, LABELS),
    "a mechanism as epsilon": lambda: ik.RandomizedResponse(3, RR),
    "a text": lambda: ik.Alphabet("".join(LABELS)),
    "a list as a secret": lambda: RR.randomize([LABELS], np.random.default_rng(1)),
    "a list as a report": lambda: ik.Tally.from_table(
        pd.DataFrame({"z": [LABELS]}), RR, report="z"
    ),
    "of": lambda: ik.inv(RR.tally(LABELS)).interval(of=LABELS + LABELS),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_show_few_labels(name):
    with pytest.raises((ik.IbukitError, ValueError, TypeError)) as caught:
        MESSAGES[name]()
    assert len(str(caught.value)) < 700, str(caught.value)


def test_a_file_refuses_objects_with_few_of_them(tmp_path):
    odd = ik.RandomizedResponse([frozenset([i]) for i in range(490)], 1.0)
    with pytest.raises(TypeError, match="<490 labels: ") as caught:
        odd.tally_counts(np.ones(490, dtype=int)).save(tmp_path / "odd.json")
    assert len(str(caught.value)) < 400


def test_an_alphabet_is_shown_by_its_size_and_first_labels():
    assert repr(ALPHABET) == (
        "Alphabet(<490 labels: 'label number 0', 'label number 1', 'label number 2', ...>)"
    )
    assert repr(ik.Alphabet(["a", "b"], unit="km")) == "Alphabet(['a', 'b'], unit='km')"
    assert "490 labels" in repr(RR)
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"<490 labels: 'label number 0'.*another"):
        RR.tally(LABELS) + OTHER.tally(OTHERS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ik.RandomizedResponse("abc", 1.0),
        lambda: ik.Alphabet("abc"),
        lambda: ik.MatrixMechanism(np.eye(3), "abc"),
        lambda: ik.MatrixMechanism(np.eye(3), [1, 2, 3], reports="abc"),
        lambda: ik.emd([1, 0, 0], [0, 0, 1], "abc"),
    ],
)
def test_a_text_is_no_alphabet(make):
    with pytest.raises(ValueError, match=r"got the text 'abc': pass list\('abc'\).*\['abc'\]"):
        make()


@pytest.mark.parametrize(
    "labels",
    [[("a", 1), 3], [("a", 1), ("b",), 3], [("a", 1), None], [(1, 2), 3.5], ((1, 2), "b", 3)],
)
def test_tuples_among_other_labels_are_labels(labels):
    mechanism = ik.RandomizedResponse(labels, 3.0)
    assert mechanism.alphabet.labels_of(range(len(labels))).tolist() == list(labels)
    assert mechanism.tally(list(labels)).counts.tolist() == [1] * len(labels)
    drawn = mechanism.randomize(list(labels), np.random.default_rng(1))
    assert set(drawn) <= set(labels)
    assert ik.inv(mechanism.tally(list(labels)))[labels[0]] == pytest.approx(1 / len(labels))


@pytest.mark.parametrize(
    "of",
    [
        ("a", "b"),
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype=object),
        pd.Index(["a", "b"]),
        pd.Series(["a", "b"], index=[5, 6]),
        pd.Categorical(["a", "b"]),
        pd.array(["a", "b"], dtype="string"),
    ],
    ids=lambda of: type(of).__name__,
)
def test_sequences_of_texts_are_labels(of):
    mechanism = ik.RandomizedResponse(["a", "b", "c"], 1.0)
    estimate = ik.inv(mechanism.tally(["a", "b", "c", "a"]))
    right = ["a", "b"]
    assert estimate.interval(of=of) == estimate.interval(of=right)
    assert repr(estimate.summary(of=of)) == repr(estimate.summary(of=right))
    assert ik.plan(mechanism, 0.1, of=of).n == ik.plan(mechanism, 0.1, of=right).n


def test_numbers_stay_weights_whatever_holds_them():
    estimate = ik.inv(ik.RandomizedResponse(["a", "b", "c"], 1.0).tally(["a", "b", "c", "a"]))
    right = estimate.interval(of=[1, 1, 0])
    for of in (np.array([1, 1, 0]), np.array([1, 1, 0], dtype=object), pd.Index([1, 1, 0])):
        assert estimate.interval(of=of) == right
