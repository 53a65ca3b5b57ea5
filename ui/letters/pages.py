"""HTML of dead letters: topics of them, the letters of one, and the plan and the outcome of a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from ...admin.notation import to_sentence, utc
from ...admin.pages.lists import ListQuery, list_table
from ...admin.pages.markup import Html, join, number, table, tag
from ...admin.records.letter_topics import LetterTopic
from ...admin.records.letters import LetterFilter
from ...admin.records.replay_plan import ReplayChoice, ReplayPlan
from ..layout import (
    LIST_ROWS,
    Frame,
    confirm_form,
    group_address,
    hidden_fields,
    note_list,
)
from .views import LetterRow

#: Before the place of a letter in the name of its tick box.
TICK: Final = "at:"
#: Rows of a plan that are shown; all of them are counted.
_MOST_PLANNED_ROWS: Final = 200
_FILTERS: Final = (
    ("error", "Error, such as *.KeyError"),
    ("group", "Group"),
    ("origin", "Topic that they come from"),
)


def letters_address(name: str, *, is_share: bool = False, **query: object) -> str:
    """The address of the letters of a topic, or of what a share group archived."""
    given = {"name": name, **{key: value for key, value in query.items() if value not in (None, "")}}
    return f"{'archived' if is_share else 'letters'}?{urlencode(given)}"


def letter_topics(
    rows: Sequence[LetterTopic], unreadable: Sequence[str], hidden: Sequence[str], query: ListQuery
) -> Html:
    """Topics of dead letters. ``unreadable`` topics could not be read, ``hidden`` says which are not seen."""

    def cells(row: LetterTopic) -> tuple[object, ...]:
        newest = row.newest
        return (
            tag("a", row.topic, href=letters_address(row.topic)),
            number(row.records),
            tag("time", utc(row.written_ms)),
            f"{newest.topic}-{newest.partition}",
            tag("a", newest.group, href=group_address(newest.group)),
            newest.error_class,
            newest.error_message,
        )

    headings = ["Topic", "Records", "Newest (UTC)", "From", "Group", "Error", "Message"]
    shown = list_table(query, "letter-topics", "Topics of dead letters", headings, rows, cells)
    which = "No topic that this user may see" if hidden else "No topic"
    none = tag("p", f"{which} has dead letters as its newest records.", class_="quiet")
    lost = f"Not known of topics that could not be read: {', '.join(unreadable)}." if unreadable else None
    return tag(
        "div",
        shown if rows else none,
        tag("p", lost, class_="quiet") if lost else None,
        note_list(map(to_sentence, hidden)),
        id="rows",
        data_live=True,
    )


def letters(
    frame: Frame,
    source: ReplayChoice,
    rows: Sequence[LetterRow],
    notes: Sequence[str],
    at: int,
) -> Html:
    """Letters, those on page ``at`` of what the filter of ``source`` takes, and the form of a replay."""
    wanted = source.wanted
    found = [row for row in rows if wanted.takes(row.says)]
    shown = found[(at - 1) * LIST_ROWS : at * LIST_ROWS]
    counts = Counter(row.says.error_class for row in found)
    errors = table(
        "Errors",
        ["Error", "Letters"],
        (
            (tag("a", error, href=_filtered_address(source, error=error)), number(count))
            for error, count in counts.most_common(LIST_ROWS)
        ),
    )
    live = tag(
        "div",
        tag("ul", (tag("li", note) for note in notes), class_="notes") if notes else None,
        errors if counts else None,
        _turn_links(source, at, len(shown), len(found)),
        _letter_table(frame, shown) if shown else None,
        id="letters",
        data_live=True,
    )
    return join((_back_link(source), _filter_form(source), _replay_form(frame, source, live)))


def _back_link(source: ReplayChoice) -> Html:
    if source.is_share:
        return tag("p", tag("a", f"Group {source.source}", href=group_address(source.source)))
    return tag("p", tag("a", "Dead letters", href="deadletters"))


def _chosen_fields(wanted: LetterFilter) -> dict[str, str]:
    return {name: getattr(wanted, name) or "" for name, _ in _FILTERS}


def _filtered_address(source: ReplayChoice, **more: object) -> str:
    query = {**_chosen_fields(source.wanted), **more}
    return letters_address(source.source, is_share=source.is_share, **query)


def _filter_form(source: ReplayChoice) -> Html:
    values = _chosen_fields(source.wanted)
    # all letters of a share group are its own
    asked = [(name, label) for name, label in _FILTERS if name != "group" or not source.is_share]
    return tag(
        "form",
        tag("input", type="hidden", name="name", value=source.source),
        (tag("label", label, tag("input", name=name, value=values[name])) for name, label in asked),
        tag("button", "Find"),
        action="archived" if source.is_share else "letters",
        role="search",
    )


def _turn_links(source: ReplayChoice, at: int, shown: int, count: int) -> Html:
    first = (at - 1) * LIST_ROWS
    links = []
    if at > 1:
        links.append(tag("a", "previous", href=_filtered_address(source, p=at - 1), rel="prev"))
    if at * LIST_ROWS < count:
        links.append(tag("a", "next", href=_filtered_address(source, p=at + 1), rel="next"))
    words = f"{first + 1:,} to {first + shown:,} of {count:,} letters " if shown else "no letters "
    return tag("p", words, *(part for link in links for part in (link, " ")), class_="quiet")


def _letter_table(frame: Frame, rows: Sequence[LetterRow]) -> Html:
    replayed = any(row.replayed for row in rows)

    def cells(row: LetterRow) -> Iterable[object]:
        says = row.says
        if frame.form_token is None:
            yield row.place
        else:
            box = tag("input", type="checkbox", name=f"{TICK}{row.place}", id=f"{TICK}{row.place}")
            yield tag("label", box, f" {row.place}", class_="tick")
        yield tag("time", utc(row.timestamp_ms))
        yield f"{says.topic}-{says.partition} at {says.offset}"
        yield tag("a", says.group, href=group_address(says.group))
        yield number(says.attempts)
        yield says.error_class
        yield says.error_message, _letter_details(row)
        if replayed:
            yield "yes" if row.replayed else None

    headings = ["Letter", "Written (UTC)", "From", "Group", "Attempts", "Error", "Message"]
    headings += ["Replayed"] if replayed else []
    return table("Letters", headings, (tuple(cells(row)) for row in rows))


def _letter_details(row: LetterRow) -> Html:
    parts = [("Key", row.key), ("Value", row.value), ("Stack", row.says.error_stack)]
    return tag(
        "details",
        tag("summary", "record"),
        tag(
            "dl", (tag("div", tag("dt", name), tag("dd", _text_block(text))) for name, text in parts if text)
        ),
        id=f"d:{row.place}",
    )


def _text_block(text: str) -> Html:
    """Lines as they are; what else has no shape is replaced in each."""
    return tag("pre", ((line, Html("\n")) for line in text.splitlines()))


def _replay_form(frame: Frame, source: ReplayChoice, live: Html) -> Html:
    if frame.form_token is None:
        words = "kohort ui was started without --allow-changes: nothing can be replayed here."
        return join((live, tag("p", words, class_="quiet")))
    to = tag("label", "To this topic, or none for those that they come from", tag("input", name="to"))
    choices = (
        ("ticked", "Plan a replay of the ticked letters"),
        ("all", "Plan a replay of all that the filter takes"),
    )
    return tag(
        "form",
        hidden_fields(
            frame, name_=source.source, share="1" if source.is_share else "", **_chosen_fields(source.wanted)
        ),
        tag("div", live, class_="whole"),
        to,
        (tag("button", words, name="which", value=which) for which, words in choices),
        method="post",
        action="plan-replay",
    )


def replay_plan(frame: Frame, plan: ReplayPlan, token: str) -> Html:
    """What a replay would write where, with a form to confirm it."""
    choice = plan.choice
    counts = Counter(row.topic for row in plan.rows)
    rows = (
        (
            row.place,
            f"{row.says.topic}-{row.says.partition} at {row.says.offset}",
            f"{row.topic}, by its key" if row.partition is None else f"{row.topic}-{row.partition}",
            row.says.error_class,
        )
        for row in plan.rows[:_MOST_PLANNED_ROWS]
    )
    title = f"Letters ({len(plan.rows):,})"
    if len(plan.rows) > _MOST_PLANNED_ROWS:
        title += f", the first {_MOST_PLANNED_ROWS}"
    words = f"Write {len(plan.rows):,} {'letter' if len(plan.rows) == 1 else 'letters'}"
    form = confirm_form(frame, "replay-letters", choice.source, words, plan=token) if plan.rows else None
    return join(
        (
            _return_link(choice),
            tag("p", "Nothing has been written yet." if plan.rows else "Nothing to replay.", role="status"),
            tag("ul", (tag("li", note) for note in _plan_notes(plan)), class_="notes"),
            _target_table(counts) if plan.rows else None,
            tag("h2", title) if plan.rows else None,
            table("Letters", ["Letter", "From", "To", "Error"], rows) if plan.rows else None,
            form,
        )
    )


def _plan_notes(plan: ReplayPlan) -> Iterable[str]:
    if plan.missing:
        yield f"{plan.missing:,} of the chosen letters are not there any more."
    if plan.strange:
        yield f"{plan.strange:,} records were set aside by no service: they stay where they are."
    if plan.choice.is_remembered:
        yield "All letters that no replay of all has written yet; the next one continues after them."
    elif plan.rows:
        yield "This replay is not remembered: another one of these letters writes them again."
    if plan.rows:
        yield "All are written in one transaction, once, however often you confirm; letters stay in place."


def _target_table(counts: Mapping[str, int]) -> Html:
    return table(
        "Written to", ["To", "Letters"], ((topic, number(counts[topic])) for topic in sorted(counts))
    )


def _return_link(choice: ReplayChoice) -> Html:
    address = letters_address(choice.source, is_share=choice.is_share)
    return tag("p", tag("a", f"Letters of {choice.source}", href=address))


def replay_outcome(choice: ReplayChoice, written: Mapping[str, int]) -> Html:
    """What a replay has written."""
    return join(
        (_return_link(choice), tag("p", "These letters are written.", role="status"), _target_table(written))
    )
