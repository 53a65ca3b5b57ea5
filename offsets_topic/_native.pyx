# cython: language_level=3, wraparound=False, cdivision=True, initializedcheck=False
"""Plain commits in C: those of a batch (``_encoded._take_plain_commits``), those to write
(``records.encode_all``), and what becomes of them in memory (``_commits``).

The bytes come from a file. Each is looked at only after a check that it is there, and whatever is not exactly
a plain commit is left to the careful reader, or writer. Layouts: ``protocol/records.py``, ``records.py`` and
``_encoded.py``.
"""

from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
)
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from "Python.h":
    # these raise, but only for what is neither an int nor a str
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    void PyObject_GC_UnTrack(PyObject *one)

ctypedef object (*make)(object kind, object arguments, PyObject *by_name)

cdef enum:
    NO_EXPIRY = -1
    VALUE_SIZE = 24  # of a value of version 3 without metadata
    VALUE_WITH_ID_SIZE = 42  # of one of version 4 with a topic id
    LONGEST = 0x3FFF  # record whose length is a varint of at most two bytes
    COMMIT_FIELDS = 9
    ID_SIZE = 16
    LONGEST_NAME = 0x7FFF


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


cdef inline bint has_number(object number, int64_t least, int64_t most, int64_t *found) noexcept:
    cdef int overflow = 0
    if not PyLong_CheckExact(number):
        return False
    found[0] = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and least <= found[0] <= most


cdef inline uint8_t *put(uint8_t *at, uint64_t number, int size) noexcept:
    """Write an integer of ``size`` bytes, the highest first."""
    cdef int i
    for i in range(size):
        at[i] = <uint8_t>(number >> 8 * (size - 1 - i))
    return at + size


cdef inline uint8_t *put_text(uint8_t *at, const char *text, Py_ssize_t size) noexcept:
    at = put(at, size, 2)
    memcpy(at, text, size)
    return at + size


cdef tuple encode_plain(tuple commit):
    """Key and value of a commit without metadata and expiry; None where it is another, or no record has room."""
    cdef const char *group
    cdef const char *topic
    cdef Py_ssize_t group_size = 0, topic_size = 0
    cdef int64_t partition = 0, offset = 0, epoch = 0, committed_ms = 0, expires_ms = 0
    cdef bint has_id
    cdef uint8_t *at
    if len(commit) != COMMIT_FIELDS or type(commit[0]) is not str or type(commit[1]) is not str:
        return None
    # not those with lone surrogates, which have no UTF-8
    if not commit[0].isascii() or not commit[1].isascii() or type(commit[5]) is not str or commit[5]:
        return None
    if (
        not has_number(commit[2], INT32_MIN, INT32_MAX, &partition)
        or not has_number(commit[3], INT64_MIN, INT64_MAX, &offset)
        or not has_number(commit[4], INT32_MIN, INT32_MAX, &epoch)
        or not has_number(commit[6], INT64_MIN, INT64_MAX, &committed_ms)
        or not has_number(commit[7], -1, -1, &expires_ms)
    ):
        return None
    topic_id = commit[8]
    if not PyBytes_CheckExact(topic_id):
        return None
    has_id = PyBytes_GET_SIZE(topic_id) > 0
    if has_id and PyBytes_GET_SIZE(topic_id) != ID_SIZE:
        return None
    group = PyUnicode_AsUTF8AndSize(commit[0], &group_size)
    topic = PyUnicode_AsUTF8AndSize(commit[1], &topic_size)
    if group_size > LONGEST_NAME or topic_size > LONGEST_NAME:
        return None
    key = PyBytes_FromStringAndSize(NULL, 10 + group_size + topic_size)
    at = put(<uint8_t *>PyBytes_AS_STRING(key), 1, 2)
    at = put_text(put_text(at, group, group_size), topic, topic_size)
    put(at, <uint64_t>partition, 4)
    value = PyBytes_FromStringAndSize(NULL, VALUE_WITH_ID_SIZE if has_id else VALUE_SIZE)
    at = put(<uint8_t *>PyBytes_AS_STRING(value), 4 if has_id else 3, 2)
    at = put(put(at, <uint64_t>offset, 8), <uint64_t>epoch, 4)
    # no metadata: a compact length, or one of 2 bytes
    at = put(put(at, 1, 1) if has_id else put(at, 0, 2), <uint64_t>committed_ms, 8)
    if has_id:
        at = put(at, 0x010010, 3)  # one tagged field: 0, of 16 bytes
        memcpy(at, PyBytes_AS_STRING(topic_id), ID_SIZE)
    return key, value


def encode_commits(records, plain, encode):
    """``records.encode_all``. Plain commits are of this type; ``encode`` is for each other record."""
    cdef list pairs = []
    cdef Py_ssize_t size = 0
    cdef tuple pair
    for record in records:
        pair = None
        if type(record) is plain and PyTuple_Check(record):
            pair = encode_plain(<tuple>record)
        if pair is None:
            pair = encode(record)
        pairs.append(pair)
        size += len(pair[0]) + (0 if pair[1] is None else len(pair[1]))
    return pairs, size


# --- what is committed (``_commits``) -----------------------------------------------------------------------


def commits_again(kind, group, list places not None, tuple numbers not None, committed_ms):
    """``_commits.commits_again``: records of this type."""
    cdef make new = <make>(<PyTypeObject *>tuple).tp_new  # tuple.__new__
    cdef list records = []
    cdef Py_ssize_t i
    if 2 * len(places) != len(numbers):
        raise ValueError("an offset and a leader epoch for each partition")
    for i in range(len(places)):
        topic, number, topic_id = places[i]
        fields = (
            group, topic, number, numbers[2 * i], numbers[2 * i + 1], "", committed_ms, NO_EXPIRY, topic_id
        )
        records.append(new(kind, (fields,), NULL))
    return records


cdef inline object item(record, Py_ssize_t at):
    return <object>PyTuple_GET_ITEM(record, at)


def enter_commits(records, record_offset, dict by_group not None, dict known not None, learn, entry):
    """``_commits.enter_commits``."""
    cdef make new = <make>(<PyTypeObject *>tuple).tp_new
    cdef int64_t place = record_offset
    cdef dict offsets = None
    cdef object offsets_of = None
    cdef PyObject *found
    for record in records:
        if not PyTuple_Check(record) or PyTuple_GET_SIZE(record) != COMMIT_FIELDS:
            raise ValueError("no committed offset")
        group, topic, number = item(record, 0), item(record, 1), item(record, 2)
        if group is not offsets_of:
            offsets = by_group.get(group)
            if offsets is None:
                by_group[group] = offsets = {}
            offsets_of = group
        found = PyDict_GetItem(known, (topic, number))
        key = learn(topic, number) if found is NULL else <object>found
        fields = (
            item(record, 3), item(record, 4), item(record, 5), item(record, 6), item(record, 7), place,
            item(record, 8),
        )
        made = new(entry, (fields,), NULL)
        PyObject_GC_UnTrack(<PyObject *>made)  # texts, bytes and numbers: it is in no cycle
        offsets[key] = made
        place += 1
