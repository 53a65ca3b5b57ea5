# cython: language_level=3, wraparound=False, cdivision=True, initializedcheck=False
"""The records of a whole batch in C: what ``records`` and ``log._record_walk`` find in them one by one, what
``_batch`` writes of them, and what ``rows`` makes of the rows of a table; and ``_layout``'s look at a commit.

The bytes come from outside. Each is looked at only after a check that it is there. What is wrong with records that
are not whole is for Python to find out, and times that add up to more than 64 bits are left to it. Layouts: ``records.py`` and ``rows.py``.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE, PyByteArray_Resize
)
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
)
from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    RECORD_NUMBERS = 8
    HEADER_NUMBERS = 4
    LEAST_SIZE = 7  # of a record: seven fields of one byte
    LEAST_HEADER = 2
    LARGE = 1 << 30  # what is longer is left to Python
    NUMBERS_SIZE = 12  # of an offset and a leader epoch
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


cdef class View:
    """A buffer that is held until nobody needs it."""

    cdef Py_buffer buffer

    def __cinit__(self, data, bint writable=False):
        PyObject_GetBuffer(data, &self.buffer, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)


def copy_fields(data, at, sizes, out):
    """``records.copy_fields``."""
    cdef View source = View(data), places = View(at), lengths = View(sizes), target = View(out, True)
    cdef const int64_t *starts = <const int64_t *>places.buffer.buf
    cdef const int64_t *bytes_of = <const int64_t *>lengths.buffer.buf
    cdef uint8_t *to = <uint8_t *>target.buffer.buf
    cdef int64_t room = target.buffer.len
    cdef Py_ssize_t i
    if places.buffer.len != lengths.buffer.len:
        raise ValueError("places without sizes")
    for i in range(places.buffer.len // <Py_ssize_t>sizeof(int64_t)):
        if bytes_of[i] <= 0:
            continue
        if bytes_of[i] > room or not 0 <= starts[i] <= source.buffer.len - bytes_of[i]:
            raise IndexError("a field outside of the data")
        memcpy(to, <const uint8_t *>source.buffer.buf + starts[i], bytes_of[i])
        to += bytes_of[i]
        room -= bytes_of[i]


# rows of a table as records: ``rows``

cdef enum:
    FILLING_NUMBERS = 3


#: More rows than any memory holds, and few enough to be added up.
cdef int64_t MOST_ROWS = <int64_t>1 << 56


cdef object outside():
    return IndexError("a row outside of its column")


cdef inline int64_t integer(const uint8_t *at, int width) noexcept:
    """A signed number of 4 or 8 bytes, which may lie anywhere."""
    cdef int32_t narrow
    cdef int64_t wide
    if width == 4:
        memcpy(&narrow, at, 4)
        return narrow
    memcpy(&wide, at, 8)
    return wide


cdef class Bits:
    """Which rows of a column are not null."""

    cdef View view
    cdef const uint8_t *bits
    cdef Py_ssize_t first

    def __cinit__(self, validity, Py_ssize_t first, Py_ssize_t count):
        self.first, self.bits = first, NULL
        if first < 0 or count < 0 or first > MOST_ROWS or count > MOST_ROWS:
            raise outside()
        if validity is not None:
            self.view = View(validity)
            self.bits = <const uint8_t *>self.view.buffer.buf
            if first + count > 8 * self.view.buffer.len:
                raise outside()

    cdef inline bint has(self, Py_ssize_t row) noexcept:
        return self.bits is NULL or self.bits[(self.first + row) >> 3] >> ((self.first + row) & 7) & 1


cdef class Bytes:
    """``BytesColumn`` of ``count`` rows."""

    cdef View offsets, data
    cdef Bits valid
    cdef const uint8_t *at
    cdef const uint8_t *content
    cdef int width

    def __cinit__(self, column, Py_ssize_t count):
        offsets, width, data, validity, first = column
        self.valid = Bits(validity, first, count)
        self.offsets, self.data, self.width = View(offsets), View(data), width
        if self.width != 4 and self.width != 8:
            raise ValueError("offsets have 4 or 8 bytes")
        if count and self.valid.first + count + 1 > self.offsets.buffer.len // self.width:
            raise outside()
        self.at = <const uint8_t *>self.offsets.buffer.buf + self.valid.first * self.width
        self.content = <const uint8_t *>self.data.buffer.buf

    cdef inline int64_t offset(self, Py_ssize_t row) noexcept:
        return integer(self.at + row * self.width, self.width)

    cdef inline int64_t size(self, Py_ssize_t row, const uint8_t **content) except -2:
        """Bytes of a row, which are at ``content``; -1 for null."""
        cdef int64_t begin, end
        if not self.valid.has(row):
            return -1
        begin, end = self.offset(row), self.offset(row + 1)
        if not 0 <= begin <= end <= self.data.buffer.len:
            raise outside()
        content[0] = self.content + begin
        return end - begin


cdef class Columns:
    """``RowColumns``; a column that is None is null in each row."""

    cdef Py_ssize_t count
    cdef Bytes keys, values, names, contents
    cdef View ends, times
    cdef Bits timed

    def __cinit__(self, rows):
        count, keys, values, headers, times = rows
        self.count = count
        if self.count < 0:
            raise outside()
        self.keys = None if keys is None else Bytes(keys, count)
        self.values = None if values is None else Bytes(values, count)
        if headers is not None and self.count:
            ends, names, contents = headers
            self.ends = View(ends)
            if self.count > self.ends.buffer.len // 4:
                raise outside()
            last = self.end(self.count - 1)
            self.names, self.contents = Bytes(names, last), Bytes(contents, last)
        if times is not None:
            data, validity, first = times
            self.timed, self.times = Bits(validity, first, count), View(data)
            if self.timed.first + self.count > self.times.buffer.len // 8:
                raise outside()

    cdef inline int64_t end(self, Py_ssize_t row) noexcept:
        return integer(<const uint8_t *>self.ends.buffer.buf + 4 * row, 4)

    cdef inline int64_t first_header(self, Py_ssize_t row, int64_t *end) except -1:
        """Number of a row's first header; ``end`` is that behind its last one."""
        cdef int64_t first
        if self.ends is None:
            end[0] = 0
            return 0
        first, end[0] = self.end(row - 1) if row else 0, self.end(row)
        if not 0 <= first <= end[0] <= self.end(self.count - 1):
            raise outside()
        return first

    cdef inline bint has_time(self, Py_ssize_t row, int64_t *time) noexcept:
        if self.timed is None or not self.timed.has(row):
            return False
        time[0] = integer(<const uint8_t *>self.times.buffer.buf + 8 * (self.timed.first + row), 8)
        return True


cdef inline int64_t field_size(Bytes column, Py_ssize_t row, const uint8_t **content) except -2:
    return -1 if column is None else column.size(row, content)


cdef inline int varint_size(int64_t number) noexcept:
    """Bytes of a zigzag varint."""
    cdef uint64_t left = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    cdef int size = 1
    while left >= 0x80:
        left >>= 7
        size += 1
    return size


cdef inline uint8_t *put_number(uint8_t *at, int64_t number) noexcept:
    cdef uint64_t left = (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)
    while left >= 0x80:
        at[0] = <uint8_t>(left | 0x80)
        at += 1
        left >>= 7
    at[0] = <uint8_t>left
    return at + 1


cdef inline int64_t put_size(int64_t size) noexcept:
    """Bytes that a field of ``size`` bytes takes, or null (-1)."""
    return varint_size(size) + (size if size > 0 else 0)


cdef inline uint8_t *put_field(uint8_t *at, const uint8_t *content, int64_t size) noexcept:
    at = put_number(at, size)
    if size > 0:
        memcpy(at, content, size)
        at += size
    return at


def partition_rows(
    Py_ssize_t count, offsets, int width, data, validity, Py_ssize_t first, uint32_t partitions
):
    """``rows.partition_rows`` for a column of keys, as bytes."""
    cdef Bytes keys = Bytes((offsets, width, data, validity, first), count)
    cdef const uint8_t *key = NULL
    cdef int64_t size
    cdef Py_ssize_t row
    cdef int32_t *out
    if not partitions:
        raise ZeroDivisionError("no partitions")
    found = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
    out = <int32_t *>PyBytes_AS_STRING(found)
    for row in range(count):
        size = keys.size(row, &key)
        out[row] = -1 if size < 0 else <int32_t>((murmur2(key, size) & 0x7FFFFFFF) % partitions)
    return found


cdef inline uint32_t murmur2(const uint8_t *key, int64_t size) noexcept:
    """``_murmur2.murmur2``."""
    cdef uint32_t multiplier = 0x5BD1E995, found = <uint32_t>0x9747B28C ^ <uint32_t>size, word
    cdef int64_t left = size
    cdef int shift = 0
    while left >= 4:
        memcpy(&word, key, 4)
        word *= multiplier
        found = (found * multiplier) ^ ((word ^ (word >> 24)) * multiplier)
        key += 4
        left -= 4
    if left:
        word = 0
        while left:
            word |= <uint32_t>key[0] << shift
            key += 1
            shift += 8
            left -= 1
        found = (found ^ word) * multiplier
    found = (found ^ (found >> 13)) * multiplier
    return found ^ (found >> 15)


def encode_rows(
    rows,
    Py_ssize_t start,
    places,
    Py_ssize_t keyless,
    int64_t now_ms,
    list records not None,
    numbers,
    Py_ssize_t full_bytes,
):
    """``rows.encode_rows``."""
    cdef Columns columns = Columns(rows)
    cdef View chosen = View(places), counted = View(numbers, True)
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef const uint8_t *name = NULL
    cdef const uint8_t *content = NULL
    cdef int64_t key_size, value_size, name_size, size, first, end = 0, nth, body, time = 0
    cdef int64_t *number
    cdef uint8_t *at
    cdef Py_ssize_t row, place, before
    cdef object batch
    if start < 0 or columns.count > chosen.buffer.len // 4:
        raise outside()
    if len(records) > counted.buffer.len // (FILLING_NUMBERS * 8):
        raise IndexError("partitions without numbers")
    for row in range(start, columns.count):
        place = integer(<const uint8_t *>chosen.buffer.buf + 4 * row, 4)
        place = keyless if place < 0 else place
        if not 0 <= place < len(records):
            raise IndexError("a partition that is not there")
        number = <int64_t *>counted.buffer.buf + FILLING_NUMBERS * place
        batch = records[place]
        if not isinstance(batch, bytearray):
            raise TypeError("records are a bytearray")
        if not columns.has_time(row, &time):
            time = now_ms
        if time < 0:
            raise ValueError(f"timestamp_ms={time}: it must be whole milliseconds since 1970")
        if not number[0]:
            number[1] = number[2] = time
        key_size = field_size(columns.keys, row, &key)
        value_size = field_size(columns.values, row, &value)
        first = columns.first_header(row, &end)
        body = 1 + varint_size(time - number[1]) + varint_size(number[0])
        body += put_size(key_size) + put_size(value_size) + varint_size(end - first)
        for nth in range(first, end):
            # a name is not null
            name_size = max(columns.names.size(nth, &name), 0)
            body += put_size(name_size) + put_size(columns.contents.size(nth, &content))
        before = PyByteArray_GET_SIZE(batch)
        if before and before + varint_size(body) + body > full_bytes:
            return row
        PyByteArray_Resize(batch, before + varint_size(body) + body)
        at = <uint8_t *>PyByteArray_AS_STRING(batch) + before
        at = put_number(at, body)
        at[0] = 0  # attributes
        at = put_number(at + 1, time - number[1])
        at = put_number(at, number[0])
        at = put_field(at, key, key_size)
        at = put_field(at, value, value_size)
        at = put_number(at, end - first)
        for nth in range(first, end):
            name_size = max(columns.names.size(nth, &name), 0)
            at = put_field(at, name, name_size)
            size = columns.contents.size(nth, &content)
            at = put_field(at, content, size)
        number[0] += 1
        number[2] = max(number[2], time)
    return columns.count


def sum_rows(rows, seeds):
    """``rows.sum_rows``."""
    cdef Columns columns = Columns(rows)
    cdef View begun = View(seeds)
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef const uint8_t *content = NULL
    cdef int64_t key_size, value_size, size, first, end = 0, nth, time = 0
    cdef uint64_t total = 0
    cdef uint32_t check
    cdef char number[32]
    cdef Py_ssize_t row
    if columns.count > begun.buffer.len // 4:
        raise outside()
    for row in range(columns.count):
        memcpy(&check, <const uint8_t *>begun.buffer.buf + 4 * row, 4)
        key_size = field_size(columns.keys, row, &key)
        value_size = field_size(columns.values, row, &value)
        first = columns.first_header(row, &end)
        for nth in range(first, end):
            size = max(columns.names.size(nth, &content), 0)
            check = crc32(check, content, size)
            size = columns.contents.size(nth, &content)
            check = crc32(check, <uint8_t *>number, snprintf(number, sizeof(number), "h%lld", <long long>size))
            check = crc32(check, content, max(size, 0))
        if columns.has_time(row, &time):
            check = crc32(check, <uint8_t *>number, snprintf(number, sizeof(number), "t%lld", <long long>time))
        check = crc32(crc32(check, key, max(key_size, 0)), value, max(value_size, 0)) ^ <uint32_t>(value_size < 0)
        total += <uint64_t>check + (<uint64_t>key_size << 32)
    return total


#: CRC-32 of zlib, four bytes at a time: what a byte makes of a sum, with no to three bytes behind it.
cdef uint32_t CRC_OF[4][256]


cdef void fill_crc_table() noexcept:
    cdef uint32_t check
    cdef int byte, bit, behind
    for byte in range(256):
        check = byte
        for bit in range(8):
            check = (check >> 1) ^ (<uint32_t>0xEDB88320 if check & 1 else <uint32_t>0)
        CRC_OF[0][byte] = check
    for byte in range(256):
        for behind in range(1, 4):
            check = CRC_OF[behind - 1][byte]
            CRC_OF[behind][byte] = (check >> 8) ^ CRC_OF[0][check & 0xFF]


fill_crc_table()


cdef inline uint32_t crc32(uint32_t check, const uint8_t *data, int64_t size) noexcept:
    check = ~check
    while size >= 4:
        check ^= data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        check = (
            CRC_OF[3][check & 0xFF] ^ CRC_OF[2][(check >> 8) & 0xFF]
            ^ CRC_OF[1][(check >> 16) & 0xFF] ^ CRC_OF[0][check >> 24]
        )
        data += 4
        size -= 4
    while size > 0:
        check = (check >> 8) ^ CRC_OF[0][(check ^ data[0]) & 0xFF]
        data += 1
        size -= 1
    return ~check


# a batch of a coordinator: ``_batch``


cdef inline bint field_of(object field, const uint8_t **content, int64_t *size) noexcept:
    """Whether a key or value is bytes, or null (-1)."""
    if field is None:
        size[0] = -1
        return True
    if not PyBytes_CheckExact(field) or PyBytes_GET_SIZE(field) > LARGE:
        return False
    content[0] = <const uint8_t *>PyBytes_AS_STRING(field)
    size[0] = PyBytes_GET_SIZE(field)
    return True


cdef inline int64_t body_size(int64_t delta, int64_t key_size, int64_t value_size) noexcept:
    """Bytes of a record without headers behind its length."""
    return 3 + varint_size(delta) + put_size(key_size) + put_size(value_size)


def join_records(records, Py_ssize_t room):
    """``_batch._join_records`` with ``room`` bytes in front, for records that are keys and values in bytes; None
    where that must find out what they are.
    """
    cdef const uint8_t *key = NULL
    cdef const uint8_t *value = NULL
    cdef int64_t key_size = 0, value_size = 0, total = room, body
    cdef Py_ssize_t delta, count
    cdef tuple pairs, pair
    cdef uint8_t *at
    if type(records) is not tuple and type(records) is not list or room < 0:
        return None
    # a tuple: nobody changes it between the two looks at it
    pairs = tuple(records)
    count = len(pairs)
    for delta in range(count):
        record = pairs[delta]
        if type(record) is not tuple:
            return None
        pair = <tuple>record
        if len(pair) != 2 or not field_of(pair[0], &key, &key_size) or not field_of(pair[1], &value, &value_size):
            return None
        body = body_size(delta, key_size, value_size)
        total += varint_size(body) + body
    if total > LARGE:
        return None
    out = PyByteArray_FromStringAndSize(NULL, total)
    at = <uint8_t *>PyByteArray_AS_STRING(out)
    memset(at, 0, room)
    at += room
    for delta in range(count):
        pair = <tuple>pairs[delta]
        field_of(pair[0], &key, &key_size)
        field_of(pair[1], &value, &value_size)
        at = put_number(at, body_size(delta, key_size, value_size))
        at[0] = at[1] = 0  # attributes, timestamp delta
        at = put_number(at + 2, delta)
        at = put_field(at, key, key_size)
        at = put_field(at, value, value_size)
        at[0] = 0  # headers
        at += 1
    return out


# a commit that comes again: ``_layout``


cdef inline uint64_t big_endian(const uint8_t *at, int size) noexcept:
    cdef uint64_t found = 0
    cdef int i
    for i in range(size):
        found = found << 8 | at[i]
    return found


def read_numbers(bytes data not None, Py_ssize_t start, bytes fixed not None, bytes places not None):
    """``CommitLayout.numbers`` of the bytes from ``start`` on. ``fixed`` is such a body, in which the numbers are at
    ``places``, in ascending order.
    """
    cdef Py_ssize_t size = len(fixed), count = len(places) // <Py_ssize_t>sizeof(int32_t), i, behind = 0
    cdef const uint8_t *known = <const uint8_t *>PyBytes_AS_STRING(fixed)
    cdef const uint8_t *body
    cdef const int32_t *place = <const int32_t *>PyBytes_AS_STRING(places)
    if not 0 <= start <= len(data) or len(data) - start != size:
        return None
    body = <const uint8_t *>PyBytes_AS_STRING(data) + start
    for i in range(count):
        if not behind <= place[i] <= size - NUMBERS_SIZE:
            raise IndexError("numbers outside of the body")
        if memcmp(body + behind, known + behind, place[i] - behind):
            return None
        behind = place[i] + NUMBERS_SIZE
    if memcmp(body + behind, known + behind, size - behind):
        return None
    numbers = PyTuple_New(2 * count)
    for i in range(count):
        number = PyLong_FromLongLong(<int64_t>big_endian(body + place[i], 8))
        Py_INCREF(number)
        PyTuple_SET_ITEM(numbers, 2 * i, number)
        number = PyLong_FromLongLong(<int32_t>big_endian(body + place[i] + 8, 4))
        Py_INCREF(number)
        PyTuple_SET_ITEM(numbers, 2 * i + 1, number)
    return numbers
