from collections.abc import Callable

from ._encoded import Commits, Known

def take_commits(
    data: bytes,
    position: int,
    by_group: Commits,
    known: Known,
    learn: Callable[[bytes, Known], bool],
) -> tuple[int, int]: ...
