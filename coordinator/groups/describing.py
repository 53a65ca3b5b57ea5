"""Descriptions of groups: a request about many groups is split into one for each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

from ...protocol import ErrorCode
from ..element_limits import RepeatLimit
from ..engine.effects import Request
from ..shared_responses import GROUP_OPERATIONS
from .groups import Group, GroupRequest, GroupShard

GroupT = TypeVar("GroupT", bound=Group)
RowT_co = TypeVar("RowT_co", covariant=True)
MemberT = TypeVar("MemberT")
SeenT = TypeVar("SeenT")

#: Value of the field with the allowed operations if the client did not ask for them.
_NOT_ASKED: Final = -(1 << 31)


class Refuse(Protocol[RowT_co]):
    """Makes the row of a group that cannot be described, maybe with a message."""

    def __call__(self, request: Request, error: int, message: str | None = None, /) -> RowT_co: ...


class SeenMembers(Sequence[MemberT], Generic[SeenT, MemberT]):
    """The members of a group as they were, each described when it is asked for: there may be thousands, with
    hundreds of thousands of partitions.
    """

    #: What was seen of each; none of it changes.
    _seen: Sequence[SeenT]

    @abstractmethod
    def _describe_member(self, seen: SeenT, /) -> MemberT:
        """Return what a response says of a member."""

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[MemberT]:
        return map(self._describe_member, self._seen)

    def __getitem__(self, at: int) -> MemberT:  # type: ignore[override]
        return self._describe_member(self._seen[at])


def split_describe(group_ids: Iterable[str | None], *, with_operations: bool) -> list[GroupRequest]:
    """Make a request for each group; groups that are named too often are refused."""
    repeats = RepeatLimit()
    return [
        GroupRequest(
            group_id, with_operations, int(ErrorCode.INVALID_REQUEST) if repeats.refuses(group_id) else 0
        )
        for group_id in (named or "" for named in group_ids)
    ]


def describe_group(
    shard: GroupShard,
    request: Request,
    kind: str,
    find: Callable[[GroupShard, str], GroupT | None],
    describe: Callable[[GroupShard, GroupT, int], object],
    refuse: Refuse[object],
) -> None:
    """Answer with the group as it is now; it may be no ``kind`` group, as clients are told.

    ``describe`` also gets the bits of the allowed operations.
    """
    asked: GroupRequest = request.body
    group_id = asked.group_id
    if asked.error or not group_id:
        shard.reply(request, refuse(request, asked.error or int(ErrorCode.INVALID_GROUP_ID)))
        return
    group = find(shard, group_id)
    if group is None:
        missing = shard.state.find(group_id) is None
        text = f"Group {group_id} not found." if missing else f"Group {group_id} is not a {kind} group."
        shard.reply(request, refuse(request, int(ErrorCode.GROUP_ID_NOT_FOUND), text))
        return
    described = describe(shard, group, GROUP_OPERATIONS if asked.with_operations else _NOT_ASKED)
    # the response waits for pending writes, whose effect it shows
    shard.reply_when_written(group_id, request, described)
