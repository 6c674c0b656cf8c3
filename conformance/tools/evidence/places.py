"""Finds the statements of the core that cite one rule, and the ways to delete each of them.

A comment cites its rule for the statement on its line. On a line without code it cites it for the statement below.
Within a statement of several lines it cites the rule for the operand or argument on its line. A docstring cites a rule
for the whole function, if the function has one path: one statement, or statements without a branch.

A comment or docstring that cites several rules does not say which of them decides. The docstring of a function with
branches does not say which branch its rule is about. Neither is a place here.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeGuard

#: the rules that a text cites, each with its line
Citations: TypeAlias = Callable[[str], Iterator[tuple[str, int]]]
#: a function, by its file and the first line of its code object
FunctionKey: TypeAlias = tuple[str, int]
#: changes a tree of the file in place
Change: TypeAlias = Callable[[ast.Module], None]

#: The name by which the changed code calls ``altered``.
ALTERED: Final = "__altered__"

_BRANCHES = (ast.If, ast.While, ast.Try, ast.Match, ast.IfExp, ast.BoolOp, ast.FunctionDef, ast.Lambda)
_DELETED = (*(ast.Assign, ast.Expr, ast.AugAssign, ast.Return, ast.Raise), *(ast.Continue, ast.Break, ast.Delete))


@dataclass(frozen=True, slots=True)
class Place:
    """``rule`` is cited in ``file`` inside the function ``where`` (its qualified name), whose code begins at line
    ``first``. The statement is reached if one of ``lines`` runs, or, if there are none, if the function does. Each of
    ``changes`` deletes the statement from the tree of the file."""

    rule: str
    file: Path
    where: str
    first: int
    lines: range
    changes: tuple[Change, ...]


def places(file: Path, text: str, citations: Citations) -> Iterator[Place]:
    """Yield every place of the file, in no particular order."""
    cited: dict[int, set[str]] = {}
    for rule, line in citations(text):
        cited.setdefault(line, set()).add(rule)
    comments = _comments(text)
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    for where, function in _functions(tree):
        yield from _of_docstring(file, where, function, nodes.index(function), cited)
    for target, lines in _targets(tree, {line: own for line, own in comments.items() if line in cited}).items():
        rules = set().union(*(cited[line] for line in lines))
        found = _around(tree, target)
        if len(rules) == 1 and found is not None:
            where, function = found
            changes = tuple(_changes(target, nodes.index(target), function))
            if changes:
                yield Place(rules.pop(), file, where, _first_line(function), _reached(target), changes)


def _comments(text: str) -> dict[int, bool]:
    """Return the lines with a comment, and whether each is alone on its line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]: not token.line[: token.start[1]].strip() for token in tokens if token.type == tokenize.COMMENT
    }


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of the module and of its classes; a nested one belongs to the outer one."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef))


def _first_line(function: ast.FunctionDef) -> int:
    """Return the first line, as in the code object."""
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _reached(target: ast.AST) -> range:
    """Return lines of which one runs when the target is reached: for a branch or a loop, those of its first
    statement."""
    if isinstance(target, ast.match_case | ast.If | ast.While | ast.For):
        target = target.body[0]
    assert isinstance(target, ast.stmt | ast.expr)
    return range(target.lineno, (target.end_lineno or target.lineno) + 1)


def _around(tree: ast.Module, target: ast.AST) -> tuple[str, ast.FunctionDef] | None:
    line = getattr(target, "lineno", 0) if not isinstance(target, ast.match_case) else target.pattern.lineno
    for where, function in _functions(tree):
        if function.lineno <= line <= (function.end_lineno or 0) and target is not function:
            return where, function
    return None


def _targets(tree: ast.Module, comments: dict[int, bool]) -> dict[ast.AST, list[int]]:
    """Return the nodes for which the comments cite their rules, each with the lines of its comments."""
    found: dict[ast.AST, list[int]] = {}
    for line, alone in comments.items():
        target = _below(tree, line) if alone else _on(tree, line)
        if target is not None:
            found.setdefault(target, []).append(line)
    return found


def _below(tree: ast.Module, line: int) -> ast.AST | None:
    """Return the first statement that begins after the line; within a statement, the node on its next line."""
    if any(line in range(each.lineno + 1, each.end_lineno or 0) for each in ast.walk(tree) if _is_simple(each)):
        return _on(tree, line + 1)
    after = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno > line]
    return min(after, key=lambda node: node.lineno, default=None)


def _on(tree: ast.Module, line: int) -> ast.AST | None:
    """Return the innermost node on the line: an operand or argument with its own lines, a statement on its first or
    last line, or the head of a case or of a compound statement."""
    found = [(each, span) for node in ast.walk(tree) for each, span in _spans(node) if line in span]
    return min(found, key=lambda each: len(each[1]), default=(None, range(0)))[0]


def _spans(node: ast.AST) -> Iterator[tuple[ast.AST, Collection[int]]]:
    """Yield the nodes for which a comment can cite a rule, each with the lines for such a comment."""
    if isinstance(node, ast.match_case):
        yield node, range(node.pattern.lineno, node.body[0].lineno)
    elif isinstance(node, ast.If | ast.While | ast.For):
        yield node, range(node.lineno, max(node.body[0].lineno, node.lineno + 1))
    elif _is_simple(node):
        yield node, {node.lineno, node.end_lineno or node.lineno}
    elif isinstance(node, ast.expr):
        parts = _parts(node)
        lines = Counter(line for each in parts for line in _lines(each))
        yield from (
            (each, _lines(each)) for each in parts if len(parts) > 1 and all(lines[n] == 1 for n in _lines(each))
        )


def _is_simple(node: ast.AST) -> TypeGuard[ast.stmt]:
    return isinstance(node, ast.stmt) and not hasattr(node, "body")


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return operands of a condition, arguments of a call, or elements of a collection."""
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Call):
        return [*node.args, *(each.value for each in node.keywords)]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    return node.values if isinstance(node, ast.Dict) else []


def _lines(node: ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _of_docstring(
    file: Path, where: str, function: ast.FunctionDef, index: int, cited: dict[int, set[str]]
) -> Iterator[Place]:
    """The function itself, if its docstring cites one rule and its body has one path."""
    if ast.get_docstring(function) is None:
        return
    first, *body = function.body
    rules = set().union(*(cited.get(line, ()) for line in range(first.lineno, (first.end_lineno or 0) + 1)))
    if len(rules) != 1 or not body or not _one_path(body):
        return
    changes: list[Change] = []
    if isinstance(body[-1], ast.Return) and body[-1].value is not None:
        changes.append(partial(_alter_result, index))
    if not isinstance(body[-1], ast.Return) or len(body) > 1:
        changes.append(partial(_empty, index))
    yield Place(rules.pop(), file, where, _first_line(function), range(0), tuple(changes))


def _one_path(body: list[ast.stmt]) -> bool:
    if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr | ast.Assign | ast.Raise):
        return True
    return not any(
        isinstance(node, _BRANCHES) or (isinstance(node, ast.comprehension) and node.ifs)
        for each in body
        for node in ast.walk(each)
    )


def _changes(target: ast.AST, index: int, function: ast.FunctionDef) -> Iterator[Change]:
    """Yield the ways to delete the target."""
    if isinstance(target, ast.match_case | ast.If | ast.While | ast.For):
        yield partial(_close, index)
    elif isinstance(target, ast.Return) and target.value is not None:
        yield partial(_alter, index)
        if target is not function.body[-1]:
            yield partial(_skip, index)
    elif isinstance(target, ast.Assign) and isinstance(target.targets[0], ast.Name | ast.Tuple):
        yield partial(_alter, index)
    elif isinstance(target, _DELETED):
        yield partial(_skip, index)
    elif isinstance(target, ast.expr):
        yield partial(_alter_part, index)


# --- changes of a tree; ``index``: the place of the node in ``ast.walk`` ---


def _node(tree: ast.Module, index: int) -> ast.AST:
    return list(ast.walk(tree))[index]


def _close(index: int, tree: ast.Module) -> None:
    """Make the branch never taken, or the loop never entered."""
    node = _node(tree, index)
    if isinstance(node, ast.match_case):
        node.guard = ast.Constant(False)
    elif isinstance(node, ast.For):
        node.iter = ast.Tuple([], ast.Load())
    elif isinstance(node, ast.If | ast.While):
        node.test = ast.Constant(False)


def _alter(index: int, tree: ast.Module) -> None:
    """Give the statement another value."""
    node = _node(tree, index)
    assert isinstance(node, ast.Assign | ast.Return)
    assert node.value is not None
    node.value = _altered(node.value)


def _alter_result(index: int, tree: ast.Module) -> None:
    function = _node(tree, index)
    assert isinstance(function, ast.FunctionDef)
    last = function.body[-1]
    assert isinstance(last, ast.Return)
    assert last.value is not None
    last.value = _altered(last.value)


def _empty(index: int, tree: ast.Module) -> None:
    """Make the function do nothing. Its statements stay, unreachable: they define the function's variables, and whether
    it is a generator."""
    function = _node(tree, index)
    assert isinstance(function, ast.FunctionDef)
    function.body = [ast.If(ast.Constant(False), function.body, [])]


def _skip(index: int, tree: ast.Module) -> None:
    """Make the statement unreachable."""
    target = _node(tree, index)
    assert isinstance(target, ast.stmt)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and target in block:
                block[block.index(target)] = ast.If(ast.Constant(False), [target], [])
                return


def _alter_part(index: int, tree: ast.Module) -> None:
    """Remove the operand from the condition, or give the argument or element another value."""
    target = _node(tree, index)
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and target in node.values:
            node.values[node.values.index(target)] = ast.Constant(isinstance(node.op, ast.And))
            return
        for name, value in ast.iter_fields(node):
            if value is target:
                setattr(node, name, _altered(target))
                return
            if isinstance(value, list) and target in value:
                value[value.index(target)] = _altered(target)
                return


def _altered(value: ast.AST) -> ast.Call:
    assert isinstance(value, ast.expr)
    return ast.Call(ast.Name(ALTERED, ast.Load()), [value], [])
