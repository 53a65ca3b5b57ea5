# cython: language_level=3, wraparound=False, cdivision=True, initializedcheck=False
"""The records of a whole batch in C: what ``records`` and ``log._record_walk`` find in them one by one.

The bytes come from outside. Each is looked at only after a check that it is there. What is wrong with records that
are not whole is for Python to find out, and times that add up to more than 64 bits are left to it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.long cimport PyLong_FromLongLong
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    RECORD_NUMBERS = 8
    HEADER_NUMBERS = 4
    LEAST_SIZE = 7  # of a record: seven fields of one byte
    LEAST_HEADER = 2
    # bits before the last byte of a number of 32 and of 64 bits
    INT = 28
    LONG = 63

#: Times from here on may add up to more than 64 bits.
cdef int64_t FAR = <int64_t>1 << 62


cdef struct Record:
    int64_t later_ms, delta
    int64_t key_size, value_size  # -1 for null
    const uint8_t *key
    const uint8_t *value
    const uint8_t *headers
    const uint8_t *end


cdef inline const uint8_t *number_at(
    const uint8_t *at, const uint8_t *end, int most_shift, int64_t *number
) noexcept nogil:
    """Position after a zigzag varint; NULL where it does not end before ``end``, or is longer."""
    cdef uint64_t raw, byte
    cdef int shift = 7
    if at >= end:
        return NULL
    raw = at[0]
    at += 1
    if raw >= 0x80:
        raw &= 0x7F
        while True:
            if at >= end or shift > most_shift:
                return NULL
            byte = at[0]
            at += 1
            raw |= (byte & 0x7F) << shift  # bits that are too many fall off
            if byte < 0x80:
                break
            shift += 7
        if most_shift == INT:
            raw = <uint32_t>raw
    number[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return at


cdef inline const uint8_t *field_at(
    const uint8_t *at, const uint8_t *end, int64_t *size, const uint8_t **content
) noexcept nogil:
    """Position after a field with its size in front; NULL where it does not end before ``end``."""
    at = number_at(at, end, INT, size)
    if at is NULL:
        return NULL
    content[0] = at
    if size[0] < 0:
        size[0] = -1
        return at
    return at + size[0] if size[0] <= end - at else NULL


cdef inline bint find_record(const uint8_t *at, const uint8_t *stop, Record *record) noexcept nogil:
    """Whether there is a whole record at ``at``; its headers are not looked at."""
    cdef int64_t length = 0
    at = number_at(at, stop, INT, &length)
    if at is NULL or length < 1 or length > stop - at:
        return False
    record.end = at + length
    at = number_at(at + 1, record.end, LONG, &record.later_ms)
    if at is NULL:
        return False
    at = number_at(at, record.end, INT, &record.delta)
    if at is NULL:
        return False
    at = field_at(at, record.end, &record.key_size, &record.key)
    if at is NULL:
        return False
    at = field_at(at, record.end, &record.value_size, &record.value)
    record.headers = at
    return at is not NULL and at < record.end


cdef inline const uint8_t *header_at(
    const uint8_t *at,
    const uint8_t *end,
    int64_t *name_size,
    const uint8_t **name,
    int64_t *size,
    const uint8_t **content,
) noexcept nogil:
    """Position after a header; NULL where there is no whole one with a name."""
    at = field_at(at, end, name_size, name)
    if at is NULL or name_size[0] < 0:
        return NULL
    return field_at(at, end, size, content)


cdef inline int64_t count_headers(const uint8_t *at, const uint8_t *end, const uint8_t **first) noexcept nogil:
    """Number of headers from ``at`` to ``end``, which they must fill, or -1; ``first`` is where they begin."""
    cdef int64_t count = 0, i, size = 0, name_size = 0
    cdef const uint8_t *name = NULL
    cdef const uint8_t *content = NULL
    at = number_at(at, end, INT, &count)
    if at is NULL or count < 0 or count > (end - at) // LEAST_HEADER:
        return -1
    first[0] = at
    for i in range(count):
        at = header_at(at, end, &name_size, &name, &size, &content)
        if at is NULL:
            return -1
    return count if at == end else -1


def check_records(bytes data not None, Py_ssize_t position, Py_ssize_t number, Py_ssize_t most):
    """Walk over up to ``most`` whole records from ``position`` on, of which the first is the ``number``-th.

    Return the position of the first that is not, how many there were before it, their least and greatest
    timestamp delta, whether one has no key, and whether an offset delta is not its record's number.
    """
    cdef const uint8_t *begin = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef const uint8_t *stop = begin + len(data)
    cdef const uint8_t *at
    cdef const uint8_t *first = NULL
    cdef Record record
    cdef Py_ssize_t taken = 0
    cdef int64_t oldest = 0, newest = 0
    cdef bint keyless = False, unordered = False
    if not 0 <= position <= len(data):
        raise IndexError("a position outside of the batch")
    at = begin + position
    with nogil:
        while taken < most and find_record(at, stop, &record):
            # most have no headers
            if record.headers[0] or record.headers + 1 != record.end:
                if count_headers(record.headers, record.end, &first) < 0:
                    break
            if not taken:
                oldest = newest = record.later_ms
            elif record.later_ms < oldest:
                oldest = record.later_ms
            elif record.later_ms > newest:
                newest = record.later_ms
            keyless |= record.key_size < 0
            unordered |= record.delta != number + taken
            taken += 1
            at = record.end
    return at - begin, taken, oldest, newest, keyless, unordered


cdef inline object cut(const uint8_t *content, int64_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char *>content, size)


cdef list read_headers(const uint8_t *at, const uint8_t *end, int64_t count):
    cdef list found = []
    cdef int64_t i, name_size = 0, size = 0
    cdef const uint8_t *name = NULL
    cdef const uint8_t *content = NULL
    for i in range(count):
        at = header_at(at, end, &name_size, &name, &size, &content)
        found.append((PyUnicode_DecodeUTF8(<char *>name, name_size, "replace"), cut(content, size)))
    return found


def read_records(
    data,
    Py_ssize_t count,
    base_offset,
    base_ms,
    append_ms,
    list offsets not None,
    list timestamps_ms not None,
    list keys not None,
    list values not None,
    list headers not None,
):
    """``records.read_records``; false, and nothing is added, where that must find out what the bytes are."""
    cdef Py_buffer buffer
    cdef const uint8_t *at
    cdef const uint8_t *stop
    cdef const uint8_t *first = NULL
    cdef Record record
    cdef Py_ssize_t i, before = len(offsets), headers_before = len(headers)
    cdef int64_t header_count, base, base_time, last_time = 0
    cdef object time = append_ms
    if not -FAR < base_offset < FAR or not -FAR < base_ms < FAR:
        return False
    base, base_time = base_offset, base_ms
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    try:
        at = <const uint8_t *>buffer.buf
        stop = at + buffer.len
        if 0 <= count <= buffer.len // LEAST_SIZE:
            for i in range(count):
                if not find_record(at, stop, &record):
                    break
                if record.headers[0] or record.headers + 1 != record.end:
                    header_count = count_headers(record.headers, record.end, &first)
                    if header_count < 0:
                        break
                    if header_count:
                        headers.extend([()] * (before + i - len(headers)))
                        headers.append(read_headers(first, record.end, header_count))
                at = record.end
                if not -FAR < record.later_ms < FAR:
                    break
                if append_ms is None and (time is None or record.later_ms != last_time):
                    last_time = record.later_ms
                    time = PyLong_FromLongLong(base_time + last_time)
                offsets.append(PyLong_FromLongLong(base + record.delta))
                timestamps_ms.append(time)
                keys.append(cut(record.key, record.key_size))
                values.append(cut(record.value, record.value_size))
            else:
                if at == stop:
                    return True
    finally:
        PyBuffer_Release(&buffer)
    del offsets[before:], timestamps_ms[before:], keys[before:], values[before:], headers[headers_before:]
    return False


def locate_records(data, Py_ssize_t start, batches):
    """``records.locate_records``; None where that must find out what the bytes are."""
    cdef Py_buffer buffer
    cdef const uint8_t *begin
    cdef const uint8_t *at
    cdef const uint8_t *stop
    cdef Record record
    cdef Py_ssize_t i, size, count, total = 0, room
    cdef int64_t *out
    cdef list pieces = []
    for size, count in batches:
        if size < 0 or not 0 <= count <= size // LEAST_SIZE:
            return None
        total += count
        pieces.append((size, count))
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    try:
        if not 0 <= start <= buffer.len:
            raise IndexError("a position outside of the data")
        begin = <const uint8_t *>buffer.buf
        at = begin + start
        room = buffer.len - start
        numbers = PyBytes_FromStringAndSize(NULL, RECORD_NUMBERS * total * sizeof(int64_t))
        out = <int64_t *>PyBytes_AS_STRING(numbers)
        for size, count in pieces:
            if size > room:
                return None
            room -= size
            stop = at + size
            for i in range(count):
                if not find_record(at, stop, &record):
                    return None
                out[0] = record.later_ms
                out[total] = record.delta
                out[2 * total] = record.key - begin
                out[3 * total] = record.key_size
                out[4 * total] = record.value - begin
                out[5 * total] = record.value_size
                out[6 * total] = record.headers - begin
                out[7 * total] = record.end - begin
                out += 1
                at = record.end
            if at != stop:
                return None
        return numbers
    finally:
        PyBuffer_Release(&buffer)


def locate_headers(data, bytes places not None, bytes ends not None):
    """``records.locate_headers``; None where that must find out what the bytes are."""
    cdef Py_buffer buffer
    cdef const uint8_t *begin
    cdef const uint8_t *at
    cdef const uint8_t *end
    cdef const uint8_t *name = NULL
    cdef const uint8_t *content = NULL
    cdef const uint8_t *first = NULL
    cdef const int64_t *starts = <const int64_t *>PyBytes_AS_STRING(places)
    cdef const int64_t *stops = <const int64_t *>PyBytes_AS_STRING(ends)
    cdef int64_t *out
    cdef int64_t *count
    cdef int64_t nth, total = 0, name_size = 0, size = 0
    cdef Py_ssize_t i, records = len(places) // <Py_ssize_t>sizeof(int64_t)
    if len(places) != len(ends):
        raise ValueError("places without ends")
    PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE)
    try:
        begin = <const uint8_t *>buffer.buf
        counts = PyBytes_FromStringAndSize(NULL, records * sizeof(int64_t))
        count = <int64_t *>PyBytes_AS_STRING(counts)
        for i in range(records):
            if not 0 <= starts[i] <= stops[i] <= buffer.len:
                raise IndexError("a position outside of the data")
            count[i] = count_headers(begin + starts[i], begin + stops[i], &first)
            if count[i] < 0:
                return None
            total += count[i]
        numbers = PyBytes_FromStringAndSize(NULL, HEADER_NUMBERS * total * sizeof(int64_t))
        out = <int64_t *>PyBytes_AS_STRING(numbers)
        for i in range(records):
            end = begin + stops[i]
            at = number_at(begin + starts[i], end, INT, &size)
            for nth in range(count[i]):
                at = header_at(at, end, &name_size, &name, &size, &content)
                out[0], out[1] = name - begin, name_size
                out[2], out[3] = content - begin, size
                out += HEADER_NUMBERS
        return counts, numbers
    finally:
        PyBuffer_Release(&buffer)
