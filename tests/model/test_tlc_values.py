"""TLA+ values, state dumps and graph comparison, without TLC."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost_model.tlc.compare import compare
from fencepost_model.tlc.dump import LabelledGraph, read_dump
from fencepost_model.tlc.run import TlcBroke, read_output
from fencepost_model.tlc.values import Function, ParseError, function, parse, parse_state, record, show

VALUES = st.recursive(
    st.integers(-9, 99) | st.booleans() | st.text("abc 1", max_size=4),
    lambda inner: (
        st.frozensets(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, min_size=1, max_size=3).map(function)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_printed_value_is_parsed_to_the_same_value(value: object) -> None:
    assert parse(show(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(m1 :> 0 @@ m2 :> {})", Function({("m1", 0), ("m2", frozenset())})),
        ('(1 :> "a" @@ 2 :> "b")', ("a", "b")),
        ("<<>>", ()),
        ("2..4", frozenset({2, 3, 4})),
        ('[a |-> TRUE,\n   b |-> "q\\"x"]', record(a=True, b='q"x')),
        ("[2jr |-> 1, e2 |-> -3, 7_a |-> 1..2]", function({"2jr": 1, "e2": -3, "7_a": frozenset({1, 2})})),
    ],
)
def test_tlc_notation(text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ["", "{1", "[a -> 1]", "1 2", "<<1,>>", "§"])
def test_text_that_is_not_a_value_is_rejected(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_a_state_is_split_at_its_variables() -> None:
    assert parse_state('/\\ x = 1\n/\\ f = [a |-> {"/"},\n      b |-> 2]\n') == {
        "x": 1,
        "f": record(a=frozenset("/"), b=2),
    }


DOT = r"""strict digraph DiskGraph {
1 [label="/\\ s = <<>>\n/\\ x = 0",style = filled]
1 -> 2 [label="Inc",color="black",fontcolor="black"];
2 [label="/\\ s = <<>>\n/\\ x = 1"];
2 -> 1 [label="Dec",color="black",fontcolor="black"];
2 -> 3 [label="Push",color="black",fontcolor="black"];
3 [label="/\\ s = << \"a\" >>\n/\\ x = 1"];
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> LabelledGraph:
    path = tmp_path / "graph.dot"
    path.write_text(DOT)
    return read_dump(path, ("s", "x"))


def test_a_dump_is_read(graph: LabelledGraph) -> None:
    assert [graph.numbers.state(state) for state in graph.states] == [
        {"s": (), "x": 0},
        {"s": (), "x": 1},
        {"s": ("a",), "x": 1},
    ]
    assert graph.initial == {0}
    assert graph.edges == {(0, "Inc", 1), (1, "Dec", 0), (1, "Push", 2)}


def test_graphs_are_equal_in_any_order_of_states(graph: LabelledGraph) -> None:
    order = [2, 0, 1]
    other = LabelledGraph(
        graph.numbers,
        [graph.states[each] for each in order],
        {order.index(0)},
        {(order.index(a), action, order.index(b)) for a, action, b in graph.edges},
    )
    comparison = compare(graph, other)
    assert comparison.equal
    assert (comparison.states, comparison.transitions, comparison.differences) == (3, 3, ())


def test_the_first_difference_is_shown_with_a_path_to_it(graph: LabelledGraph) -> None:
    other = LabelledGraph(graph.numbers, graph.states[:2], {0}, {(0, "Inc", 1), (1, "Dec", 0), (0, "Jump", 0)})
    comparison = compare(graph, other, ("the specification", "the model"))
    assert not comparison.equal
    assert (comparison.left_states, comparison.right_states) == (1, 0)
    assert [each.text().splitlines() for each in comparison.differences] == [
        [
            "only the model has this transition, after no step:",
            "    s = <<>>",
            "    x = 0",
            "  Jump gives",
            "    the same state",
        ],
        [
            "only the specification has this transition, after Inc:",
            "    s = <<>>",
            "    x = 1",
            "  Push gives",
            '    s = <<"a">>',
        ],
    ]


def test_a_renamed_action_is_a_difference(graph: LabelledGraph) -> None:
    other = LabelledGraph(graph.numbers, graph.states, {0}, {(0, "Add", 1), (1, "Dec", 0), (1, "Push", 2)})
    assert [(each.side, each.action) for each in compare(graph, other).differences] == [
        ("left", "Inc"),
        ("right", "Add"),
    ]


def test_another_initial_state_is_a_difference(graph: LabelledGraph) -> None:
    assert not compare(graph, LabelledGraph(graph.numbers, graph.states, {0, 1}, graph.edges)).equal


def test_output_without_a_verdict_is_reported_in_tlcs_words() -> None:
    output = "@!@!@STARTMSG 3002:1 @!@!@\nParse error in module X\n@!@!@ENDMSG 3002 @!@!@\n"
    with pytest.raises(TlcBroke, match="Parse error in module X"):
        read_output(output)
    with pytest.raises(TlcBroke, match="printed nothing"):
        read_output("")
