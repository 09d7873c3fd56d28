"""Decodes payloads of codec pco by the letter of io/FORMAT.md, "pco"."""

import struct

import pco
from words import bits_of, double_of, require, signed, single_bits_of, single_of

LOSSLESS, ABSOLUTE, RELATIVE = range(3)
ELEMENTS = {"f64": (0, 64), "f32": (1, 32), "i64": (2, 64), "bytes": (3, 8)}


class Payload:
    def __init__(self, data, element):
        require(len(data) >= 48, "shorter than its header")
        magic, version, self.mode, number, self.width, self.axes, *zeros = struct.unpack_from("<4s12B", data)
        self.step, self.n, exceptions, coded = struct.unpack_from("<4Q", data, 16)
        self.element, (expected, self.bits) = element, ELEMENTS[element]
        require(magic == b"RPCO" and version in (1, 2, 3), "magic or version")
        require(number == expected and not any(zeros), "type or zeros")
        require(self.mode <= RELATIVE and self.axes < 8, "mode or axes")
        start, self.fitted, self.wide = 48, None, None
        if version > 1:
            require(self.mode != LOSSLESS and self.axes == 0, "axes and a predictor")
        if version == 2:
            self.fitted = struct.unpack_from("<17f", data, 48)
            start += 68
        if version == 3:
            self.wide = struct.unpack_from("<84f", data, 48)
            start += 336
        self.coded, pairs = data[start : start + coded], data[start + coded :]
        require(len(self.coded) == coded and len(pairs) == 16 * exceptions, "lengths")
        self.exceptions = list(struct.iter_unpack("<QQ", pairs))

    def patterns(self, dims, stride):
        """The values as patterns, and how they were coded, in words."""
        if self.mode == LOSSLESS:
            require(not self.exceptions and self.step == 0, "mode")
            name = "u8" if self.element == "bytes" else self.element
            found, ways = pco.patterns(self.coded, name)
            require(len(found) == self.n, "number of values")
            return found, {f"lossless {way}" for way in ways}
        require(self.element in ("f64", "f32") and self.width in (4, 8), "bytes of a code")
        codes, ways = pco.codes(self.coded, self.width)
        require(len(codes) == self.n == dims[0] * dims[1] * dims[2], "number of codes")
        if self.fitted:
            codes = with_prediction(codes, dims, self.fitted)
        if self.wide:
            require(stride == 1 and dims[0] > 8 and dims[1] > 8, "a wide predictor")
            codes = with_wide_prediction(codes, dims, self.wide)
        for axis in range(3):
            if self.axes >> axis & 1:
                add_up(codes, dims, stride if axis == 0 else 1, axis)
        value = self.absolute() if self.mode == ABSOLUTE else self.relative()
        found = [value(code) for code in codes]
        for place, pattern in self.exceptions:
            require(place < self.n, "place of an exception")
            found[place] = pattern & (1 << self.bits) - 1
        kind = "absolute" if self.mode == ABSOLUTE else "relative"
        before = "fitted" if self.fitted else "wide" if self.wide else f"axes {self.axes}"
        odd = " exceptions" if self.exceptions else ""
        return found, {f"{kind} {self.element} {before}{odd}"} | {f"codes {way}" for way in ways}

    def absolute(self):
        step = double_of(self.step)
        require(2.0**-1022 <= step < float("inf"), "step")
        rounded = bits_of if self.bits == 64 else single_bits_of
        return lambda code: rounded(float(code) * step)

    def relative(self):
        shift, smallest, largest = (11, 1 << 41, 1 << 41) if self.bits == 64 else (0, 1 << 23, 1 << 23)
        require(1 <= self.step <= largest, "step")
        first = round(float(smallest) * (1.0 / float(self.step)))
        sign = 1 << self.bits - 1

        def value(code):
            if code == 0:
                return 0
            pattern = ((abs(code) + first - 1) * self.step << shift) & sign - 1
            return pattern | sign if code < 0 else pattern

        return value


def add_up(codes, dims, stride, axis):
    """Replaces codes by their running sums along an axis."""
    inner = (stride, dims[0], dims[0] * dims[1])[axis]
    extent = dims[axis] // stride
    for i in range(len(codes)):
        if i // inner % extent:
            codes[i] = signed(codes[i] + codes[i - inner], 64)


def with_prediction(left, dims, weights):
    """The codes, from what the fitted predictor leaves of them."""
    nx, ny, nz = dims
    space, plane = weights[:13], weights[13:]
    rows, codes = {}, []

    def three(c, row, x):
        return c[0] * row[x] + c[1] * row[x + 1] + c[2] * row[x + 2]

    for z in range(nz):
        for y in range(ny):
            if z == 0:
                before, c = (rows[y - 1, 0],) if y else (), plane
            else:
                below = rows[max(y - 1, 0), z - 1], rows[y, z - 1], rows[min(y + 1, ny - 1), z - 1]
                before, c = (rows[y - 1, z] if y else rows[0, z - 1], *below), space
            own = c[-1] if before else 1.0
            west = before[0][1] if before else 0.0
            row = []
            for x in range(nx):
                sums = [three(c[3 * i : 3 * i + 3], r, x) for i, r in enumerate(before)]
                total = (sums[0] + sums[1]) + (sums[2] + sums[3]) if len(sums) == 4 else sum(sums)
                t = total + own * west
                code = signed(left[len(codes)] + (round(t) if abs(t) < 2.0**50 else 0), 64)
                codes.append(code)
                west = float(code)
                row.append(west)
            rows[y, z] = [row[0], *row, row[-1]]
    return codes


def with_wide_prediction(left, dims, weights):
    """The codes, from what the wide predictor leaves of them."""
    nx, ny, nz = dims
    near = [
        (a, b, c)
        for c in range(4, -1, -1)
        for b in range(-4, 5)
        for a in range(-4, 5)
        if abs(a) + abs(b) + c <= 4 and (c > 0 or b < 0 or b == 0 and a < 0)
    ]
    codes, values = [], {}

    def clamped(x, y, z):
        return values[min(max(x, 0), nx - 1), min(max(y, 0), ny - 1), max(z, 0)]

    def neighbour(x, y, z, a, b, c):
        if c > 0 or y + b >= 0 and b < 0:
            return clamped(x + a, y + b, z - c)
        if b == 0 and x + a >= 0:
            return values[x + a, y, z]
        if b == 0 and y > 0:
            return values[0, y - 1, z]
        return clamped(x + a, 0, z - 1) if z > 0 else 0.0

    for z in range(nz):
        used, w = (near, weights[:64]) if z > 0 else (near[44:], weights[64:])
        for y in range(ny):
            for x in range(nx):
                found = [weight * neighbour(x, y, z, *at) for at, weight in zip(used, w)]
                before, own = 0.0, found[-4]
                for term in found[:-4]:
                    before += term
                for term in found[-3:]:
                    own += term
                t = before + own
                code = signed(left[len(codes)] + (round(t) if abs(t) < 2.0**50 else 0), 64)
                codes.append(code)
                values[x, y, z] = float(code)
    return codes
