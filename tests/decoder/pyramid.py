"""Decodes frames of the codec pyramid by the letter of compress/FORMAT.md, slowly, with nothing but the standard library.

usage: pyramid.py FOLDER

FOLDER holds frames NAME.pyr and the values expected of each, NAME.bin: little-endian doubles or singles.
"""

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


class Stream:
    def __init__(self, tables, rest, words, low_bits, escapes):
        tables, rest = Bytes(tables), Bytes(rest)
        (mask,) = tables.unpack("<I")
        require(mask >> TABLES == 0, "tables")
        self.tables = [read_table(tables) if mask >> table & 1 else None for table in range(TABLES)]
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
        return predictor, [z >> 1 if z % 2 == 0 else -(z + 1) // 2 for z in folded]

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


def class_extents(grid, parity):
    return [grid[a] // 2 if parity >> a & 1 else -(-grid[a] // 2) for a in range(3)]


def pyramid(grid):
    found = []
    while grid != [1, 1, 1]:
        found.append(grid)
        grid = class_extents(grid, 0)
    return found


def along(order, line, i):
    """The prediction between points i and i + 1 of a line."""
    after = len(line) - 1 - i
    a = line[i]
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
    def __init__(self, classes, grid, parity):
        self.classes, self.grid, self.parity = classes, grid, parity
        self.extents = class_extents(grid, parity)
        self.axes = [a for a in range(3) if parity >> a & 1]
        z = min(self.extents[2], 2)
        y = min(self.extents[1], 4 if z > 1 else 8)
        self.sides = [CELL // (y * z), y, z] if product(self.extents) else None

    def place(self, point, extents=None):
        x, y, z = extents or self.extents
        return point[0] + x * (point[1] + y * point[2])

    def line(self, axis, point):
        parity = self.parity ^ 1 << axis
        extents, values = class_extents(self.grid, parity), self.classes[self.parity ^ 1 << axis]
        places = ([*point[:axis], i, *point[axis + 1 :]] for i in range(extents[axis]))
        return [values[self.place(at, extents)] for at in places]

    def predict(self, order, asked, point):
        lines = {a: self.line(a, point) for a in self.axes}
        inside = [a for a in self.axes if point[a] + 1 < len(lines[a])]
        axes = [a for a in asked if a in inside] or inside or asked
        return mean([along(order, lines[a], point[a]) for a in axes])

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


def merge(classes, grid):
    found = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                parity = x % 2 | y % 2 << 1 | z % 2 << 2
                width, height, _ = class_extents(grid, parity)
                found.append(classes[parity][x // 2 + width * (y // 2 + height * (z // 2))])
    return found


class Frame:
    def __init__(self, data):
        require(len(data) >= HEADER and data[:4] == b"RCPY", "magic")
        version, self.dtype, self.fields, zeros, checksum = struct.unpack_from("<HBBII", data, 4)
        require(version == 2 and self.dtype < 2 and self.fields > 0 and zeros == 0, "header")
        require(crc32c(data[:12] + bytes(4) + data[16:]) == checksum, "checksum")
        self.grid = list(struct.unpack_from("<3I", data, 16))
        *self.steps, zeros = struct.unpack_from("<4HI", data, 28)
        require(zeros == 0 and all(step % 2 for step in self.steps), "steps")
        self.unit, self.base = struct.unpack_from("<2d", data, 40)
        smallest, largest = 2.0**-1022, sys.float_info.max
        require(smallest <= self.unit <= largest and smallest <= 1.0 / self.unit <= largest, "unit")
        require(abs(self.base) <= largest, "base")
        tables, words, low_bits, escapes, exceptions = struct.unpack_from("<5Q", data, 56)
        rest = Bytes(data[HEADER:])
        self.tops = rest.unpack(f"<{self.fields}i")
        stream = rest.take(tables), rest.take(4 * (STATES + 1) + words + low_bits + escapes)
        self.stream = Stream(*stream, words, low_bits, escapes)
        form = "<II" if self.dtype else "<IQ"
        self.exceptions = [rest.unpack(form) for _ in range(exceptions)]
        rest.finish()

    def field(self, top):
        numbers = [top]
        for height, grid in reversed(list(enumerate(pyramid(self.grid)))):
            classes = {0: numbers}
            for parity in (1, 2, 4, 3, 5, 6, 7):
                classes[parity] = Class(classes, grid, parity).decode(self.steps[min(height, 3)], self.stream)
            numbers = merge(classes, grid)
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
        return patterns


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
