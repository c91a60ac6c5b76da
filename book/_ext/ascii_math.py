"""Formulas that are written in plain characters, as ``e^(-eps_g d) <= 1e-3``, found in a text and turned into TeX.

A small grammar: numbers, single letters, Greek names, a few functions, brackets, indices and
exponents, and operators between them. What it does not understand stays as it is written: a formula
is taken as a whole or not at all.
"""

from __future__ import annotations

import re
from functools import partial

GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "eps", "eta", "theta", "lambda", "mu", "nu", "phi", "pi", "rho",
         "sigma")  # fmt: skip
FUNCTIONS = ("argmax", "argmin", "log", "ln", "exp", "sqrt", "max", "min", "sum", "prod", "det", "tr", "diag", "Var",
             "mean", "tanh")  # fmt: skip
ENGLISH = {"mean"}  # a word of a text, unless it is of something in brackets
KNOWN = {"log", "ln", "exp", "max", "min", "det", "sum", "prod", "tanh"}  # to TeX, by these names
OPERATORS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "<-": r"\leftarrow", "->": r"\to", "+-": r"\pm", "±": r"\pm",
             "..": r"\ldots", "given": r"\mid", "*": r"\cdot", ".": r"\cdot", "=": "=", "<": "<", ">": ">",
             "+": "+", "-": "-", "/": "/"}  # fmt: skip
TELLS = {"<=", ">=", "!=", "<-", "+-"}  # nobody writes these but in a formula
ARTICLES = {"a", "A", "I"}  # letters that are words, too
UNITS = {"s", "m"}  # letters that are units, after a number

OPERATOR = re.compile(
    r"(\s*)(<=|>=|!=|<-|->|\+-|±|\.\.(?!\.)|(?<=\s)\.(?=\s)|given\b|[-*=<>+/])(\s*)"
)
NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)?(\.\d+)?(?:(?<=\d)e([-+]?\d+))?(?![\w])")
GREEK_NAME = re.compile(rf"({'|'.join(GREEK)})(?![A-Za-z])")
FUNCTION = re.compile(rf"({'|'.join(FUNCTIONS)})(?![A-Za-z0-9])")
LETTER = re.compile(r"[A-Za-z](?![A-Za-z0-9])")
LONE_NUMBER = re.compile(r"(?=[\d.])\d*\.?\d*(?![\d^])")
NUMBERED = re.compile(r"[Kr][12](?!\w)")
HATTED = re.compile(r"([A-Za-z])-hat(?![\w])")
WORD = re.compile(
    r"(counts|prior|scale|gap|loss|position|slope|factor)(?=_[a-z]{1,2}(?![A-Za-z0-9]))|(size|width|hashes|tol|gap)(?!\w)"
)
COMBINED = re.compile(r"\[(INV|RAP|IBU)\]_([RM])(-[NPV])?(?![\w])")
INDEX = re.compile(
    r"[A-Za-z]{1,2}(?![A-Za-z0-9])|\d+|(?:max|min|block|target|inf|one|zero|bits)(?![A-Za-z])"
)
NAMES = "|".join((*GREEK, *FUNCTIONS))
BEGIN = re.compile(
    rf"(?<![\w*`_|\\^/.'-])(?=[\d([|{{.-]|[A-Za-z](?![A-Za-z])|(?:{NAMES})(?![A-Za-z])|{WORD.pattern})"
)
OPERATORS_BEFORE = tuple("=<>+^/*")
GOES_ON = re.compile(r"[\w^_(\[]|\s*(?:[*=+<>^/]|- )|'\w|\s+\w+[_^]")
INSIDE = re.compile(r"\)+[\^_]")  # of brackets that were not understood
CLOSING = {"(": ")", "[": "]", "{": "}"}


class NotAFormulaError(Exception):
    """Where the grammar does not go on."""


class Reader:
    """Reads one formula at a place of a text, as far as it goes."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.depth = text, at, 0
        self.begin = at
        self.tells = self.operators = self.letters = self.pieces = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The pattern, if it stands here."""
        if (found := pattern.match(self.text, self.at)) and found.group():
            self.at = found.end()
            return found
        return None

    def sees(self, *marks: str) -> bool:
        """Whether one of the marks stands here."""
        return self.text.startswith(marks, self.at)

    def expression(self) -> str:
        """Terms with operators between them."""
        out = ""
        if self.sees("-"):
            self.at += 1
            out = "-"
        out += self.term()
        while True:
            here, counted = self.at, (self.tells, self.operators, self.letters, self.pieces)
            found = self.take(OPERATOR)
            if not found:
                return out
            try:
                before, sign, after = found.groups()
                if (
                    sign == "-"
                    and not self.depth
                    and not (before and after)
                    and not self.text[self.at].isdigit()
                ):
                    raise NotAFormulaError  # a hyphen
                if sign == "given" and not self.depth:
                    raise NotAFormulaError
                negative = "-" if self.sees("-") else ""
                self.at += len(negative)
                if self.sees("..."):
                    self.at += 3
                    right = r"\dots"
                else:
                    right = self.term()
            except (NotAFormulaError, IndexError):
                self.at, (self.tells, self.operators, self.letters, self.pieces) = here, counted
                return out
            self.tells += sign in TELLS
            self.operators += 1
            self.pieces += 1
            out += f" {OPERATORS[sign]} {negative}{right}"

    def term(self) -> str:
        """Factors side by side."""
        start = self.at
        out = self.factor()
        while True:
            here, counted = self.at, (self.tells, self.operators, self.letters, self.pieces)
            space = self.take(re.compile(r"\s+"))
            first = self.text[start:here]  # a word, or the number of a point
            article = self.begin == start and (
                first in ARTICLES or re.fullmatch(r"\(\d\)", first) is not None
            )
            try:
                if space and not self.depth and article:
                    raise NotAFormulaError
                if space and (
                    OPERATOR.match(self.text, self.at) or LONE_NUMBER.match(self.text, self.at)
                ):
                    raise NotAFormulaError
                if not space and not self.sees("(", "["):
                    raise NotAFormulaError
                start = self.at
                following = self.factor()
                if (
                    space
                    and not self.depth
                    and self.is_apart(self.text[start : self.at], self.text[here - 1])
                ):
                    raise NotAFormulaError
            except NotAFormulaError:
                self.at, (self.tells, self.operators, self.letters, self.pieces) = here, counted
                return out
            self.pieces += 1
            out += (r"\," if space else "") + following

    def is_apart(self, word: str, before: str) -> bool:
        """Whether what follows a space is no factor: an article, a unit, an aside, the beginning of a word."""
        aside = word.startswith("(") and not re.search(r"[A-Za-z]", word)
        hyphen = len(word) == 1 and re.match(r"-[A-Za-z]", self.text[self.at :]) is not None
        return word in ARTICLES or (word in UNITS and before.isdigit()) or aside or hyphen

    def factor(self) -> str:
        """One thing with its primes, index and exponent."""
        out = self.atom()
        lifted = False
        while self.sees("'") and not re.match(r"'\w", self.text[self.at :]):
            self.at += 1
            out, lifted = out + "'", True
        while self.sees("_", "^") and not re.match(r"_[\s_]", self.text[self.at :]):
            kind = self.text[self.at]
            self.at += 1
            self.tells += 1
            if kind == "^":  # a second exponent is that of both
                out, lifted = ("{" + out + "}" if lifted else out), True
            out += kind + "{" + self.script(kind) + "}"
        return out

    def script(self, kind: str) -> str:
        """What is set lower or higher."""
        if self.sees("(", "{"):
            inside = self.brackets()
            return inside[1:-1] if inside.startswith("(") else inside[2:-2]
        if self.sees("|"):
            return self.atom()
        sign = "-" if kind == "^" and self.sees("-") else ""
        self.at += len(sign)
        if kind == "^" and self.take(re.compile(r"T(?!\w)")):
            return r"\top"
        if found := self.take(GREEK_NAME):
            of = self.take(re.compile(r"\[\w\]"))
            if self.sees("_"):
                self.at += 1
                return f"{sign}{greek(found[1])}_{{{self.script('_')}}}"
            return sign + greek(found[1]) + (of[0] if of else "")
        found = self.take(INDEX)
        if not found:
            raise NotAFormulaError
        return sign + (
            found[0] if len(found[0]) < 3 or found[0].isdigit() else rf"\mathrm{{{found[0]}}}"
        )

    def atom(self) -> str:
        """A number, a letter, a name or something in brackets."""
        if found := self.take(COMBINED):
            self.tells += 1
            return rf"[\mathrm{{{found[1]}}}]_{{{found[2]}}}" + (
                rf"\text{{{found[3]}}}" if found[3] else ""
            )
        if self.sees("||"):
            return self.between("||", r"\lVert ", r"\rVert ")
        if self.sees("|"):
            return self.between("|", "|", "|")
        if self.sees("(", "[", "{"):
            return self.brackets()
        if found := self.take(NUMBER):
            return self.number(found)
        if found := self.take(HATTED):
            self.tells += 1
            return rf"\hat {found[1]}"
        if found := self.take(GREEK_NAME):
            self.tells += 1
            return greek(found[1])
        if found := self.take(FUNCTION):
            return self.function(found[1])
        if found := self.take(WORD):
            return rf"\mathrm{{{found[0]}}}"
        if found := self.take(NUMBERED):
            self.letters += 1
            return f"{found[0][0]}_{found[0][1]}"
        if self.depth and (found := self.take(re.compile(r"ab(?!\w)"))):
            return found[0]
        if found := self.take(LETTER):
            self.letters += 1
            return found[0]
        raise NotAFormulaError

    def number(self, found: re.Match[str]) -> str:
        """A number; a power of ten as such."""
        whole, part, power = found.groups()
        digits = (whole or "").replace(",", "{,}") + (part or "")
        if power is None:
            return digits
        self.tells += 1
        ten = f"10^{{{int(power)}}}"
        return ten if digits == "1" else rf"{digits}\times {ten}"

    def function(self, name: str) -> str:
        """A function, perhaps with an index or an exponent, and what it is of."""
        if name in ENGLISH and not self.sees("(", "_"):
            raise NotAFormulaError
        out = {"argmax": r"\arg\max", "argmin": r"\arg\min"}.get(name, rf"\{name}")
        if name not in KNOWN and not name.startswith("arg"):
            out = rf"\operatorname{{{name}}}"
        while self.sees("_", "^"):
            kind = self.text[self.at]
            self.at += 1
            out += kind + "{" + self.script(kind) + "}"
        self.take(re.compile(r"\s+"))
        self.tells += 1
        of = self.factor()
        if name == "sqrt":
            return rf"\sqrt{{{of[1:-1] if of.startswith('(') and of.endswith(')') else of}}}"
        return f"{out} {of}"

    def between(self, mark: str, left: str, right: str) -> str:
        """An absolute value or a norm."""
        self.at += len(mark)
        self.depth += 1
        inside = self.expression()
        self.depth -= 1
        if not self.sees(mark):
            raise NotAFormulaError
        self.at += len(mark)
        self.tells += 1
        return left + inside + right

    def brackets(self) -> str:
        """Expressions in brackets, with commas between them."""
        opening = self.text[self.at]
        self.at += 1
        self.depth += 1
        parts = [self.expression()]
        while self.take(re.compile(r",\s*")):
            parts.append(self.expression())
        self.depth -= 1
        if not self.sees(CLOSING[opening]):
            raise NotAFormulaError
        self.at += 1
        brace = "\\" if opening == "{" else ""
        return f"{brace}{opening}{', '.join(parts)}{brace}{CLOSING[opening]}"

    def is_formula(self) -> bool:
        """Whether what was read is more than a number, a word or an aside."""
        return bool(self.tells or (self.operators and self.letters))


def greek(name: str) -> str:
    """A Greek letter in TeX."""
    return {"eps": r"\varepsilon", "epsilon": r"\varepsilon"}.get(name, rf"\{name}")


def formula_at(text: str, at: int) -> tuple[int, str] | None:
    """Where the formula that begins here ends, and its TeX."""
    reader = Reader(text, at)
    try:
        tex = reader.expression()
    except (NotAFormulaError, RecursionError):
        return None
    if not reader.is_formula():
        return None
    if (reader.pieces and GOES_ON.match(text, reader.at)) or INSIDE.match(text, reader.at):
        return None  # half a formula looks worse than none
    return reader.at, tex


def split(text: str) -> list[tuple[str, str | None]]:
    """The text in pieces, each as it is written, and its TeX if it is a formula."""
    pieces: list[tuple[str, str | None]] = []
    done = at = 0
    while begin := BEGIN.search(text, at):
        found = formula_at(text, begin.start())
        if found is None or text[max(0, begin.start() - 4) : begin.start()].rstrip().endswith(
            OPERATORS_BEFORE
        ):
            word = re.compile(r"\w+|.").match(text, begin.start())
            at = word.end() if word else len(text)
            continue
        if done < begin.start():
            pieces.append((text[done : begin.start()], None))
        done = at = found[0]
        pieces.append((text[begin.start() : done], found[1]))
    return [*pieces, (text[done:], None)] if done < len(text) else pieces


def replaced(text: str, markup: str) -> str:
    """The text with its formulas as ``markup % TeX``."""
    return "".join(plain if tex is None else markup % tex for plain, tex in split(text))


as_role = partial(replaced, markup=":math:`%s`")
