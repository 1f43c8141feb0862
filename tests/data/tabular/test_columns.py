from typing import Any

import pytest

from pres.data.tabular.columns import Columns, resolve_columns
from pres.errors import ColumnError, OptionError


def resolve(*available: str, **named: Any) -> Columns:
    roles: dict[str, Any] = {"src": None, "dst": None, "t": None, "x": None, "categories": (), "label": None}
    return resolve_columns(available, "a.csv", **roles | named)


def test_columns_as_named() -> None:
    found = resolve(
        "p", "q", "r", "s", "v", "w", src="q", dst="p", t="s", x=["w"], categories=["r"], label="v"
    )
    assert found == Columns("q", "p", "s", ("w",), ("r",), "v", (), ())
    assert resolve("p", "q", "r", "f0", src="p", dst="q", t="r", x=()).unused == ("f0",)


def test_a_single_name_needs_no_brackets() -> None:
    found = resolve("p", "q", "r", "rel", "weight", src="p", dst="q", t="r", x="weight", categories="rel")
    assert found.x == ("weight",) and found.categories == ("rel",)


@pytest.mark.parametrize(
    ("available", "src", "dst", "t", "label", "two_kinds"),
    [
        (("src", "dst", "t"), "src", "dst", "t", None, False),
        (("Source", "Target", "Timestamp"), "Source", "Target", "Timestamp", None, False),
        (
            ("user_id", "item_id", "timestamp", "state_label"),
            "user_id",
            "item_id",
            "timestamp",
            "state_label",
            True,
        ),
        (("u", "i", "ts", "label", "idx"), "u", "i", "ts", "label", False),
        (("from", "to", "created_at"), "from", "to", "created_at", None, False),
        (("date", "time", "sender", "recipient"), "sender", "recipient", "time", None, False),
        (("user", "src", "dst", "t"), "src", "dst", "t", None, False),
        (("CUSTOMER ID", "Product-ID", "when"), "CUSTOMER ID", "Product-ID", "when", None, True),
    ],
)
def test_columns_guessed_from_their_names(
    available: tuple[str, ...], src: str, dst: str, t: str, label: str | None, two_kinds: bool
) -> None:
    found = resolve(*available)
    assert (found.src, found.dst, found.t, found.label) == (src, dst, t, label)
    assert found.names_two_kinds is two_kinds
    said = [f"src='{src}'", f"dst='{dst}'", f"t='{t}'", *([f"label='{label}'"] if label else [])]
    assert list(found.guessed) == said


def test_numbered_columns_are_guessed_to_be_features_and_the_rest_is_unused() -> None:
    found = resolve("src", "dst", "t", "f0", "f1", "feat_2", "note", "x")
    assert found.x == ("f0", "f1", "feat_2") and found.unused == ("note", "x")
    assert found.guessed[-1] == "x='f0' … 'feat_2'"
    assert resolve("src", "dst", "t", "f0").guessed[-1] == "x='f0'"


def test_a_named_column_is_not_guessed_again() -> None:
    found = resolve("src", "dst", "t", "source", src="source")
    assert found.src == "source" and found.guessed == ("dst='dst'", "t='t'") and found.unused == ("src",)


def refused(kind: type[Exception], *available: str, **named: Any) -> str:
    with pytest.raises(kind) as caught:
        resolve(*available, **named)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize("role", ["src", "dst", "t", "label"])
def test_a_column_that_is_not_there(role: str) -> None:
    assert refused(ColumnError, "user", "item", "stamp", **{role: "usr"}) == (
        f"a.csv: there is no column 'usr' for {role}; there are 'user', 'item', 'stamp'. Did you mean 'user'?"
    )


def test_feature_columns_that_are_not_there() -> None:
    assert "there is no column 'g' for x; there are 'src', 'dst', 't'." in refused(
        ColumnError, "src", "dst", "t", x=["src", "g"]
    )
    assert "there is no column 'kind' for categories" in refused(ColumnError, "src", categories=["kind"])


def test_a_role_that_cannot_be_guessed() -> None:
    assert refused(ColumnError, "a", "b", "t") == (
        "a.csv: no column looks like src or dst; there are 'a', 'b', 't'. Name them (src=…, dst=…); if the "
        "first line is data already, say so (header=False)."
    )
    assert "no column looks like t; " in refused(ColumnError, "src", "dst", "c")


def test_long_lists_and_long_names_are_cut() -> None:
    said = refused(ColumnError, *(f"c{k}" for k in range(20)))
    assert "'c11' and 8 more" in said and "'c12'" not in said
    assert len(refused(ColumnError, "x" * 100_000, src="a")) < 150


def test_a_line_break_in_a_name_does_not_break_the_message() -> None:
    assert "there are 'a b'." in refused(ColumnError, "a\nb", src="c")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"src": "a", "dst": "a", "t": "t"}, "'a' is named for src and for dst; a column has one role."),
        ({"src": "a", "dst": "b", "t": "a"}, "'a' is named for src and for t;"),
        ({"src": "a", "dst": "b", "t": "t", "x": ["f", "f"]}, "'f' is named for x and for x;"),
        ({"src": "a", "dst": "b", "t": "t", "x": ["f"], "label": "f"}, "'f' is named for label and for x;"),
        ({"src": "a", "dst": "b", "t": "t", "x": ["f"], "categories": ["f"]}, "for x and for categories;"),
    ],
)
def test_a_column_has_one_role(named: dict[str, Any], said: str) -> None:
    assert said in refused(ColumnError, "a", "b", "t", "f", **named)


def test_names_that_are_no_names() -> None:
    assert "there is no column 0 for src; there are '0', '1'. Did you mean '0'?" in refused(
        ColumnError, "0", "1", src=0
    )
    refused(ColumnError, "a", src=["a"])
    assert refused(OptionError, "a", x=3) == "x=3 must be a list of column names."


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (("src_ip", "dst_ip", "time_ms"), ("src_ip", "dst_ip", "time_ms")),
        (("from_account", "to_account", "Event Time"), ("from_account", "to_account", "Event Time")),
        (("user_agent", "user", "item", "ts"), ("user", "item", "ts")),
    ],
)
def test_a_word_inside_a_name_is_enough_but_a_whole_name_is_better(
    names: tuple[str, ...], roles: tuple[str, str, str]
) -> None:
    found = resolve_columns(names, "a.csv", src=None, dst=None, t=None, x=None, categories=(), label=None)
    assert (found.src, found.dst, found.t) == roles


@pytest.mark.parametrize(
    ("src", "dst", "two_kinds"), [("user", "item", True), ("user", "to", False), ("src", "item", False)]
)
def test_only_two_telling_names_say_that_there_are_two_kinds(src: str, dst: str, two_kinds: bool) -> None:
    found = resolve_columns(
        (src, dst, "t"), "a.csv", src=None, dst=None, t=None, x=None, categories=(), label=None
    )
    assert found.names_two_kinds == two_kinds
