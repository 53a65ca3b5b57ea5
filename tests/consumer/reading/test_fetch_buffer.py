"""What buffered records keep in memory."""

from __future__ import annotations

from kohort.consumer.reading.fetch_buffer import HeldBytes
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.protocol import TopicPartition
from tests.consumer.batches import batch

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
SMALL, LARGE = batch([b"x" * 100]), batch([b"x" * 10_000])


def answer(held: HeldBytes) -> tuple[bytearray, ChunkReader, ChunkReader]:
    """A little of one partition and much of another, in one piece of memory."""
    memory = bytearray(SMALL + LARGE)
    view = memoryview(memory)
    readers = ChunkReader(A, view[: len(SMALL)], 0), ChunkReader(B, view[len(SMALL) :], 0)
    for reader in readers:
        held.add(reader)
    return memory, *readers


def read(held: HeldBytes, reader: ChunkReader) -> None:
    before = reader.size
    reader.read()
    held.count_read(before - reader.size)
    held.remove(reader)


def is_free(memory: bytearray) -> bool:
    try:
        memory.append(0)  # refused while anybody has a view of it
    except BufferError:
        return False
    return True


def test_an_answer_is_held_whole_until_all_of_it_was_read() -> None:
    held = HeldBytes(1_000_000)
    memory, little, much = answer(held)
    read(held, much)
    assert (held.unread, held.total) == (len(SMALL), len(SMALL) + len(LARGE))
    read(held, little)
    assert (held.unread, held.total) == (0, 0)
    del little, much
    assert is_free(memory)


def test_what_waits_is_copied_out_when_answers_hold_too_much_for_it() -> None:
    held = HeldBytes(2 * len(LARGE))
    waiting, memories = [], []
    for _ in range(50):
        memory, little, much = answer(held)
        memories.append(memory)
        waiting.append(little)
        read(held, much)
        assert held.total <= 3 * len(LARGE)
    assert sum(map(is_free, memories)) >= 48
    assert held.unread == 50 * len(SMALL)
    for reader in waiting:
        assert len(reader.read()) == 1


def test_what_was_read_halfway_is_copied_from_there() -> None:
    held = HeldBytes(4 * len(LARGE))
    memory = bytearray(b"".join(batch([b"x" * 10_000], n) for n in range(4)))
    reader = ChunkReader(A, memoryview(memory), 0)
    held.add(reader)
    assert len(reader.next_run(3)) == 3
    held.count_read(3 * len(LARGE))
    held.add(other := ChunkReader(B, memoryview(bytearray(LARGE)), 0))
    assert is_free(memory)
    assert [record.offset for record in reader.read()] == [3]
    read(held, other)
