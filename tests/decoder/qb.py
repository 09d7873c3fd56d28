"""Decodes QB frames by the letter of compress/FORMAT.md, slowly, with nothing but the standard library.

usage: qb.py FOLDER

FOLDER holds frames NAME.qb and the values expected of each, NAME.bin: little-endian doubles or singles.
A frame coded against a parent is decoded with the values of the frame in FOLDER that has the hash it names.
"""

import pathlib
import struct
import sys

from checksums import blake3_16, crc32c
from words import Damaged, bits_of, double_of, require, signed, single_bits_of, single_of

BLOCK, GROUP, EDGE, LANES = 4096, 256, 16, 8
ZERO, CODED, RAW, EXACT = range(4)
LOSSLESS, ABSOLUTE, RELATIVE = range(3)
LINE, TILES, FITTED = range(3)


# Lattices: the code of a parent's pattern, and the pattern of a code.


class Lossless:
    def __init__(self, width):
        self.width = width

    def parent_code(self, pattern):
        code = signed(pattern, self.width)
        return code if code >= 0 else code ^ (1 << self.width - 1) - 1

    def pattern(self, code):
        code = signed(code, self.width)
        code = code if code >= 0 else code ^ (1 << self.width - 1) - 1
        return code & (1 << self.width) - 1


class Absolute:
    def __init__(self, width, step):
        self.width, self.step = width, double_of(step)
        smallest, largest = 2.0**-1022, sys.float_info.max
        require(smallest <= self.step <= largest, "step")
        self.inverse = 1.0 / self.step
        require(smallest <= self.inverse <= largest, "inverse of the step")

    def parent_code(self, pattern):
        t = (double_of(pattern) if self.width == 64 else single_of(pattern)) * self.inverse
        return round(t) if abs(t) < 2.0**50 else 0

    def pattern(self, code):
        value = float(code) * self.step
        return bits_of(value) if self.width == 64 else single_bits_of(value)


class Relative:
    def __init__(self, width, step):
        require(2 <= step < 1 << 42, "step")
        self.step, self.inverse = step, 1.0 / float(step)
        self.shift, fraction = (11, 52) if width == 64 else (0, 23)
        self.magnitude = (1 << width - 1) - 1
        self.smallest, self.infinity = 1 << fraction, self.magnitude >> fraction << fraction

    def parent_code(self, pattern):
        pattern &= self.magnitude
        if not self.smallest <= pattern < self.infinity:
            return 0
        code = round(float(pattern >> self.shift) * self.inverse)
        return code if code <= ((self.infinity >> self.shift) - 1) // self.step else 0

    def pattern(self, code):
        return code * self.step << self.shift & self.magnitude


# Frames.


class Frame:
    def __init__(self, data):
        require(len(data) >= 96, "shorter than its header")
        magic, version, self.dtype, self.mode, predictor, self.stride, self.flags, zero = struct.unpack_from("<4sH6B", data)
        checksum, _bound, step, self.n, *self.dims = struct.unpack_from("<IdQQ3I", data, 12)
        more_zeros, self.parent, length, even_more = struct.unpack_from("<I16sQ16s", data, 52)
        require(magic == b"RCQB" and version == (2 if predictor == FITTED else 1), "magic or version")
        require(self.dtype < 2 and self.flags < 4 and length == len(data), "type, flags or length")
        require(zero == more_zeros == 0 and even_more == bytes(16), "zeros")
        require(self.flags & 1 or self.parent == bytes(16), "hash without a parent")
        self.width = 32 if self.dtype else 64
        self.in_tiles = self.shape(predictor)
        self.exact = Lossless(self.width)
        self.lattice = self.own_lattice(step)
        table_end = 96 + 8 * self.blocks()
        end = table_end + (36 if predictor == FITTED else 0)
        require(len(data) >= end, "shorter than its table")
        require(crc32c(data[:12] + bytes(4) + data[16:end]) == checksum, "checksum of header and table")
        self.table, self.data, self.start = list(struct.iter_unpack("<II", data[96:table_end])), data, end
        self.weights = None
        if predictor == FITTED:
            require(self.mode == ABSOLUTE, "mode of fitted tiles")
            *self.weights, zeros = struct.unpack("<17hH", data[table_end:end])
            require(zeros == 0, "behind the weights")
        require(end + sum(4 * words for words, _ in self.table) == len(data), "table does not add up")

    def shape(self, predictor):
        if predictor == LINE:
            require(self.dims == [0, 0, 0] and 1 <= self.stride <= 8, "line")
            return False
        x, y, z = self.dims
        require(predictor in (TILES, FITTED) and self.stride == 1 and x * y * z == self.n > 0, "tiles")
        return True

    def own_lattice(self, step):
        if self.mode == ABSOLUTE:
            return Absolute(self.width, step)
        if self.mode == RELATIVE:
            return Relative(self.width, step)
        require(self.mode == LOSSLESS and step == 0, "mode")
        return self.exact

    def blocks(self):
        if not self.in_tiles:
            return -(-self.n // BLOCK)
        x, y, z = (-(-extent // EDGE) for extent in self.dims)
        return x * y * z

    def places(self, block):
        """For each value of a padded block: its place among all values, or the nearest one's, and whether it is its own."""
        if not self.in_tiles:
            start, end = block * BLOCK, min(self.n, block * BLOCK + BLOCK)
            padded = -(-(end - start) // GROUP) * GROUP
            return [(min(start + i, end - 1), start + i < end) for i in range(padded)]
        across, down = (-(-extent // EDGE) for extent in self.dims[:2])
        corner = (block % across * EDGE, block // across % down * EDGE, block // (across * down) * EDGE)
        found = []
        for i in range(BLOCK):
            at = [first + step for first, step in zip(corner, (i % EDGE, i // EDGE % EDGE, i // EDGE**2))]
            x, y, z = (min(own, extent - 1) for own, extent in zip(at, self.dims))
            found.append(((z * self.dims[1] + y) * self.dims[0] + x, [x, y, z] == at))
        return found

    def decode(self, parent=None):
        """Patterns of all values; `parent` holds those of the parent's."""
        require((parent is not None) == bool(self.flags & 1), "parent")
        require(parent is None or len(parent) == self.n, "length of the parent")
        values, start = [None] * self.n, self.start
        for block, (words, checksum) in enumerate(self.table):
            data = self.data[start : start + 4 * words]
            require(crc32c(data) == checksum, f"checksum of block {block}")
            start += 4 * words
            places = self.places(block)
            parents = None if parent is None else [parent[place] for place, _ in places]
            for (place, is_own), value in zip(places, Block(self, data, places, parents).values()):
                if is_own:
                    values[place] = value
        return values


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form, count=None):
        form = f"<{form}" if count is None else f"<{count}{form}"
        size = struct.calcsize(form)
        require(self.at + size <= len(self.data), "block ends early")
        found = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return found

    def pad(self):
        zeros = self.take("B", -self.at % 4)
        require(not any(zeros), "padding")


class Head:
    def __init__(self, bits):
        self.width, self.patches, self.order = bits & 63, bits >> 6 & 31, bits >> 11 & 3
        self.high_bytes, self.wide = 1 << (bits >> 13 & 3), bits >> 15
        require(self.order < 3 and (self.wide or (self.width <= 32 and self.high_bytes < 8)), "head")
        self.bits = 64 if self.wide else 32


class Block:
    def __init__(self, frame, data, places, parents):
        self.frame, self.reader, self.places, self.parents = frame, Reader(data), places, parents
        self.groups = len(places) // GROUP

    def values(self):
        kind, zero, n_exceptions = self.reader.take("BBH")
        self.size, self.kind = kind >> 4, kind & 15
        require(zero == 0 and self.size < 3 and self.kind < 4, "first word")
        if self.kind in (ZERO, RAW):
            require(self.size == n_exceptions == 0, "first word")
        if self.kind == RAW:
            return self.raw()
        self.lattice = self.frame.exact if self.kind == EXACT else self.frame.lattice
        if self.kind == ZERO:
            base, heads, self.classes, bitmaps = 0, [Head(0)] * self.groups, [0] * self.groups, [(None, None)] * self.groups
            residuals = [[0] * GROUP] * self.groups
        else:
            base, heads, bitmaps, residuals = self.parts()
        codes = self.tile(base, heads, residuals) if self.frame.in_tiles else self.line(base, heads, residuals)
        if self.parents:
            codes = [signed(code + self.lattice.parent_code(parent), 64) for code, parent in zip(codes, self.parents)]
        values = [self.lattice.pattern(code) for code in codes]
        if isinstance(self.lattice, Relative):
            values = self.with_signs(values, bitmaps)
        exceptions = self.reader.take("H", n_exceptions), self.reader.take("I" if self.frame.dtype else "Q", n_exceptions)
        for place, pattern in zip(*exceptions):
            require(place < len(values), "place of an exception")
            values[place] = pattern
        self.reader.pad()
        require(self.reader.at == len(self.reader.data), "block continues")
        return values

    def raw(self):
        own = [i for i, (_, is_own) in enumerate(self.places) if is_own]
        values = [0] * len(self.places)
        for i, pattern in zip(own, self.reader.take("I" if self.frame.dtype else "Q", len(own))):
            values[i] = pattern
        self.reader.pad()
        require(self.reader.at == len(self.reader.data), "block continues")
        return values

    def parts(self):
        take = self.reader.take
        base = (0, *take("i"))[1] if self.size == 1 else take("q")[0] if self.size == 2 else 0
        heads = [Head(bits) for bits in take("H", self.groups)]
        self.reader.pad()
        self.classes = [0] * self.groups
        if isinstance(self.lattice, Relative):
            self.classes = take("B", self.groups)
            require(all(c < 8 and c & 3 < 3 for c in self.classes), "class")
            self.reader.pad()
        bitmaps = [(take("I", LANES) if c & 3 == 2 else None, take("I", LANES) if c & 4 else None) for c in self.classes]
        fields = [self.fields(head) for head in heads]
        for head, group in zip(heads, fields):
            places = take("B", head.patches)
            highs = take("_BH_I___Q"[head.high_bytes], head.patches)
            for place, high in zip(places, highs):
                group[place] |= high << head.width
        fields = [[z & (1 << head.bits) - 1 for z in group] for head, group in zip(heads, fields)]
        residuals = [[z >> 1 if z % 2 == 0 else -(z + 1) // 2 for z in group] for group in fields]
        return base, heads, bitmaps, residuals

    def fields(self, head):
        z, done = [0] * GROUP, 0
        while done < head.width:
            width = min(32, head.width - done)
            words = self.reader.take("I", width * LANES)
            lanes = [sum(words[k * LANES + lane] << 32 * k for k in range(width)) for lane in range(LANES)]
            for i in range(GROUP):
                z[i] |= (lanes[i % LANES] >> i // LANES * width & (1 << width) - 1) << done
            done += width
        return z

    def line(self, base, heads, residuals):
        k, codes = self.frame.stride, [base] * 16
        for head, d in zip(heads, residuals):
            c = codes[-1]
            q = [signed(code - c, head.bits) for code in codes[-16:]]
            for residual in d:
                known = (0, q[-k], 2 * q[-k] - q[-2 * k])[head.order]
                q.append(signed(residual + known, head.bits))
            codes += [signed(c + difference, 64) for difference in q[16:]]
        return codes[16:]

    def tile(self, base, heads, residuals):
        require(all(head.order == 0 and head.wide == heads[0].wide for head in heads), "heads of a tile")
        coordinates = [(i % EDGE, i // EDGE % EDGE, i // EDGE**2) for i in range(BLOCK)]
        order = [i for i in range(BLOCK) if 0 in coordinates[i]] + [i for i in range(BLOCK) if 0 not in coordinates[i]]
        sums = [0] * BLOCK
        for i, residual in zip(order, (residual for group in residuals for residual in group)):
            sums[i] = residual
        if self.frame.weights:
            return [signed(base + q, 64) for q in self.fitted(sums, heads[0].bits)]
        for axis, step in enumerate((1, EDGE, EDGE**2)):
            for i in range(BLOCK):
                if coordinates[i][axis]:
                    sums[i] += sums[i - step]
        return [signed(base + signed(total, heads[0].bits), 64) for total in sums]

    def fitted(self, residuals, bits):
        w, rows = self.frame.weights, {}

        def padded(y, z):
            return [rows[y, z][0], *rows[y, z], rows[y, z][-1]]

        for row in range(EDGE**2):
            y, z = row % EDGE, row // EDGE
            if row == 0:
                near, own, before = [], 4096, 0
            elif z == 0:
                near, own, before = [(13, padded(y - 1, 0))], w[16], rows[y - 1, 0][0]
            else:
                south = (y - 1, z) if y else (0, z - 1)
                below = [(max(y - 1, 0), z - 1), (y, z - 1), (min(y + 1, EDGE - 1), z - 1)]
                near = list(zip((0, 3, 6, 9), [padded(*place) for place in (south, *below)]))
                own, before = w[12], rows[south][0]
            codes = []
            for x in range(EDGE):
                total = 2048 + own * before + sum(w[i + k] * r[x + k] for i, r in near for k in range(3))
                before = signed(residuals[row * EDGE + x] + (signed(total, bits) >> 12), bits)
                codes.append(before)
            rows[y, z] = codes
        return [q for row in range(EDGE**2) for q in rows[row % EDGE, row // EDGE]]

    def with_signs(self, values, bitmaps):
        sign, found = 1 << self.frame.width - 1, []
        for i, pattern in enumerate(values):
            (signs, zeros), group_class = bitmaps[i // GROUP], self.classes[i // GROUP]
            word, bit = divmod(i % GROUP, 32)
            minus = signs[word] >> bit & 1 if signs else group_class & 3
            if zeros and zeros[word] >> bit & 1:
                pattern = 0
            if self.parents and self.parents[i] & sign:
                minus ^= 1
            found.append(pattern | sign if minus else pattern)
        return found


def main(folder):
    frames = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.qb"))}
    by_hash = {blake3_16(data): name for name, data in frames.items()}
    patterns = {}

    def decoded(name):
        if name not in patterns:
            frame = Frame(frames[name])
            parent = None
            if frame.flags & 1:
                require(frame.parent in by_hash, "no frame has the parent's hash")
                parent = decoded(by_hash[frame.parent])
            patterns[name] = frame.decode(parent)
        return patterns[name]

    for name, data in frames.items():
        try:
            found = decoded(name)
        except Damaged as damage:
            sys.exit(f"{name}: {damage}")
        form = f"<{len(found)}{'I' if data[6] else 'Q'}"
        expected = (folder / f"{name}.bin").read_bytes()
        if struct.pack(form, *found) != expected:
            sys.exit(f"{name}: other values than those expected")
        print(f"{name}: {len(data)} bytes, {len(found)} values")
    print(f"{len(frames)} frames")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
