"""Decodes frames of the codec pyramid by the letter of compress/FORMAT.md, slowly, with nothing but the standard library.

usage: pyramid.py FOLDER

FOLDER holds frames NAME.pyr and the values expected of each, NAME.bin: little-endian doubles or singles.
"""

import math
import pathlib
import struct
import sys

from checksums import crc32c
from words import Damaged, bits_of, require, signed, single_bits_of

HEADER, CELL, TOTAL, SYMBOLS, STATES, LEAST = 96, 128, 4096, 64, 16, 1 << 16
HEAD = STATES
PREDICTOR, LOUDNESS, CODES, TABLES = 0, 1, 7, 27
LOUD, CONTEXTS, ESCAPE = 18, 6, 63
LINEAR, CUBIC, QUINTIC = range(3)
REPEATED, NOTHING = 21, 24


def product(numbers):
    found = 1
    for number in numbers:
        found *= number
    return found


def wrapped(number):
    return signed(number, 32)


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(self.at + count <= len(self.data), "part ends early")
        self.at += count
        return self.data[self.at - count : self.at]

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def finish(self):
        require(self.at == len(self.data), "part continues")


def read_table(source):
    """Symbol, share and place within the symbol of each of the 4096 parts."""
    (mask,) = source.unpack("<Q")
    symbols = [symbol for symbol in range(SYMBOLS) if mask >> symbol & 1]
    require(symbols, "no symbol")
    others = len(symbols) - 1
    packed = int.from_bytes(source.take((others * 3 + 1) // 2), "little")
    shares = [(packed >> 12 * i & 4095) + 1 for i in range(others)]
    require(packed >> 12 * others == 0, "padding of a table")
    shares.append(TOTAL - sum(shares))
    require(shares[-1] > 0, "shares")
    return [(s, f, place) for s, f in zip(symbols, shares) for place in range(f)]


class Bits:
    """Numbers of some bits each, the lowest bit first."""

    def __init__(self, data):
        self.left, self.count = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, count):
        require(count <= self.count, "tables end early")
        found = self.left & (1 << count) - 1
        self.left, self.count = self.left >> count, self.count - count
        return found

    def finish(self):
        require(self.left == 0 and self.count < 8, "tables continue")


def read_packed_table(bits):
    """The same of version 3."""
    fineness, rest, last = 2 << bits.take(2), bits.take(3), bits.take(6)
    levels = [bits.take(8)]
    for _ in range(last):
        ones = 0
        while bits.take(1):
            ones += 1
            require(ones < 256 << 1, "difference")
        folded = ones << rest | bits.take(rest)
        levels.append(levels[-1] + unfolded(folded))
    require(levels[-1] > 0 and all(0 <= level <= 12 * fineness + 1 for level in levels), "levels")
    weights = [weight(level - 1, fineness) if level else 0 for level in levels]
    n = sum(weights)
    shares = [max((TOTAL * g + n // 2) // n, 1) if g else 0 for g in weights]
    while (much := sum(shares) - TOTAL) != 0:
        largest = max(range(len(shares)), key=lambda s: (shares[s], s))
        shares[largest] -= min(much, shares[largest] // 2)
    return [(s, f, place) for s, f in enumerate(shares) for place in range(f)]


def weight(above, fineness):
    """2^(16 + part / fineness), rounded down, by whole numbers."""
    doublings, part = divmod(above, fineness)
    root = root_of(1 << 16 * fineness + part, fineness)
    return (root << doublings) >> 4


def root_of(number, power):
    """The root of a power of two, rounded down."""
    while power > 1:
        number, power = math.isqrt(number), power // 2
    return number


def unfolded(z):
    return z >> 1 if z % 2 == 0 else -(z + 1) // 2


class Stream:
    def __init__(self, version, tables, rest, words, low_bits, escapes):
        tables, rest = Bytes(tables), Bytes(rest)
        (mask,) = tables.unpack("<I")
        require(mask >> TABLES == 0, "tables")
        read = read_table
        if version == 3:
            tables, read = Bits(tables.take(len(tables.data) - 4)), read_packed_table
        self.tables = [read(tables) if mask >> table & 1 else None for table in range(TABLES)]
        tables.finish()
        self.states = list(rest.unpack(f"<{STATES + 1}I"))
        require(words % 2 == 0, "words")
        self.words = list(rest.unpack(f"<{words // 2}H"))
        self.words.reverse()
        self.used, self.used_by_heads = 0, 0
        self.low_bits, self.escapes = Bytes(rest.take(low_bits)), Bytes(rest.take(escapes))
        rest.finish()
        self.loudness = 0

    def word(self, state):
        require(self.used + self.used_by_heads < len(self.words), "words end early")
        if state == HEAD:
            self.used_by_heads += 1
            return self.words[self.used_by_heads - 1]
        self.used += 1
        return self.words[-self.used]

    def symbol(self, table, state=HEAD):
        require(self.tables[table] is not None, "a table is missing")
        x = self.states[state]
        symbol, share, place = self.tables[table][x % TOTAL]
        x = share * (x // TOTAL) + place
        if x < LEAST:
            x = x << 16 | self.word(state)
        self.states[state] = x & 0xFFFFFFFF
        return symbol

    def cell(self, count):
        """The symbol of the predictor, and the codes."""
        predictor = self.symbol(PREDICTOR)
        self.loudness = self.symbol(LOUDNESS + min(-(-self.loudness // 5), CONTEXTS - 1))
        if self.loudness == 0:
            return predictor, [0] * count
        log = self.loudness - 1
        table, low = (log, 0) if log < LOUD else (LOUD + log % 2, (log - LOUD) // 2 + 1)
        symbols = [self.symbol(CODES + table, i % STATES) for i in range(count)]
        packed = int.from_bytes(self.low_bits.take((count * low + 7) // 8), "little")
        folded = [symbol << low | packed >> low * i & (1 << low) - 1 for i, symbol in enumerate(symbols)]
        folded = [self.escape() if symbol == ESCAPE else z for symbol, z in zip(symbols, folded)]
        return predictor, [unfolded(z) for z in folded]

    def escape(self):
        folded = 0
        for shift in range(0, 35, 7):
            (byte,) = self.escapes.take(1)
            folded |= (byte & 127) << shift
            if byte < 128:
                require(folded < 1 << 32, "escape")
                return folded
        raise Damaged("escape")

    def finish(self):
        require(self.states == [LEAST] * (STATES + 1), "states")
        require(self.used + self.used_by_heads == len(self.words), "words continue")
        for part in (self.low_bits, self.escapes):
            part.finish()


SPACING = 1 << 16


class Axis:
    """The points of an axis at a level. The last two of them are `last` apart."""

    def __init__(self, version, extent, last, halved):
        self.extent = extent
        self.odd = extent // 2 if version == 2 or extent == 2 else (extent - 1) // 2
        self.end = 2 * SPACING if version == 2 else last if extent % 2 == 0 else SPACING + last
        self.next = self.end // 2
        if not halved:
            self.odd, self.next = 0, last

    def count(self, parity):
        return self.odd if parity else self.extent - self.odd

    def uneven_end(self):
        return self.end if self.extent > 2 and self.end != 2 * SPACING else None

    def place(self, i):
        """Parity and coordinate in the class."""
        return (i % 2, i // 2) if i < 2 * self.odd else (0, i - self.odd)


def class_extents(axes, parity):
    return [axis.count(parity >> a & 1) for a, axis in enumerate(axes)]


def pyramid(version, grid, delays):
    """The axes of each level, the finest first."""
    found, axes = [], [(extent, SPACING) for extent in grid]
    while any(extent > 1 for extent, _ in axes):
        long = [a for a in range(3) if axes[a][0] > 1]
        halved = [a for a in long if delays[a] <= len(found)] or long
        found.append([Axis(version, extent, last, a in halved) for a, (extent, last) in enumerate(axes)])
        axes = [(axis.count(0), axis.next) for axis in found[-1]]
    return found


def nearest(x, y):
    return (2048 * x + y) // (2 * y)


def weighted(x, weight):
    return wrapped(x * weight + 512 >> 10)


def at_uneven_end(order, r, line, i, after):
    """The prediction near an end whose last two points are r apart; None where that of any row is meant."""
    o, d = SPACING, max(r - SPACING, 0)
    if after == 1 and (order == LINEAR or i == 0):
        u, v, w = nearest(o, o + d), 0, 0
    elif after == 1:
        u, v, w = nearest(3 * o * o, (o + d) * (3 * o + d)), nearest(d, 2 * (3 * o + d)), 0
    elif after == 2 and order != LINEAR and i > 0 and r >= o:
        w = -nearest(3 * o**3, (4 * o + r) * (2 * o + r) * r)
        u, v = nearest(3 * (o + r), 8 * r) + w, nearest(o + r, 8 * (4 * o + r))
    else:
        return None
    p = line[i] + weighted(wrapped(line[i + 1] - line[i]), u)
    p += weighted(wrapped(line[i] - line[i - 1]), v) if v else 0
    p += weighted(wrapped(line[i + 2] - line[i + 1]), w) if w else 0
    return wrapped(p)


def along(order, line, i, end):
    """The prediction between points i and i + 1 of a line, whose last two may be `end` apart."""
    after = len(line) - 1 - i
    a = line[i]
    if end is not None:
        found = at_uneven_end(order, end, line, i, after)
        if found is not None:
            return found
        if after == 2 and order != LINEAR:
            b = line[i + 1]
            bend = wrapped(2 * a - b - line[i - 1] + 2) >> 2 if i > 0 else 0
            return wrapped(wrapped(a + b) + bend + 1) >> 1
        order = CUBIC if after == 3 and order == QUINTIC else order
    if after == 0:
        return a if i == 0 else wrapped(a + (wrapped(a - line[i - 1]) + 1 >> 1))
    b = line[i + 1]
    near = wrapped(a + b)
    if order == LINEAR or (i == 0 and after == 1):
        return wrapped(near + 1) >> 1
    if order == QUINTIC and i >= 2 and after >= 3:
        far, farthest = wrapped(line[i - 1] + line[i + 2]), wrapped(line[i - 2] + line[i + 3])
        bend = wrapped(22 * wrapped(near - far) - 3 * wrapped(far - farthest) + 64) >> 7
    elif i >= 1 and after >= 2:
        bend = wrapped(near - wrapped(line[i - 1] + line[i + 2]) + 4) >> 3
    elif after >= 2:
        bend = wrapped(2 * b - a - line[i + 2] + 2) >> 2
    else:
        bend = wrapped(2 * a - b - line[i - 1] + 2) >> 2
    return wrapped(near + bend + 1) >> 1


def mean(values):
    a, *others = values
    if not others:
        return a
    d = wrapped(sum(wrapped(b - a) for b in others))
    if len(others) == 1:
        return wrapped(a + (wrapped(d + 1) >> 1))
    third = wrapped(d + (d >> 2) + (d >> 4) + (d >> 6) + (d >> 8) + 4) >> 2
    return wrapped(a + third)


class Class:
    def __init__(self, classes, level, parity):
        self.classes, self.level, self.parity = classes, level, parity
        self.extents = class_extents(level, parity)
        self.axes = [a for a in range(3) if parity >> a & 1]
        z = min(self.extents[2], 2)
        y = min(self.extents[1], 4 if z > 1 else 8)
        self.sides = [CELL // (y * z), y, z] if product(self.extents) else None

    def place(self, point, extents=None):
        x, y, z = extents or self.extents
        return point[0] + x * (point[1] + y * point[2])

    def line(self, axis, point):
        parity = self.parity ^ 1 << axis
        extents, values = class_extents(self.level, parity), self.classes[parity]
        places = ([*point[:axis], i, *point[axis + 1 :]] for i in range(extents[axis]))
        return [values[self.place(at, extents)] for at in places]

    def predict(self, order, asked, point):
        lines = {a: self.line(a, point) for a in self.axes}
        inside = [a for a in self.axes if point[a] + 1 < len(lines[a])]
        axes = [a for a in asked if a in inside] or inside or asked
        return mean([along(order, lines[a], point[a], self.level[a].uneven_end()) for a in axes])

    def cells(self):
        extents, sides = self.extents, self.sides
        if sides is None:
            return
        corners = [range(0, extents[a], sides[a]) for a in (2, 1, 0)]
        for first in ([x, y, z] for z in corners[0] for y in corners[1] for x in corners[2]):
            ranges = [range(first[a], min(first[a] + sides[a], extents[a])) for a in (2, 1, 0)]
            yield [[x, y, z] for z in ranges[0] for y in ranges[1] for x in ranges[2]]

    def decode(self, step, stream):
        values, before = [0] * product(self.extents), None
        for points in self.cells():
            symbol, codes = stream.cell(len(points))
            before = symbol - 1 if symbol else before
            require(before is not None, "no predictor before")
            predict = self.predictor(before, points[0], values)
            for point, code in zip(points, codes):
                values[self.place(point)] = wrapped(predict(point) + code * step)
        return values

    def predictor(self, number, corner, values):
        """The prediction of points of the cell with this corner."""
        if number == NOTHING:
            return lambda point: 0
        if number >= REPEATED:
            axis = number - REPEATED
            require(axis < 3 and corner[axis] > 0, "no cell before")
            return lambda point: values[self.place([i - self.sides[a] * (a == axis) for a, i in enumerate(point)])]
        order, axes = divmod(number, 7)
        require((axes + 1) & ~self.parity == 0, "predictor")
        return lambda point: self.predict(order, [a for a in range(3) if axes + 1 >> a & 1], point)


def merge(classes, level):
    found = []
    for z in range(level[2].extent):
        for y in range(level[1].extent):
            for x in range(level[0].extent):
                places = [axis.place(i) for axis, i in zip(level, (x, y, z))]
                parity = sum(odd << a for a, (odd, _) in enumerate(places))
                width, height, _ = class_extents(level, parity)
                found.append(classes[parity][places[0][1] + width * (places[1][1] + height * places[2][1])])
    return found


def unfold(half, grid, reflection):
    """The values of a grid from those of its half, point by point."""
    width, height, _ = half_of(grid, reflection)
    near = [lambda i, a=a: min(i, grid[a] - 1 - i) if reflection >> a & 1 else i for a in range(3)]
    places = ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))
    return [half[near[0](x) + width * (near[1](y) + height * near[2](z))] for x, y, z in places]


def half_of(grid, reflection):
    return [-(-extent // 2) if reflection >> a & 1 else extent for a, extent in enumerate(grid)]


class Frame:
    def __init__(self, data):
        require(len(data) >= HEADER and data[:4] == b"RCPY", "magic")
        version, self.dtype, self.fields, self.reflection, zeros, checksum = struct.unpack_from("<HBBB3sI", data, 4)
        require(version in (2, 3) and self.dtype < 2 and self.fields > 0 and zeros == bytes(3), "header")
        require(self.reflection < 8 and (self.reflection == 0 or version == 3 and self.fields == 1), "reflection")
        self.version = version
        require(crc32c(data[:12] + bytes(4) + data[16:]) == checksum, "checksum")
        self.grid = list(struct.unpack_from("<3I", data, 16))
        self.steps = struct.unpack_from("<4H", data, 28)
        *self.delays, zero = struct.unpack_from("<4B", data, 36)
        require(all(step % 2 for step in self.steps), "steps")
        require(zero == 0 and max(self.delays) <= (31 if version == 3 else 0), "delays")
        self.unit, self.base = struct.unpack_from("<2d", data, 40)
        smallest, largest = 2.0**-1022, sys.float_info.max
        require(smallest <= self.unit <= largest and smallest <= 1.0 / self.unit <= largest, "unit")
        require(abs(self.base) <= largest, "base")
        tables, words, low_bits, escapes, exceptions = struct.unpack_from("<5Q", data, 56)
        rest = Bytes(data[HEADER:])
        self.tops = rest.unpack(f"<{self.fields}i")
        stream = rest.take(tables), rest.take(4 * (STATES + 1) + words + low_bits + escapes)
        self.stream = Stream(version, *stream, words, low_bits, escapes)
        form = "<II" if self.dtype else "<IQ"
        self.exceptions = [rest.unpack(form) for _ in range(exceptions)]
        rest.finish()

    def field(self, top):
        numbers = [top]
        levels = pyramid(self.version, half_of(self.grid, self.reflection), self.delays)
        for height, level in reversed(list(enumerate(levels))):
            classes = {0: numbers}
            for parity in (1, 2, 4, 3, 5, 6, 7):
                classes[parity] = Class(classes, level, parity).decode(self.steps[min(height, 3)], self.stream)
            numbers = merge(classes, level)
        return numbers

    def decode(self):
        """Patterns of all values."""
        fields = [self.field(top) for top in self.tops]
        self.stream.finish()
        numbers = [number for point in zip(*fields) for number in point]
        values = [self.base + float(number) * self.unit for number in numbers]
        patterns = [single_bits_of(x) if self.dtype else bits_of(x) for x in values]
        before = -1
        for place, pattern in self.exceptions:
            require(before < place < len(patterns), "place of an exception")
            patterns[place], before = pattern, place
        return unfold(patterns, self.grid, self.reflection) if self.reflection else patterns


def main(folder):
    frames = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.pyr"))}
    for name, data in frames.items():
        try:
            found = Frame(data).decode()
        except Damaged as damage:
            sys.exit(f"{name}: {damage}")
        expected = (folder / f"{name}.bin").read_bytes()
        if struct.pack(f"<{len(found)}{'I' if data[6] else 'Q'}", *found) != expected:
            sys.exit(f"{name}: other values than those expected")
        print(f"{name}: {len(data)} bytes, {len(found)} values")
    print(f"{len(frames)} frames")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
