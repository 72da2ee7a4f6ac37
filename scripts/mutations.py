"""The ways to break one line of the code: in Python by the operators of cosmic-ray, in macros by rules on the text.

What only people read is left as it is: comments, docstrings, type annotations, messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jinja2 import TemplateSyntaxError
from rendering import environment


@dataclass(frozen=True)
class Mutation:
    """One way to break a text."""

    line: int
    rule: str
    broken: Callable[[], str] = field(compare=False)  # the whole text, broken


# --- Python -----------------------------------------------------------------------------------------

COMPARISONS = ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Is_IsNot", "IsNot_Is")
BINARY = ("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Mod_FloorDiv", "BitOr_BitAnd", "BitAnd_BitOr")
# Operators of cosmic-ray. Others of its binary ones only make a TypeError here, such as a column << a column.
OPERATORS = [
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISONS),
    *(f"ReplaceBinaryOperator_{name}" for name in BINARY),
    *(f"ReplaceUnaryOperator_{name}" for name in ("Delete_Not", "Delete_Invert", "Delete_USub")),
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer"),
    "ZeroIterationForLoop",
]
MESSAGES = re.compile(r"Mistake|mistake|warning|print|info|debug|\w*Error")  # functions whose arguments are messages


def python_mutations(source: str) -> Iterator[Mutation]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.operators.provider import OperatorProvider

    provider, left_alone = OperatorProvider(), ranges_for_people(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator, number = provider[name](), 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not any(begin <= start < end for begin, end in left_alone):
                    yield Mutation(start[0], name, partial(broken_python, source, name, number))
                number += 1


def broken_python(source: str, name: str, number: int) -> str:
    """The source with the operator applied where it can be applied for the ``number``-th time, from 0."""
    from cosmic_ray.ast import Visitor, get_ast
    from cosmic_ray.operators.provider import OperatorProvider

    operator, places = OperatorProvider()[name](), iter(range(number + 1))

    class Once(Visitor):  # type: ignore[misc]
        def visit(self, node: Any) -> Any:
            for index, _ in enumerate(operator.mutation_positions(node)):
                if next(places, None) == number:
                    return operator.mutate(node, index)
            return node

    broken: str = Once().walk(get_ast(source)).get_code()
    return broken


def parses_as_python(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


Position = tuple[int, int]  # line from 1, column from 0


def ranges_for_people(source: str) -> list[tuple[Position, Position]]:
    """Type annotations, what is imported for them, decorators of classes (whether they are frozen), and messages."""
    lines = source.splitlines()

    def position(line: int, column: int) -> Position:
        return line, len(lines[line - 1].encode()[:column].decode())  # ast counts bytes

    found: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.arg, ast.AnnAssign)):
            found.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(node.returns)
        elif isinstance(node, ast.ClassDef):
            found += node.decorator_list
        elif (
            isinstance(node, ast.Raise)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
            or (isinstance(node, ast.Call) and MESSAGES.fullmatch(ast.unparse(node.func).rpartition(".")[2]))
        ):
            found.append(node)
    ranges: list[Any] = [node for node in found if node is not None]
    return [(position(at.lineno, at.col_offset), position(at.end_lineno, at.end_col_offset)) for at in ranges]


# --- Macros -----------------------------------------------------------------------------------------

# Pattern and replacement. These hold in SQL, and in the texts of Jinja, which are pieces of SQL.
SQL = [
    (r"(?<= )<=>(?=\s)", "="),
    (r"(?<= )!?=(?=\s)", lambda match: "=" if match[0] == "!=" else "!="),
    (r"(?<= )[<>]=?(?=\s)", lambda match: match[0].rstrip("=") if "=" in match[0] else f"{match[0]}="),
    (r"((?:^|[(,'\"]|\b(?:and|or|when|where|on))\s*)\bnot (?!given\b)", r"\1"),
    (r"\bis not (?=null\b)", "is "),
    (r"\bnot (?=(?:in|like|between)\b)", ""),
    (r"\bis (?=null\b)", "is not "),
    (r"\b(min|max|min_by|max_by|lead|lag|first|last|first_value|last_value|greatest|least)(?=\()", "{swap}"),
    (r" desc\b", ""),
    (r"\bunion all\b", "union"),
    (r"\bleft join\b", "join"),
    (r"\bleft (anti|semi)(?= join\b)", "left {swap}"),
    (r"\bfull outer join\b", "left join"),
    (r" ignore nulls\b", ""),
    (r"\bnulls (first|last)\b", "nulls {swap}"),
    (r"\bcoalesce\(([\w.`]+), [^(){}]+\)", r"\1"),
]
# These hold in SQL alone: in a text of Jinja, they are words or parts of names.
SQL_ALONE = [
    (r"(?<![\w.])(and|or)(?=\s)", "{swap}"),
    (r"\b(true|false)\b", "{swap}"),
    (r"\bdistinct ", ""),
    (r"(?<![\w.$])\d+(?![\w.])", lambda match: str(int(match[0]) + 1)),
]
OPPOSITES = [
    *("min max", "min_by max_by", "lead lag", "first last", "first_value last_value", "greatest least", "anti semi"),
    *("and or", "true false", "== !=", "< <=", "> >=", "select reject", "selectattr rejectattr"),
]
OPPOSITE = {word: other for pair in map(str.split, OPPOSITES) for word, other in (pair, pair[::-1])}
NO_SQL = re.compile(r"'[^'\n]*'|`[^`\n]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
# macros of this package, and functions of dbt, whose arguments are messages
TOLD = re.compile(r"_mistake\w*|_raise\w*|_warn\w*|_refuse\w*|log|exceptions|print|_did_you_mean")
ALONE = re.compile(r"'\s+(and|or)\s+'")  # what joins conditions


def parses_as_jinja(source: str) -> bool:
    try:
        environment().parse(source)
    except TemplateSyntaxError:
        return False
    return True


@dataclass(frozen=True)
class Token:
    """Of Jinja; ``kind`` as its lexer names it."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Change:
    rule: str
    start: int
    end: int
    text: str


def tokens_of(source: str) -> list[list[Token]]:
    """The tags of a file and the texts between them, each as its tokens."""
    groups: list[list[Token]] = [[]]
    end = 0
    for _, kind, text in environment().lexer.tokeniter(source, None):
        start = source.index(text, end)  # the lexer leaves out the blanks at a tag with a minus sign
        end = start + len(text)
        if kind == "data" or kind.endswith("_begin"):
            groups.append([])
        if kind != "whitespace":
            groups[-1].append(Token(kind, text, start))
    return [group for group in groups if group]


def macro_mutations(source: str) -> Iterator[Mutation]:
    for change in [*changes_of_sql(source), *changes_of_tags(source)]:
        broken = f"{source[: change.start]}{change.text}{source[change.end :]}"
        yield Mutation(source.count("\n", 0, change.start) + 1, change.rule, partial(str, broken))


def changes_of_sql(source: str) -> Iterator[Change]:
    """In the text outside of the tags, without comments, names in backticks and literals."""
    blank = list(re.sub(r"[^\n]", " ", source))
    for [first, *_] in tokens_of(source):
        if first.kind == "data":
            blank[first.start : first.end] = first.text
    text = NO_SQL.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), "".join(blank))
    for change in changes_by([*SQL, *SQL_ALONE], text, 0):
        if source[change.start : change.end] == text[change.start : change.end]:
            yield change


def changes_by(rules: list[tuple[str, Any]], text: str, offset: int) -> Iterator[Change]:
    for pattern, becomes in rules:
        for match in re.finditer(pattern, text):
            if isinstance(becomes, str):
                new = match.expand(becomes.replace("{swap}", OPPOSITE[match[1]]) if "{swap}" in becomes else becomes)
            else:
                new = becomes(match)
            yield Change(pattern, match.start() + offset, match.end() + offset, new)


def changes_of_tags(source: str) -> Iterator[Change]:
    """In the tags of Jinja, but those with messages."""
    for tokens in tokens_of(source):
        if tokens[0].kind not in ("block_begin", "variable_begin"):
            continue
        if any(token.kind == "name" and TOLD.fullmatch(token.text) for token in tokens):
            continue
        if tokens[1].text in ("if", "elif"):
            start, end = tokens[2].start, tokens[-2].end
            yield Change("if not", start, end, f"not ({source[start:end]})")
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            yield from changes_of_token(before, token, after)


def changes_of_token(before: Token, token: Token, after: Token) -> Iterator[Change]:
    text, has_opposite = token.text, token.text in OPPOSITE
    if token.kind == "string" and ALONE.fullmatch(text):
        yield Change("text", token.start, token.end, ALONE.sub(lambda match: f"' {OPPOSITE[match[1]]} '", text))
    elif token.kind == "string":
        yield from changes_by(SQL, text, token.start)
    elif token.kind == "integer":
        yield Change("number", token.start, token.end, str(int(text) + 1))
    elif token.kind == "operator" and has_opposite:
        yield Change("operator", token.start, token.end, OPPOSITE[text])
    elif token.kind == "name" and text == "not":
        yield Change("not", token.start, after.start, "")
    elif token.kind == "name" and text == "is" and after.text != "not":
        yield Change("is not", token.end, token.end, " not")
    elif token.kind == "name" and has_opposite and (before.text == "|" or text in ("and", "or", "true", "false")):
        yield Change("name", token.start, token.end, OPPOSITE[text])
