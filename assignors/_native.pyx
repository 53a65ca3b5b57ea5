# cython: language_level=3, wraparound=False, cdivision=True, initializedcheck=False
"""The sticky assignors' inner loops in C; the modules named below hold the same in Python, and say why.

* ``NativeOwnership``: ``_ownership.ListOwnership``
* ``ClaimLayout``, ``parsed_claims``: ``_owned_partitions``
* ``balanced``: ``_balanced_loads``
* ``least_moves``: ``_min_cost_flow``

All give the same answers, down to ties. Indexes that come from outside are checked here, since C does not. The
layout of claims: ``user_data``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from ..protocol import TopicPartition

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(PyObject *one)

ctypedef object (*make)(object kind, object arguments, PyObject *by_name)

cdef enum:
    UNCLAIMED = -1
    CONTESTED = -2
    NO_GENERATION = -1

cdef int64_t UNBOUNDED = <int64_t>1 << 60


cdef void *room(Py_ssize_t count, Py_ssize_t size) except NULL:
    """Zeroed memory for ``count`` elements. Raises MemoryError."""
    cdef void *found = PyMem_Calloc(count if count > 0 else 1, size)
    if found is NULL:
        raise MemoryError
    return found


cdef inline uint32_t big_endian(const uint8_t *data) noexcept:
    return <uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3]


# --- claims as members send them ----------------------------------------------------------------------------


cdef class ClaimLayout:
    """Bytes of claims whose topics and numbers of partitions are those of ``first``; ``layout`` says which."""

    cdef readonly object layout
    cdef bytes first
    cdef Py_ssize_t count, numbers_size, end
    cdef Py_ssize_t *heads  # by topic: position of its first number
    cdef Py_ssize_t *sizes  # by topic: bytes of its numbers

    def __cinit__(self, bytes first not None, tuple layout not None):
        self.first, self.layout = first, layout

    cdef int learn(self) except -1:
        cdef Py_ssize_t t, position = 4, size = len(self.first)
        self.count = len(self.layout)
        self.sizes = <Py_ssize_t *>room(self.count, sizeof(Py_ssize_t))
        self.heads = <Py_ssize_t *>room(self.count, sizeof(Py_ssize_t))
        for t, (topic, units) in enumerate(self.layout):
            position += 2 + len(topic.encode()) + 4
            self.heads[t] = position
            self.sizes[t] = 4 * <Py_ssize_t>units
            if units < 0 or self.sizes[t] > size - position:
                raise ValueError("a layout that is not that of the bytes")
            position += self.sizes[t]
            self.numbers_size += self.sizes[t]
        self.end = position
        return 0

    def __dealloc__(self):
        PyMem_Free(self.heads)
        PyMem_Free(self.sizes)

    def read(self, bytes data not None):
        """(layout, numbers, generation); None where the bytes have another layout."""
        cdef Py_ssize_t t, at, begin = 0, size = len(data)
        cdef const char *new = PyBytes_AS_STRING(data)
        cdef const char *old = PyBytes_AS_STRING(self.first)
        if size != len(self.first):
            return None
        if self.heads is NULL:  # only now that there are second bytes of this length
            self.learn()
        for t in range(self.count):
            at = self.heads[t]
            if memcmp(new + begin, old + begin, at - begin):
                return None
            begin = at + self.sizes[t]
        numbers = PyBytes_FromStringAndSize(NULL, self.numbers_size)
        cdef char *put = PyBytes_AS_STRING(numbers)
        for t in range(self.count):
            memcpy(put, new + self.heads[t], self.sizes[t])
            put += self.sizes[t]
        return self.layout, numbers, generation_at(data, self.end)


cdef object generation_at(bytes data, Py_ssize_t end):
    if len(data) - end != 4:
        return NO_GENERATION
    return <int32_t>big_endian(<const uint8_t *>PyBytes_AS_STRING(data) + end)


def parsed_claims(bytes data not None):
    """(layout, numbers, generation) of exactly v0 or v1; None for anything else."""
    cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = len(data), position = 4, name, count, used = 0
    cdef int32_t topics
    if size < 4:
        return None
    topics = <int32_t>big_endian(begin)
    cdef list layout = []
    numbers = PyBytes_FromStringAndSize(NULL, size)
    cdef char *put = PyBytes_AS_STRING(numbers)
    while topics > 0:
        topics -= 1
        if size - position < 2:
            return None
        name = begin[position] << 8 | begin[position + 1]
        position += 2
        if name > 0x7FFF or size - position < name + 4:
            return None
        count = <int32_t>big_endian(begin + position + name)
        if count < 0 or count > (size - position - name - 4) // 4:
            return None
        try:
            layout.append((data[position:position + name].decode(), count))
        except UnicodeDecodeError:
            return None
        position += name + 4
        memcpy(put + used, begin + position, 4 * count)
        used += 4 * count
        position += 4 * count
    if not layout or size - position not in (0, 4):
        return None
    return tuple(layout), numbers[:used], generation_at(data, position)


# --- ownership ----------------------------------------------------------------------------------------------


cdef class NativeOwnership:
    """An ``_ownership.Ownership`` of C arrays."""

    cdef object group
    cdef Py_ssize_t members, topics, total
    cdef Py_ssize_t *starts
    cdef int32_t *newest
    cdef int32_t *owner

    def __cinit__(self, group, claims):
        cdef Py_ssize_t t, p
        counts = group.partition_counts
        self.group, self.members, self.topics = group, len(group.member_ids), len(group.topics)
        if len(counts) != self.topics or len(claims) != self.members or self.members > 0x7FFFFFFF:
            raise ValueError("a group whose parts have different lengths")
        self.starts = <Py_ssize_t *>room(self.topics + 1, sizeof(Py_ssize_t))
        for t in range(self.topics):
            if counts[t] < 0:
                raise ValueError("a topic of fewer than no partitions")
            self.starts[t + 1] = self.starts[t] + <Py_ssize_t>counts[t]
        self.total = self.starts[self.topics]
        self.newest = <int32_t *>room(self.total, sizeof(int32_t))
        self.owner = <int32_t *>room(self.total, sizeof(int32_t))
        memset(self.newest, 0xFF, self.total * sizeof(int32_t))  # UNCLAIMED
        self._settle(claims)
        memcpy(self.owner, self.newest, self.total * sizeof(int32_t))

    def __dealloc__(self):
        PyMem_Free(self.starts)
        PyMem_Free(self.newest)
        PyMem_Free(self.owner)

    cdef int _settle(self, claims) except -1:
        """Enter the newest claimant of each partition: ``_group.settle``."""
        cdef int64_t *generations = <int64_t *>room(self.members, sizeof(int64_t))
        cdef int64_t *contested = NULL  # by partition, made when there is one
        cdef Py_ssize_t *places = NULL  # by topic of a layout: its index, -1 for none
        cdef Py_ssize_t m, i, k, units, topic, number, partition, left, kept = 0
        cdef int64_t best, mine
        cdef int32_t holder
        cdef const uint8_t *at
        cdef dict index = {name: t for t, name in enumerate(self.group.topics)}
        cdef bytes numbers
        cdef tuple layout, before = None
        try:
            for m in range(self.members):
                generations[m] = max(<int64_t>claims[m].generation, NO_GENERATION)
            for m in range(self.members):
                layout, numbers, _ = claims[m]
                if layout is not before:  # members that own alike share it
                    if len(layout) > kept:
                        PyMem_Free(places)
                        places = NULL
                        places = <Py_ssize_t *>room(len(layout), 2 * sizeof(Py_ssize_t))
                        kept = len(layout)
                    for i, (name, of_name) in enumerate(layout):
                        places[2 * i] = index.get(name, -1)
                        places[2 * i + 1] = of_name
                    before = layout
                at = <const uint8_t *>PyBytes_AS_STRING(numbers)
                left = len(numbers) // 4
                mine = generations[m]
                for i in range(len(layout)):
                    topic, units = places[2 * i], min(places[2 * i + 1], left)
                    left -= units
                    for k in range(units):
                        number = <int32_t>big_endian(at)
                        at += 4
                        if topic < 0 or not 0 <= number < self.starts[topic + 1] - self.starts[topic]:
                            continue
                        partition = self.starts[topic] + number
                        holder = self.newest[partition]
                        if holder == UNCLAIMED:
                            self.newest[partition] = <int32_t>m
                        elif holder != m:
                            if contested is NULL:
                                contested = <int64_t *>room(self.total, sizeof(int64_t))
                            best = contested[partition] if holder == CONTESTED else generations[holder]
                            if mine > best:
                                self.newest[partition] = <int32_t>m
                            elif mine == best:
                                self.newest[partition] = CONTESTED
                                contested[partition] = best
        finally:
            PyMem_Free(generations)
            PyMem_Free(contested)
            PyMem_Free(places)
        return 0

    cdef Py_ssize_t *_gather(self, slices, Py_ssize_t *number) except NULL:
        """The partitions of ``slices``, ascending, and their number; the caller frees them."""
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t *found
        for _, partitions in slices:
            count += <Py_ssize_t>len(partitions)
        found = <Py_ssize_t *>room(count, sizeof(Py_ssize_t))
        number[0] = count
        try:
            self._fill(slices, found, number[0])
        except BaseException:
            PyMem_Free(found)
            raise
        return found

    cdef int _fill(self, slices, Py_ssize_t *found, Py_ssize_t number) except -1:
        cdef Py_ssize_t partition, begin, end, count = 0
        for _, partitions in slices:
            if count + <Py_ssize_t>len(partitions) > number:
                raise ValueError("more partitions than there were")
            if type(partitions) is range:
                begin, end = partitions.start, partitions.stop
                if begin < 0 or end > self.total or partitions.step != 1:
                    raise IndexError("partitions that are not there")
                for partition in range(begin, end):
                    found[count] = partition
                    count += 1
            else:
                for one in partitions:
                    partition = one
                    if not 0 <= partition < self.total or count == number:
                        raise IndexError("a partition that is not there")
                    found[count] = partition
                    count += 1
        return 0

    def owned(self, slices):
        cdef Py_ssize_t i, count = 0
        cdef Py_ssize_t *partitions = self._gather(slices, &count)
        cdef Py_ssize_t *units = NULL
        cdef int32_t m
        try:
            units = <Py_ssize_t *>room(self.members, sizeof(Py_ssize_t))
            for i in range(count):
                m = self.owner[partitions[i]]
                if m >= 0:
                    units[m] += 1
            return [units[i] for i in range(self.members)]
        finally:
            PyMem_Free(partitions)
            PyMem_Free(units)

    def distribute(self, slices, own, dict given not None):
        cdef Py_ssize_t i, count = 0, m, units, mine, short = 0, wanted = 0, rest = 0, active, turn
        cdef Py_ssize_t *partitions = self._gather(slices, &count)
        cdef Py_ssize_t *limits = NULL  # by member: how many it is given; -1: does not subscribe
        cdef Py_ssize_t *takers = NULL  # and how many each is short of
        cdef uint8_t *beyond = NULL
        cdef bint surplus = False
        try:
            limits = <Py_ssize_t *>room(self.members, sizeof(Py_ssize_t))
            takers = <Py_ssize_t *>room(len(given), 2 * sizeof(Py_ssize_t))
            memset(limits, 0xFF, self.members * sizeof(Py_ssize_t))
            for m, units in given.items():
                if not 0 <= m < self.members or units < 0:
                    raise IndexError("a member that is not there")
                mine = own[m]
                limits[m] = units
                surplus = surplus or units < mine
                if units > mine:
                    takers[2 * short], takers[2 * short + 1] = m, units - mine
                    short += 1
                    wanted += units - mine
            beyond = <uint8_t *>room(count, 1)
            if surplus:
                self._beyond(slices, partitions, count, limits, beyond)
            for i in range(count):
                m = self.owner[partitions[i]]
                if m < 0 or limits[m] < 0 or beyond[i]:
                    partitions[rest] = partitions[i]
                    rest += 1
            if rest != wanted:
                raise ValueError("the partitions that are given are not those that there are")
            i, turn = 0, 0
            while i < rest:
                turn += 1
                active = 0
                for m in range(short):
                    self.owner[partitions[i]] = <int32_t>takers[2 * m]
                    i += 1
                    if takers[2 * m + 1] > turn:
                        takers[2 * active], takers[2 * active + 1] = takers[2 * m], takers[2 * m + 1]
                        active += 1
                short = active
        finally:
            PyMem_Free(partitions)
            PyMem_Free(limits)
            PyMem_Free(takers)
            PyMem_Free(beyond)

    cdef int _beyond(
        self, slices, Py_ssize_t *partitions, Py_ssize_t count, Py_ssize_t *limits, uint8_t *beyond
    ) except -1:
        """Mark what members own beyond their limits, counted from the lowest numbers of all topics."""
        cdef Py_ssize_t i, end, t, m, most = 0, k = 0
        cdef Py_ssize_t *number = <Py_ssize_t *>room(count, sizeof(Py_ssize_t))
        cdef Py_ssize_t *order = NULL
        cdef Py_ssize_t *first = NULL
        cdef Py_ssize_t *kept = NULL
        try:
            for topic, of_topic in slices:
                t, end = topic, k + <Py_ssize_t>len(of_topic)
                if not 0 <= t < self.topics:
                    raise IndexError("a topic that is not there")
                while k < end:
                    number[k] = partitions[k] - self.starts[t]
                    if not 0 <= number[k] < self.total:
                        raise IndexError("a partition of another topic")
                    most = max(most, number[k])
                    k += 1
            # counting sort by number, which keeps the topics' order
            first = <Py_ssize_t *>room(most + 2, sizeof(Py_ssize_t))
            order = <Py_ssize_t *>room(count, sizeof(Py_ssize_t))
            kept = <Py_ssize_t *>room(self.members, sizeof(Py_ssize_t))
            for i in range(count):
                first[number[i] + 1] += 1
            for i in range(most + 1):
                first[i + 1] += first[i]
            for i in range(count):
                order[first[number[i]]] = i
                first[number[i]] += 1
            for i in range(count):
                k = order[i]
                m = self.owner[partitions[k]]
                if m >= 0 and limits[m] >= 0:
                    beyond[k] = kept[m] >= limits[m]
                    kept[m] += 1
        finally:
            PyMem_Free(number)
            PyMem_Free(order)
            PyMem_Free(first)
            PyMem_Free(kept)
        return 0

    def withhold(self):
        cdef Py_ssize_t p
        for p in range(self.total):
            if self.newest[p] != UNCLAIMED and self.newest[p] != self.owner[p]:
                self.owner[p] = UNCLAIMED

    def assignment(self):
        cdef Py_ssize_t *units = <Py_ssize_t *>room(self.members, sizeof(Py_ssize_t))
        cdef Py_ssize_t p, t, most = 0
        cdef int32_t m
        cdef make new = <make>(<PyTypeObject *>tuple).tp_new  # tuple.__new__
        cdef list lists = [], numbers, given
        try:
            for p in range(self.total):
                m = self.owner[p]
                if m >= 0:
                    units[m] += 1
            for p in range(self.members):
                lists.append([None] * units[p])
                units[p] = 0
            for t in range(self.topics):
                most = max(most, self.starts[t + 1] - self.starts[t])
            numbers = list(range(most))  # names and numbers are the same objects wherever they stand
            for t, topic in enumerate(self.group.topics):
                for p in range(self.starts[t], self.starts[t + 1]):
                    m = self.owner[p]
                    if m < 0:
                        continue
                    one = new(TopicPartition, ((topic, numbers[p - self.starts[t]]),), NULL)
                    PyObject_GC_UnTrack(<PyObject *>one)  # text and a number: it is in no cycle
                    given = <list>lists[m]
                    given[units[m]] = one
                    units[m] += 1
            return dict(zip(self.group.member_ids, lists, strict=True))
        finally:
            PyMem_Free(units)


# --- balanced loads -----------------------------------------------------------------------------------------


cdef class Graph:
    """Who wants what, from both sides; ``given`` and ``own`` have a row of members for each topic (or class).

    ``readers[first_reader[t]:first_reader[t + 1]]`` are the members of topic t, ``wanted`` the topics of a
    member in the same way, both ascending.
    """

    cdef Py_ssize_t members, topics
    cdef int64_t *units  # partitions of each topic
    cdef Py_ssize_t *first_reader
    cdef Py_ssize_t *readers
    cdef Py_ssize_t *first_wanted
    cdef Py_ssize_t *wanted
    cdef int64_t *given

    def __cinit__(self, group):
        cdef Py_ssize_t t, m, k, before, number = 0
        counts, subscribers = group.partition_counts, group.subscribers
        self.members, self.topics = len(group.member_ids), len(group.topics)
        if len(counts) != self.topics or len(subscribers) != self.topics:
            raise ValueError("a group whose parts have different lengths")
        for of_topic in subscribers:
            number += <Py_ssize_t>len(of_topic)
        self.units = <int64_t *>room(self.topics, sizeof(int64_t))
        self.first_reader = <Py_ssize_t *>room(self.topics + 1, sizeof(Py_ssize_t))
        self.readers = <Py_ssize_t *>room(number, sizeof(Py_ssize_t))
        self.first_wanted = <Py_ssize_t *>room(self.members + 2, sizeof(Py_ssize_t))
        self.wanted = <Py_ssize_t *>room(number, sizeof(Py_ssize_t))
        self.given = <int64_t *>room(self.topics * self.members, sizeof(int64_t))
        k = 0
        for t in range(self.topics):
            self.units[t] = counts[t]
            before = -1
            for m in subscribers[t]:
                if not before < m < self.members or k == number:
                    raise ValueError("subscribers that are not there, or not in order")
                self.readers[k] = before = m
                k += 1
                self.first_wanted[m + 2] += 1
            self.first_reader[t + 1] = k
            if k == self.first_reader[t] or self.units[t] < 0:
                raise ValueError("a topic without subscribers, or of fewer than no partitions")
        for m in range(self.members):
            self.first_wanted[m + 2] += self.first_wanted[m + 1]
        for t in range(self.topics):
            for k in range(self.first_reader[t], self.first_reader[t + 1]):
                m = self.readers[k]
                self.wanted[self.first_wanted[m + 1]] = t
                self.first_wanted[m + 1] += 1

    def __dealloc__(self):
        PyMem_Free(self.units)
        PyMem_Free(self.first_reader)
        PyMem_Free(self.readers)
        PyMem_Free(self.first_wanted)
        PyMem_Free(self.wanted)
        PyMem_Free(self.given)

    cdef list rows(self):
        cdef Py_ssize_t t, m
        return [[self.given[t * self.members + m] for m in range(self.members)] for t in range(self.topics)]


cdef class Loads:
    """``_balanced_loads._Search``, with flags in place of bit sets."""

    cdef Graph graph
    cdef int64_t *loads
    cdef int64_t *heights
    cdef int64_t *row
    cdef uint8_t *active
    cdef uint8_t *seen
    cdef uint8_t *seen_topics
    cdef Py_ssize_t *giver
    cdef Py_ssize_t *through
    cdef Py_ssize_t *queue

    def __cinit__(self, Graph graph not None):
        self.graph = graph
        self.loads = <int64_t *>room(graph.members, sizeof(int64_t))
        self.heights = <int64_t *>room(graph.members, sizeof(int64_t))
        self.row = <int64_t *>room(graph.members, sizeof(int64_t))
        self.active = <uint8_t *>room(graph.members, 1)
        self.seen = <uint8_t *>room(graph.members, 1)
        self.seen_topics = <uint8_t *>room(graph.topics, 1)
        self.giver = <Py_ssize_t *>room(graph.topics, sizeof(Py_ssize_t))
        self.through = <Py_ssize_t *>room(graph.members, sizeof(Py_ssize_t))
        self.queue = <Py_ssize_t *>room(graph.members, sizeof(Py_ssize_t))

    def __dealloc__(self):
        PyMem_Free(self.loads)
        PyMem_Free(self.heights)
        PyMem_Free(self.row)
        PyMem_Free(self.active)
        PyMem_Free(self.seen)
        PyMem_Free(self.seen_topics)
        PyMem_Free(self.giver)
        PyMem_Free(self.through)
        PyMem_Free(self.queue)

    cdef list run(self):
        """Members, highest load and sum of loads of each block."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t m, left = 0
        cdef int64_t high, total, highest
        cdef list blocks = [], members
        self.fill()
        for m in range(graph.members):
            self.active[m] = graph.first_wanted[m + 1] > graph.first_wanted[m]
            left += self.active[m]
        while left:
            high = 0
            for m in range(graph.members):
                if self.active[m] and self.loads[m] > high:
                    high = self.loads[m]
            self.lower(high)
            members, highest, total = [], 0, 0
            for m in range(graph.members):
                if self.seen[m]:
                    members.append(m)
                    highest = max(highest, self.loads[m])
                    total += self.loads[m]
                    self.active[m] = 0
            left -= len(members)
            blocks.append((members, highest, total))
        return blocks

    cdef int fill(self) except -1:
        """Take each topic out and pour it over its subscribers again, rarest first; twice at most."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t t, k, m, sweep
        cdef bint changed
        cdef int64_t *before
        rarest_first = sorted(
            range(graph.topics), key=[
                graph.first_reader[t + 1] - graph.first_reader[t] for t in range(graph.topics)
            ].__getitem__
        )
        for sweep in range(2):
            changed = False
            for one in rarest_first:
                t = one
                before = graph.given + t * graph.members
                for k in range(graph.first_reader[t], graph.first_reader[t + 1]):
                    self.loads[graph.readers[k]] -= before[graph.readers[k]]
                self.pour(t)
                for k in range(graph.first_reader[t], graph.first_reader[t + 1]):
                    m = graph.readers[k]
                    self.loads[m] += self.row[m]
                    changed = changed or self.row[m] != before[m]
                    before[m] = self.row[m]
            if not changed:
                break
        return 0

    cdef void pour(self, Py_ssize_t t) noexcept:
        """Units of topic t into ``row``: ``water_level``."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t *members = graph.readers + graph.first_reader[t]
        cdef Py_ssize_t k, number = graph.first_reader[t + 1] - graph.first_reader[t], reached
        cdef int64_t units = graph.units[t], total = units, highest = 0, level, extras, below, height
        for k in range(number):
            height = self.loads[members[k]]
            self.heights[k] = height
            total += height
            highest = max(highest, height)
        level, extras = total // number, total % number
        if highest > level:
            qsort(self.heights, number, sizeof(int64_t), by_height)
            below, reached = 0, 0
            for k in range(number):
                if self.heights[k] * reached - below >= units:
                    break
                below += self.heights[k]
                reached += 1
            level, extras = -1, 0
            if reached:
                level, extras = (units + below) // reached, (units + below) % reached
        for k in range(number):
            height = self.loads[members[k]]
            self.row[members[k]] = 0
            if height <= level:
                self.row[members[k]] = level - height + (extras > 0)
                extras -= 1

    cdef void lower(self, int64_t high) noexcept:
        """Bring as many loads as possible below ``high``; ``seen`` is the block that remains."""
        cdef Py_ssize_t m, begin
        while True:
            begin = 0
            memset(self.seen, 0, self.graph.members)
            for m in range(self.graph.members):
                if self.active[m] and self.loads[m] == high:
                    self.seen[m] = 1
                    self.queue[begin] = m
                    begin += 1
            if not begin:
                high -= 1
                continue
            m = self.search(begin, high)
            if m < 0:
                return
            self.shift(m)

    cdef Py_ssize_t search(self, Py_ssize_t end, int64_t high) noexcept:
        """Breadth-first from the first ``end`` of ``queue`` to a member lower by two; -1: there is none."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t at = 0, m, n, t, k, r
        memset(self.seen_topics, 0, graph.topics)
        memset(self.through, 0xFF, graph.members * sizeof(Py_ssize_t))
        while at < end:
            m = self.queue[at]
            at += 1
            for k in range(graph.first_wanted[m], graph.first_wanted[m + 1]):
                t = graph.wanted[k]
                if self.seen_topics[t] or not graph.given[t * graph.members + m]:
                    continue
                self.seen_topics[t] = 1
                self.giver[t] = m
                for r in range(graph.first_reader[t], graph.first_reader[t + 1]):
                    n = graph.readers[r]
                    if self.seen[n] or not self.active[n]:
                        continue
                    self.seen[n] = 1
                    self.through[n] = t
                    if self.loads[n] <= high - 2:
                        return n
                    self.queue[end] = n
                    end += 1
        return -1

    cdef void shift(self, Py_ssize_t taker) noexcept:
        """Move units along the path that ends at ``taker``."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t m = taker, t
        cdef int64_t units = UNBOUNDED
        while self.through[m] >= 0:
            t = self.through[m]
            m = self.giver[t]
            units = min(units, graph.given[t * graph.members + m])
        units = min(units, (self.loads[m] - self.loads[taker]) // 2)
        self.loads[m] -= units
        self.loads[taker] += units
        m = taker
        while self.through[m] >= 0:
            t = self.through[m]
            graph.given[t * graph.members + m] += units
            m = self.giver[t]
            graph.given[t * graph.members + m] -= units


cdef int by_height(const void *one, const void *other) noexcept nogil:
    cdef int64_t left = (<const int64_t *>one)[0], right = (<const int64_t *>other)[0]
    return (left > right) - (left < right)


def balanced(group):
    """``given[topic][member]``, and (members, highest load, sum of loads) of each block."""
    cdef Graph graph = Graph(group)
    cdef list blocks = Loads(graph).run()
    return graph.rows(), blocks


# --- fewest moves -------------------------------------------------------------------------------------------


cdef class Flow:
    """``_min_cost_flow._Flow``. Nodes are members, then classes, then sinks."""

    cdef Graph graph
    cdef int64_t *own
    cdef int64_t *rack  # by class and member: cost of a unit in the wrong rack; NULL: racks play no part
    cdef int64_t move, slope
    cdef Py_ssize_t first_class, first_sink, nodes, widest
    cdef Py_ssize_t *first_of_sink
    cdef Py_ssize_t *of_sink
    cdef Py_ssize_t *sink_of
    cdef int64_t *low
    cdef int64_t *high
    cdef int64_t *counted
    cdef int64_t *excess
    cdef int64_t *potential
    cdef int64_t *distance
    cdef Py_ssize_t *depth
    cdef Py_ssize_t *path
    cdef Py_ssize_t *heads
    cdef Py_ssize_t *onward  # heads of tight arcs, of each node from first_onward to end_onward
    cdef Py_ssize_t *first_onward
    cdef Py_ssize_t *end_onward

    def __cinit__(self, Graph graph not None, Py_ssize_t sinks):
        cdef Py_ssize_t arcs = graph.first_reader[graph.topics]
        self.graph = graph
        self.first_class = graph.members
        self.first_sink = graph.members + graph.topics
        self.nodes = self.first_sink + sinks
        self.own = <int64_t *>room(graph.topics * graph.members, sizeof(int64_t))
        self.first_of_sink = <Py_ssize_t *>room(sinks + 1, sizeof(Py_ssize_t))
        self.of_sink = <Py_ssize_t *>room(graph.members, sizeof(Py_ssize_t))
        self.sink_of = <Py_ssize_t *>room(graph.members, sizeof(Py_ssize_t))
        self.low = <int64_t *>room(graph.members, sizeof(int64_t))
        self.high = <int64_t *>room(graph.members, sizeof(int64_t))
        self.counted = <int64_t *>room(graph.members, sizeof(int64_t))
        self.excess = <int64_t *>room(self.nodes, sizeof(int64_t))
        self.potential = <int64_t *>room(self.nodes, sizeof(int64_t))
        self.distance = <int64_t *>room(self.nodes, sizeof(int64_t))
        self.depth = <Py_ssize_t *>room(self.nodes, sizeof(Py_ssize_t))
        self.path = <Py_ssize_t *>room(self.nodes + 1, sizeof(Py_ssize_t))
        self.heads = <Py_ssize_t *>room(max(graph.members, graph.topics) + 1, sizeof(Py_ssize_t))
        self.onward = <Py_ssize_t *>room(2 * (arcs + graph.members), sizeof(Py_ssize_t))
        self.first_onward = <Py_ssize_t *>room(self.nodes, sizeof(Py_ssize_t))
        self.end_onward = <Py_ssize_t *>room(self.nodes, sizeof(Py_ssize_t))

    def __dealloc__(self):
        PyMem_Free(self.own)
        PyMem_Free(self.rack)
        PyMem_Free(self.first_of_sink)
        PyMem_Free(self.of_sink)
        PyMem_Free(self.sink_of)
        PyMem_Free(self.low)
        PyMem_Free(self.high)
        PyMem_Free(self.counted)
        PyMem_Free(self.excess)
        PyMem_Free(self.potential)
        PyMem_Free(self.distance)
        PyMem_Free(self.depth)
        PyMem_Free(self.path)
        PyMem_Free(self.heads)
        PyMem_Free(self.onward)
        PyMem_Free(self.first_onward)
        PyMem_Free(self.end_onward)

    cdef int price(self, elsewhere, bint racks_first) except -1:
        cdef Py_ssize_t p, m
        cdef int64_t highest = 0, later, first, rack
        for m in range(self.graph.members):
            highest = max(highest, self.high[m])
        later = highest * self.slope + 1
        self.move = later
        if not any(elsewhere):
            return 0
        first = later * (self.nodes + 1)
        rack, self.move = (first, later) if racks_first else (later, first)
        self.rack = <int64_t *>room(self.graph.topics * self.graph.members, sizeof(int64_t))
        for p, away in enumerate(elsewhere):
            for m in away:
                if not 0 <= m < self.graph.members or p >= self.graph.topics:
                    raise IndexError("a member that is not there")
                self.rack[p * self.graph.members + m] = rack
        return 0

    cdef int start(self, own, list totals) except -1:
        """Start with what is worth keeping at its owner; loads are counted within their bounds."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t p, m, k, s, cell
        cdef int64_t load, level = 0, partitions = 0, active = 0
        if len(own) != graph.topics:
            raise ValueError("what is owned has another shape than the group")
        for p in range(graph.topics):
            if len(own[p]) != graph.members:
                raise ValueError("what is owned has another shape than the group")
            partitions += graph.units[p]
            self.excess[self.first_class + p] = graph.units[p]
            for m, load in enumerate(own[p]):
                cell = p * graph.members + m
                self.own[cell] = load
                graph.given[cell] = 0 if self.rack is not NULL and self.rack[cell] > self.move else load
                self.excess[self.first_class + p] -= graph.given[cell]
        for m in range(graph.members):
            active += graph.first_wanted[m + 1] > graph.first_wanted[m]
        if self.slope:
            level = partitions // max(1, active)
        for s in range(self.nodes - self.first_sink):
            self.potential[self.first_sink + s] = level
            self.excess[self.first_sink + s] = -<int64_t>totals[s]
            for k in range(self.first_of_sink[s], self.first_of_sink[s + 1]):
                m, load = self.of_sink[k], 0
                for p in range(graph.first_wanted[m], graph.first_wanted[m + 1]):
                    load += graph.given[graph.wanted[p] * graph.members + m]
                self.counted[m] = min(max(level if self.slope else load, self.low[m]), self.high[m])
                self.excess[m] = load - self.counted[m]
                self.excess[self.first_sink + s] += self.counted[m]
        return 0

    cdef int run(self) except -1:
        while self.in_excess():
            self.raise_potentials()
            while self.push_along_tight_arcs():
                pass
        return 0

    cdef bint in_excess(self) noexcept:
        cdef Py_ssize_t node
        for node in range(self.nodes):
            if self.excess[node] > 0:
                return True
        return False

    cdef Py_ssize_t heads_of(self, Py_ssize_t node) noexcept:
        """Write the nodes that flow from ``node`` may go to into ``heads``, and return their number."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t k, p, number = 0
        if node < self.first_class:
            for k in range(graph.first_wanted[node], graph.first_wanted[node + 1]):
                p = graph.wanted[k]
                if graph.given[p * graph.members + node]:
                    self.heads[number] = self.first_class + p
                    number += 1
            if self.sink_of[node]:
                self.heads[number] = self.sink_of[node]
                number += 1
            return number
        if node < self.first_sink:
            p = node - self.first_class
            number = graph.first_reader[p + 1] - graph.first_reader[p]
            memcpy(self.heads, graph.readers + graph.first_reader[p], number * sizeof(Py_ssize_t))
            return number
        p = node - self.first_sink
        number = self.first_of_sink[p + 1] - self.first_of_sink[p]
        memcpy(self.heads, self.of_sink + self.first_of_sink[p], number * sizeof(Py_ssize_t))
        return number

    cdef int64_t arc(self, Py_ssize_t tail, Py_ssize_t head, int64_t *units) noexcept:
        """Cost of the next unit; ``units`` is the number of units at that cost."""
        cdef Graph graph = self.graph
        cdef Py_ssize_t cell
        cdef int64_t cost, rack
        if tail >= self.first_sink or head >= self.first_sink:
            if tail >= self.first_sink:
                cost, units[0] = -self.slope * self.counted[head], self.counted[head] - self.low[head]
            else:
                cost, units[0] = self.slope * (self.counted[tail] + 1), self.high[tail] - self.counted[tail]
            if self.slope:  # a cost that changes with the load holds for one unit
                units[0] = min(units[0], 1)
            return cost
        if tail >= self.first_class:
            cell = (tail - self.first_class) * graph.members + head
            rack = 0 if self.rack is NULL else self.rack[cell]
            units[0] = self.own[cell] - graph.given[cell]
            if units[0] > 0:
                return rack - self.move
            units[0] = UNBOUNDED
            return rack
        cell = (head - self.first_class) * graph.members + tail
        rack = 0 if self.rack is NULL else self.rack[cell]
        units[0] = graph.given[cell] - self.own[cell]
        if units[0] > 0:
            return -rack
        units[0] = graph.given[cell]
        return self.move - rack

    cdef int64_t reduced(self, Py_ssize_t tail, Py_ssize_t head) noexcept:
        """Cost of an arc by potentials, never below 0; -1 when it has no room."""
        cdef int64_t units = 0
        cdef int64_t cost = self.arc(tail, head, &units)
        return cost + self.potential[tail] - self.potential[head] if units > 0 else -1

    cdef int raise_potentials(self) except -1:
        """Make the cheapest paths from excess to want tight (Dijkstra with buckets: costs are few)."""
        cdef Py_ssize_t node, at
        cdef int64_t reach
        cdef list bucket = []
        cdef dict buckets = {0: bucket}
        cdef bint found = False
        for node in range(self.nodes):
            self.distance[node] = UNBOUNDED
            if self.excess[node] > 0:
                self.distance[node] = 0
                bucket.append(node)
        while not found:
            if not buckets:
                raise AssertionError("best balance is within reach of every group")
            reach = min(buckets)
            bucket = buckets.pop(reach)
            self.scan(bucket, reach, buckets)
            for at in range(len(bucket)):
                node = bucket[at]
                if self.excess[node] < 0 and self.distance[node] == reach:
                    found = True
        for node in range(self.nodes):
            self.potential[node] += min(self.distance[node], reach)
        return 0

    cdef int scan(self, list bucket, int64_t reach, dict buckets) except -1:
        cdef Py_ssize_t at = 0, tail, head, k, number
        cdef int64_t cost
        while at < len(bucket):
            tail = bucket[at]
            at += 1
            if self.distance[tail] != reach:
                continue
            number = self.heads_of(tail)
            for k in range(number):
                head = self.heads[k]
                if self.distance[head] <= reach:
                    continue
                cost = self.reduced(tail, head)
                if cost >= 0 and reach + cost < self.distance[head]:
                    self.distance[head] = reach + cost
                    # at cost 0 it joins the bucket that is being read
                    if cost == 0:
                        bucket.append(head)
                    else:
                        buckets.setdefault(reach + cost, []).append(head)
        return 0

    cdef bint push_along_tight_arcs(self) noexcept:
        """Push one blocking flow over arcs of reduced cost 0; return whether any unit moved."""
        cdef Py_ssize_t node, steps
        cdef bint moved = False
        self.layers()
        for node in range(self.nodes):
            while self.excess[node] > 0 and self.depth[node] == 0:
                steps = self.find_path(node)
                if not steps:
                    break
                self.push(steps)
                moved = True
        return moved

    cdef void layers(self) noexcept:
        """Breadth-first depths over tight arcs, and for each node where its tight arcs lead one deeper."""
        cdef Py_ssize_t node, tail, head, k, number, at = 0, end = 0, put = 0
        cdef Py_ssize_t *queue = self.path  # not in use meanwhile
        for node in range(self.nodes):
            self.depth[node] = -1
            self.first_onward[node] = self.end_onward[node] = 0
            if self.excess[node] > 0:
                self.depth[node] = 0
                queue[end] = node
                end += 1
        while at < end:
            tail = queue[at]
            at += 1
            self.first_onward[tail] = put
            number = self.heads_of(tail)
            for k in range(number):
                head = self.heads[k]
                if self.depth[head] >= 0 and self.depth[head] != self.depth[tail] + 1:
                    continue
                if self.reduced(tail, head) == 0:
                    self.onward[put] = head
                    put += 1
                    if self.depth[head] < 0:
                        self.depth[head] = self.depth[tail] + 1
                        queue[end] = head
                        end += 1
            self.end_onward[tail] = put

    cdef Py_ssize_t find_path(self, Py_ssize_t node) noexcept:
        """A path to a node that wants more into ``path``, and its number of nodes; dead ends are tried once."""
        cdef Py_ssize_t tail, head, steps = 1
        self.path[0] = node
        while steps:
            tail = self.path[steps - 1]
            if self.excess[tail] < 0:
                return steps
            if self.first_onward[tail] == self.end_onward[tail]:
                self.depth[tail] = -1
                steps -= 1
                continue
            head = self.onward[self.first_onward[tail]]
            if self.depth[head] == self.depth[tail] + 1 and self.reduced(tail, head) == 0:
                self.path[steps] = head
                steps += 1
            else:
                self.first_onward[tail] += 1
        return 0

    cdef void push(self, Py_ssize_t steps) noexcept:
        cdef Graph graph = self.graph
        cdef Py_ssize_t k, tail, head, last = self.path[steps - 1]
        cdef int64_t units = min(self.excess[self.path[0]], -self.excess[last]), limit = 0
        for k in range(steps - 1):
            self.arc(self.path[k], self.path[k + 1], &limit)
            units = min(units, limit)
        for k in range(steps - 1):
            tail, head = self.path[k], self.path[k + 1]
            if tail >= self.first_sink:
                self.counted[head] -= units
            elif head >= self.first_sink:
                self.counted[tail] += units
            elif tail >= self.first_class:
                graph.given[(tail - self.first_class) * graph.members + head] += units
            else:
                graph.given[(head - self.first_class) * graph.members + tail] -= units
        self.excess[self.path[0]] -= units
        self.excess[last] += units


def least_moves(group, own, blocks, elsewhere, bint racks_first, int64_t slack):
    """``_min_cost_flow.fewest_moves``; ``blocks`` are (members, low, high, total)."""
    cdef Graph graph = Graph(group)
    cdef Py_ssize_t b, m, k = 0
    cdef int64_t low, high
    cdef list sinks, totals
    if slack:  # a block may take more than its total from one below it
        sinks, totals = [group.active], [sum(group.partition_counts)]
    else:
        sinks, totals = [members for members, _, _, _ in blocks], [total for _, _, _, total in blocks]
    cdef Flow flow = Flow(graph, len(sinks))
    flow.slope = 1 if slack else 0
    for b, members in enumerate(sinks):
        for m in members:
            if not 0 <= m < graph.members or k == graph.members:
                raise IndexError("a member that is not there")
            flow.of_sink[k] = m
            flow.sink_of[m] = flow.first_sink + b
            k += 1
        flow.first_of_sink[b + 1] = k
    for members, low, high, _ in blocks:
        for m in members:
            if not 0 <= m < graph.members:
                raise IndexError("a member that is not there")
            flow.low[m], flow.high[m] = max(0, low - slack), high + slack
    flow.price(elsewhere, racks_first)
    flow.start(own, totals)
    flow.run()
    return graph.rows()
