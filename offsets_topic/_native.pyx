# cython: language_level=3, wraparound=False, cdivision=True, initializedcheck=False
"""Plain commits of a batch, in C: ``_encoded._take_plain_commits``.

The bytes come from a file. Each is looked at only after a check that it is there, and whatever is not exactly
a plain commit is left to the careful reader. Layouts: ``protocol/records.py``, ``records.py`` and ``_encoded.py``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memcmp

cdef enum:
    VALUE_SIZE = 24  # of a value of version 3 without metadata
    VALUE_WITH_ID_SIZE = 42  # of one of version 4 with a topic id
    LONGEST = 0x3FFF  # record whose length is a varint of at most two bytes


cdef inline const uint8_t *behind_varint(const uint8_t *at, const uint8_t *end) noexcept:
    """Position after a varint; NULL where it does not end before ``end``."""
    while at < end and at[0] & 0x80:
        at += 1
    return at + 1 if at < end else NULL


cdef inline const uint8_t *short_varint(const uint8_t *at, const uint8_t *end, Py_ssize_t *value) noexcept:
    """Position after a varint of one or two bytes, zigzag left as it is; NULL where it is another."""
    if at >= end:
        return NULL
    value[0] = at[0]
    if value[0] < 0x80:
        return at + 1
    if end - at < 2 or at[1] & 0x80:
        return NULL
    value[0] = value[0] & 0x7F | <Py_ssize_t>at[1] << 7
    return at + 2


cdef inline bint is_ascii(const uint8_t *text, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    cdef uint8_t bits = 0
    for i in range(size):
        bits |= text[i]
    return bits < 0x80


cdef inline bint is_plain(const uint8_t *at, Py_ssize_t size) noexcept:
    """Whether a value of ``size`` bytes, which begins behind its length at ``at``, is that of a plain commit."""
    if size == VALUE_WITH_ID_SIZE:
        # version 4, no metadata, one tagged field: field 0, of 16 bytes
        return (
            at[0] == 2 * VALUE_WITH_ID_SIZE
            and at[1] == 0
            and at[2] == 4
            and at[15] == 1
            and at[24] == 1
            and at[25] == 0
            and at[26] == 16
        )
    if size == VALUE_SIZE:
        return at[0] == 2 * VALUE_SIZE and at[1] == 0 and at[2] == 3 and at[15] == 0 and at[16] == 0
    return False


def take_commits(bytes data not None, Py_ssize_t position, dict by_group not None, dict known not None, learn):
    """Enter plain commits from ``position`` on into ``by_group``: by group and partition, the value's bytes.

    Return the position of the first record that is none, and how many there were. ``known`` has partitions by
    their bytes; ``learn(partition, known)`` adds one, or returns false if it is not well formed.
    """
    cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef const uint8_t *stop = begin + len(data)
    cdef const uint8_t *record
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *key_end
    cdef const uint8_t *group = NULL  # that of the last commit
    cdef Py_ssize_t size = 0, group_size = -1, name_size, value_size, taken = 0
    cdef dict offsets = None
    cdef PyObject *found
    if not 0 <= position <= len(data):
        raise IndexError("a position outside of the batch")
    record = begin + position
    while record < stop:
        at = short_varint(record, stop, &size)
        if at is NULL or size & 1 or size > LONGEST or (size >> 1) > stop - at or size < 2:
            break
        end = at + (size >> 1)
        at = behind_varint(at + 1, end)  # attributes, time
        if at is NULL:
            break
        at = behind_varint(at, end)  # offset
        if at is NULL:
            break
        at = short_varint(at, end, &size)
        if at is NULL or size & 1 or (size >> 1) > end - at:
            break
        key_end = at + (size >> 1)
        # type 1 and a group of at most 255 bytes, a plain value, no headers
        value_size = end - key_end - 2
        if not is_plain(key_end, value_size) or (end - 1)[0]:
            break
        if key_end - at < 4 or at[0] or at[1] != 1 or at[2]:
            break
        name_size = at[3]
        at += 4
        if name_size > key_end - at:
            break
        partition = PyBytes_FromStringAndSize(<const char *>at + name_size, key_end - at - name_size)
        found = PyDict_GetItem(known, partition)
        if found is NULL:
            if not is_ascii(at, name_size) or not learn(partition, known):
                break
            found = PyDict_GetItem(known, partition)
            if found is NULL:
                raise KeyError(partition)
        if name_size != group_size or memcmp(at, group, name_size):
            if not is_ascii(at, name_size):
                break
            name = (<const char *>at)[:name_size].decode("ascii")
            offsets = by_group.get(name)
            if offsets is None:
                by_group[name] = offsets = {}
            group, group_size = at, name_size
        PyDict_SetItem(
            offsets, <object>found, PyBytes_FromStringAndSize(<const char *>key_end + 1, value_size)
        )
        record = end
        taken += 1
    return record - begin, taken
