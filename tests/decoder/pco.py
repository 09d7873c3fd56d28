"""Decodes standalone pco files, slowly, with nothing but the standard library.

Written from pco's format specification (github.com/pcodec/pcodec, docs/format.md, and pco/src/ans/spec.rs, which it names
for the tANS table) and from what io/FORMAT.md adds to it. Numbers are patterns: unsigned integers with the number's bits.
"""

from words import bits_of, double_of, require, signed, single_bits_of, single_of

BATCH, STATES = 256, 4
CLASSIC, INT_MULT, FLOAT_MULT, FLOAT_QUANT, DICT = range(5)
MODES = ("classic", "int-mult", "float-mult", "float-quant", "dict")
NO_DELTA, CONSECUTIVE, LOOKBACK, CONVOLUTION = range(4)
DELTAS = ("none", "consecutive", "lookback", "conv1")
# Number types by their byte: kind and bits.
TYPES = {1: "u32", 2: "u64", 3: "i32", 4: "i64", 5: "f32", 6: "f64", 7: "u16", 8: "i16", 10: "u8", 11: "i8"}


class Bits:
    """Bit fields, lowest first."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, width):
        start, self.at = self.at, self.at + width
        require(self.at <= 8 * len(self.data), "pco file ends early")
        window = int.from_bytes(self.data[start // 8 : (self.at + 7) // 8], "little")
        return window >> start % 8 & (1 << width) - 1

    def align(self):
        require(self.take(-self.at % 8) == 0, "zeros to a whole byte")


class Kind:
    """A type of numbers, and the integers that stand for them in ascending order."""

    def __init__(self, number):
        require(number in TYPES, f"type of numbers {number}")
        self.name = TYPES[number]
        self.is_float, self.bits = self.name[0] == "f", int(self.name[1:])
        self.middle, self.mask = 1 << self.bits - 1, (1 << self.bits) - 1

    def pattern(self, ordered):
        ordered &= self.mask
        if self.is_float and not ordered & self.middle:
            return ordered ^ self.mask
        return ordered if self.name[0] == "u" else ordered ^ self.middle

    def ordered(self, pattern):
        if self.is_float and pattern & self.middle:
            return pattern ^ self.mask
        return pattern if self.name[0] == "u" else pattern ^ self.middle

    def product(self, pattern, other):
        """The pattern of the product of two floating-point numbers."""
        if self.bits == 64:
            return bits_of(double_of(pattern) * double_of(other))
        # Exact in doubles, so it is rounded once.
        return single_bits_of(single_of(pattern) * single_of(other))

    def whole(self, latent):
        """The pattern of the number that stands for an integer in FloatMult."""
        is_negative = latent < self.middle
        magnitude = self.middle - 1 - latent if is_negative else latent - self.middle
        of, digits = (bits_of, 53) if self.bits == 64 else (single_bits_of, 24)
        last = 1 << digits
        found = of(float(magnitude)) if magnitude < last else of(float(last)) + magnitude - last
        return found | self.middle if is_negative else found


class Latent:
    """A latent variable of a chunk: its bins, and the table that tells them."""

    def __init__(self, bits, width, state, delayed):
        """`state` latents are stored at the beginning of a page, and batches hold `delayed` fewer in all."""
        self.bits, self.width, self.state_n, self.delayed = bits, width, state, delayed
        self.size_log = bits.take(4)
        require(self.size_log <= 14, "size of a table")
        offset_bits = (width - 1).bit_length() + 1
        self.bins = []
        for _ in range(bits.take(15)):
            weight = bits.take(self.size_log) + 1
            self.bins.append((weight, bits.take(width), bits.take(offset_bits)))
        self.nodes = self.table([weight for weight, _, _ in self.bins] or [1])

    def table(self, weights):
        """Of each state: its bin, the first of the states that may follow, and the bits that tell which does."""
        size = 1 << self.size_log
        require(sum(weights) == size, "weights of the bins")
        stride = 3 * size // 5 | 1
        bins = [None] * size
        owners = (bin_index for bin_index, weight in enumerate(weights) for _ in range(weight))
        for step, bin_index in enumerate(owners):
            bins[stride * step % size] = bin_index
        nodes, count = [], list(weights)
        for bin_index in bins:
            width = self.size_log + 1 - count[bin_index].bit_length()
            nodes.append((bin_index, (count[bin_index] << width) - size, width))
            count[bin_index] += 1
        return nodes

    def begin(self):
        self.found = [self.bits.take(self.width) for _ in range(self.state_n)]
        self.states = [self.bits.take(self.size_log) for _ in range(STATES)]

    def batch(self, left):
        count = min(BATCH, max(left - self.delayed, 0))
        bins = []
        for i in range(count):
            bin_index, base, width = self.nodes[self.states[i % STATES]]
            self.states[i % STATES] = base + self.bits.take(width)
            bins.append(bin_index)
        for bin_index in bins:
            _, lower, offset_bits = self.bins[bin_index] if self.bins else (0, 0, 0)
            self.found.append((lower + self.bits.take(offset_bits)) & (1 << self.width) - 1)


class Chunk:
    def __init__(self, bits, kind):
        self.bits, self.kind = bits, kind
        self.mode = bits.take(4)
        require(self.mode <= DICT, "mode")
        require(kind.is_float or self.mode not in (FLOAT_MULT, FLOAT_QUANT), "mode of floating-point numbers")
        require(not kind.is_float or self.mode != INT_MULT, "mode of integers")
        self.extra, self.dictionary = None, None
        if self.mode in (INT_MULT, FLOAT_MULT):
            self.extra = bits.take(kind.bits)
        if self.mode == FLOAT_QUANT:
            self.extra = bits.take(8)
        if self.mode == DICT:
            length = bits.take(25)
            bits.align()
            self.dictionary = [bits.take(kind.bits) for _ in range(length)]
        self.read_delta()
        # Variables in the order of the file.
        width, state = 32 if self.mode == DICT else kind.bits, self.state_n
        self.lookbacks = Latent(bits, 32, 0, state) if self.delta == LOOKBACK else None
        self.primary = Latent(bits, width, state, state)
        self.secondary = None
        if self.mode in (INT_MULT, FLOAT_MULT, FLOAT_QUANT):
            state = state if self.is_secondary_delta else 0
            self.secondary = Latent(bits, kind.bits, state, state)
        bits.align()

    def read_delta(self):
        bits, self.state_n, self.is_secondary_delta = self.bits, 0, False
        self.delta = bits.take(4)
        require(self.delta <= LOOKBACK, "a delta encoding that recoup's writer does not use")
        if self.delta == CONSECUTIVE:
            self.state_n, self.is_secondary_delta = bits.take(3), bits.take(1)
            require(self.state_n > 0, "order")
        if self.delta == LOOKBACK:
            self.window = 1 << bits.take(5) + 1
            self.state_n, self.is_secondary_delta = 1 << bits.take(4), bits.take(1)

    def page(self, n):
        latents = [latent for latent in (self.lookbacks, self.primary, self.secondary) if latent]
        for latent in latents:
            latent.begin()
        self.bits.align()
        for start in range(0, n, BATCH):
            for latent in latents:
                latent.batch(n - start)
        self.bits.align()
        primary = self.without_delta(self.primary)[:n]
        secondary = self.without_delta(self.secondary)[:n] if self.secondary else [0] * n
        return [self.joined(*pair) for pair in zip(primary, secondary)]

    def without_delta(self, latent):
        if latent.state_n == 0:
            return latent.found
        mask, middle = (1 << latent.width) - 1, 1 << latent.width - 1
        state = latent.found[: latent.state_n]
        deltas = [found ^ middle for found in latent.found[latent.state_n :]]
        if self.delta == CONSECUTIVE:
            for moment in reversed(state):
                sums = [moment]
                for delta in deltas:
                    sums.append(sums[-1] + delta & mask)
                deltas = sums
            return deltas
        for delta, lookback in zip(deltas, self.lookbacks.found):
            require(0 < lookback <= self.window, "lookback")
            before = state[len(state) - lookback] if lookback <= len(state) else 0
            state.append(before + delta & mask)
        return state

    def joined(self, first, second):
        kind = self.kind
        if self.mode == DICT:
            require(first < len(self.dictionary), "place in the dictionary")
            return kind.pattern(self.dictionary[first])
        if self.mode == INT_MULT:
            return kind.pattern(first * self.extra + second)
        if self.mode == FLOAT_MULT:
            product = kind.product(kind.whole(first), kind.pattern(self.extra))
            return kind.pattern(kind.ordered(product) + second + kind.middle)
        if self.mode == FLOAT_QUANT:
            high = first << self.extra & kind.mask
            return kind.pattern(high + (second if high >= kind.middle else (1 << self.extra) - 1 - second))
        return kind.pattern(first)


def patterns(data, kind_name):
    """The numbers of a standalone file whose type has this name, and how they were coded, in words."""
    bits, found, ways = Bits(data), [], set()
    require(data[:4] == b"pco!", "magic of pco")
    bits.take(32)
    version = bits.take(8)
    require(2 <= version <= 3, f"standalone version {version}")
    uniform = bits.take(8) if version == 3 else 0
    hint = bits.take(bits.take(6) + 1)
    bits.align()
    major = bits.take(8)
    require(3 <= major <= 4 and (major < 4 or bits.take(8) <= 1), f"format version {major}")
    while number := bits.take(8):
        kind = Kind(number)
        require(kind.name == kind_name and uniform in (0, number), f"numbers are {kind.name}")
        n = bits.take(24) + 1
        chunk = Chunk(bits, kind)
        found += chunk.page(n)
        ways.add(f"{kind.name} {MODES[chunk.mode]} {DELTAS[chunk.delta]}")
    require(bits.at == 8 * len(data), "pco file continues")
    require(hint in (0, len(found)), "hint")
    return found, ways


def codes(data, width):
    """The signed integers of a standalone file of `width` bytes each."""
    found, ways = patterns(data, f"i{8 * width}")
    return [signed(pattern, 8 * width) for pattern in found], ways
