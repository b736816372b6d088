"""Code that is mostly control: while loops, strings, state machines, early exits, branches, plain blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .affine_text import Array, Index
from .drawn import Drawn, Kind, families_of
from .scf_text import Num

__all__ = ["FAMILIES", "KINDS", "ORIGIN"]

ORIGIN = "control"


def ctl_loops(d: Drawn) -> None:
    """Collatz, Euclid (plain, binary, extended), powers, integer roots, digit games, ruler sequences, Josephus."""
    k = d.k
    style = d.pick(
        "style",
        (
            "collatz",
            "collatz",
            "gcd",
            "binary gcd",
            "extended",
            "power",
            "root",
            "digits",
            "josephus",
            "ackermann-like",
            "primes",
        ),
    )
    word = d.pick("word", ("i32", "i64"), (2, 1))
    cost = {"collatz": 350, "gcd": 60, "binary gcd": 120, "extended": 130, "power": 90, "root": 60, "digits": 70}.get(
        style, 150
    )
    n = max(4, d.size(d.work * 8 / cost, 4))
    a, out = k.array(word, n), k.array(word, n)
    reach = d.pick("reach", (100, 3000, 100_000))
    salt = d.rng.randrange(1 << 16)
    branchy = d.chance("branchy", 0.5)
    zero, one = k.constant(0, word), k.constant(1, word)
    outer = d.pick("outer", ("scf", "affine", "fold"))

    def fresh(i: Index | Num, extra: int = 0) -> Num:
        """1 .. reach."""
        mixed = k.hashed(k.number(i, "i32") + (k.load(a, i).to("i32") << 3), salt + extra)
        return (mixed % reach + 1).to(word)

    def even(x: Num) -> Num:
        return (x & 1).test("eq", 0)

    def either(test: Num, yes: Callable[[], list[Num]], no: Callable[[], list[Num]]) -> list[Num]:
        if branchy:
            return k.if_else(test, yes, no)
        return [k.choose(test, p, q) for p, q in zip(yes(), no(), strict=True)]

    def result(i: Index | Num) -> Num:
        x = fresh(i)
        match style:
            case "collatz":
                limit = d.pick("limit", (60, 200, 1000))

                def goes(c: list[Num]) -> Num:
                    return c[0].test("ne", 1) & c[1].test("lt", limit)

                def step(c: list[Num]) -> list[Num]:
                    [new] = either(even(c[0]), lambda: [c[0] >> 1], lambda: [c[0] * 3 + 1])
                    return [new, c[1] + 1]

                return k.loop_while([x, zero], goes, step, trips=min(limit, 70))[1]
            case "gcd":
                return k.loop_while(
                    [x, fresh(i, 9)], lambda c: c[1].test("ne", 0), lambda c: [c[1], c[0] % c[1]], trips=6
                )[0]
            case "binary gcd":
                y = fresh(i, 9)
                shared = (x | y).math("cttz")
                x = x >> x.math("cttz")

                def halve(c: list[Num]) -> list[Num]:
                    q = c[1] >> c[1].math("cttz")
                    return [c[0].min(q), (c[0] - q).abs()]

                return k.loop_while([x, y], lambda c: c[1].test("ne", 0), halve, trips=9)[0] << shared
            case "extended":

                def divide(c: list[Num]) -> list[Num]:
                    quotient = c[0] / c[1]
                    return [c[1], c[0] - quotient * c[1], c[3], c[2] - quotient * c[3]]

                return k.loop_while([x, fresh(i, 9), one, zero], lambda c: c[1].test("ne", 0), divide, trips=6)[2]
            case "power":

                def square(c: list[Num]) -> list[Num]:
                    [used] = either((c[1] & 1).test("ne", 0), lambda: [c[0] * c[2]], lambda: [c[0]])
                    return [used, c[1] >> 1, c[2] * c[2]]

                return k.loop_while([one, x, fresh(i, 9)], lambda c: c[1].test("ne", 0), square, trips=11)[0]
            case "root":

                def better(c: list[Num]) -> list[Num]:
                    return [c[1], (c[1] + x / c[1]) >> 1]

                return k.loop_while(
                    [x + 1, (x + 1) >> 1], lambda c: c[1].test("slt", c[0]) & c[1].test("sgt", 0), better, trips=7
                )[0]
            case "digits":
                base = d.pick("base", (2, 3, 10, 16))

                def digit(c: list[Num]) -> list[Num]:
                    last = c[0] % base
                    return [c[0] // base, c[1] * base + last, c[2] + last * last]

                found = k.loop_while([x, zero, zero], lambda c: c[0].test("ne", 0), digit, trips=6)
                return found[1] ^ found[2]
            case "josephus":
                people = d.pick("people", (10, 40, 100))

                def survivor(m: Num, c: list[Num]) -> list[Num]:
                    return [(c[0] + x) % m.to(word)]

                return k.scf_fold(2, people, [zero], survivor)[0]
            case "primes":

                def divides(c: list[Num]) -> Num:
                    return (c[0] * c[0]).test("le", x) & (x % c[0]).test("ne", 0) & c[0].test("lt", 400)

                divisor = k.loop_while([one + 1], divides, lambda c: [c[0] + 1], trips=6)[0]
                return k.choose((divisor * divisor).test("gt", x), one, zero)
            case _:  # two counters that fight

                def fight(c: list[Num]) -> list[Num]:
                    p, q = either(
                        c[0].test("gt", c[1]), lambda: [c[0] - c[1], c[1] + 1], lambda: [c[0] + 3, c[1] - c[0] + 1]
                    )
                    return [p & 0xFFFF, q & 0xFFFF, c[2] + 1]

                limit = d.pick("limit", (20, 80))
                return k.loop_while([x, fresh(i, 9), zero], lambda c: c[2].test("lt", limit), fight, trips=limit)[0]
        raise AssertionError

    if outer == "scf":
        with k.scf_loop(0, n) as i:
            k.store(result(i), out, i)
    elif outer == "affine":
        with k.loop(0, n) as i:
            k.store(result(i), out, i)
    else:
        k.store(k.scf_fold(0, n, [zero], lambda i, c: [c[0] + result(i)])[0], out, 0)


def _text(d: Drawn, n: int, alphabet: int, element: str) -> Array:
    """A text of small letters, filled by the kernel."""
    k, salt = d.k, d.rng.randrange(1 << 16)
    text = k.array(element, n)
    runs = d.chance("runs", 0.4)
    with k.loop(0, n) as i:
        at = k.number(i, "i32")
        k.store((k.hashed(at >> 2 if runs else at, salt) % alphabet).to(element), text, i)
    return text


def ctl_strings(d: Drawn) -> None:
    """Matching (naive, KMP, Horspool, Shift-And), run-length coding, palindromes, words, brackets."""
    k = d.k
    style = d.pick(
        "style",
        ("naive", "kmp", "horspool", "shift-and", "run-length", "decode", "palindrome", "words", "brackets", "hex"),
    )
    letter = d.pick("letter", ("i8", "i32"))
    n = max(24, d.size(d.work / {"naive": 3, "palindrome": 5, "hex": 1.5}.get(style, 1.8), 24))
    alphabet = d.pick("alphabet", (2, 3, 5))
    text = _text(d, n, alphabet, letter)
    m = min(n // 2, d.pick("pattern", (3, 5, 8, 20)))
    izero, one = k.constant(0, "i32"), k.constant(1, "i32")
    out = k.array("i32", n)
    pattern = _text(d, m, alphabet, letter) if style in ("naive", "kmp", "horspool", "shift-and") else text
    match style:
        case "naive":

            def place(i: Num, c: list[Num]) -> list[Num]:
                def same(w: list[Num]) -> Num:
                    inside = w[0].test("ult", m)
                    at = w[0].min(m - 1)
                    return inside & k.load(text, i + at).test("eq", k.load(pattern, at))

                [length] = k.loop_while([k.index(0)], same, lambda w: [w[0] + 1], trips=1 + 1 / alphabet)
                return [c[0] + length.test("eq", m).to("i32")]

            k.store(k.scf_fold(0, n - m + 1, [izero], place)[0], out, 0)
        case "kmp":
            border = k.local("i32", m + 1)
            k.store(izero, border, 0)
            k.store(izero, border, 1)

            def shorter(c: list[Num], letter_: Num) -> Num:
                at = c[0].to("index").min(m - 1)
                return c[0].test("gt", 0) & k.load(pattern, at).test("ne", letter_)

            def extend(i: Num, read: Array, c: list[Num]) -> Num:
                here = k.load(read, i)
                [length] = k.loop_while(
                    c[:1], lambda w: shorter(w, here), lambda w: [k.load(border, w[0].to("index"))], trips=1
                )
                hit = k.load(pattern, length.to("index").min(m - 1)).test("eq", here)
                return length + hit.to("i32")

            def build(i: Num, c: list[Num]) -> list[Num]:
                new = extend(i, pattern, c)
                k.store(new, border, i + 1)
                return [new]

            k.scf_fold(1, m, [izero], build)

            def scan(i: Num, c: list[Num]) -> list[Num]:
                new = extend(i, text, c)
                full = new.test("eq", m)
                return [k.choose(full, k.load(border, k.index(m)), new), c[1] + full.to("i32")]

            k.store(k.scf_fold(0, n, [izero, izero], scan)[1], out, 0)
        case "horspool":
            jump = k.local("i32", alphabet)
            with k.loop(0, alphabet) as a:
                k.store(k.constant(m, "i32"), jump, a)
            with k.loop(0, m - 1) as i:
                k.store(k.number(i, "i32") * -1 + (m - 1), jump, k.load(pattern, i).to("index"))

            def inside(c: list[Num]) -> Num:
                return c[0].test("sle", n - m)

            def try_(c: list[Num]) -> list[Num]:
                def same(w: list[Num]) -> Num:
                    at = w[0].max(0)
                    return w[0].test("sge", 0) & k.load(text, c[0] + at).test("eq", k.load(pattern, at))

                [left] = k.loop_while([k.index(m - 1)], same, lambda w: [w[0] - 1], trips=1 + 1 / alphabet)
                step = k.load(jump, k.load(text, c[0] + (m - 1)).to("index")).to("index")
                return [c[0] + step, c[1] + left.test("slt", 0).to("i32")]

            k.store(k.loop_while([k.index(0), izero], inside, try_, trips=n / 2)[1], out, 0)
        case "shift-and":
            masks = k.local("i32", alphabet)
            with k.loop(0, alphabet) as a:
                k.store(izero, masks, a)
            with k.loop(0, m) as i:
                at = k.load(pattern, i).to("index")
                k.store(k.load(masks, at) | (one << k.number(i, "i32")), masks, at)

            def move(i: Index, c: list[Num]) -> list[Num]:
                state = ((c[0] << 1) | 1) & k.load(masks, k.load(text, i).to("index"))
                return [state, c[1] + ((state >> (m - 1)) & 1)]

            k.store(k.fold(0, n, [izero, izero], move)[1], out, 0)
        case "run-length" | "decode":
            letters, lengths = k.array(letter, n), k.array("i32", n)

            def run(c: list[Num]) -> list[Num]:
                here = k.load(text, c[0])

                def same(w: list[Num]) -> Num:
                    return w[0].test("ult", n) & k.load(text, w[0].min(n - 1)).test("eq", here)

                [end] = k.loop_while([c[0] + 1], same, lambda w: [w[0] + 1], trips=2)
                k.store(here, letters, c[1])
                k.store((end - c[0]).to("i32"), lengths, c[1])
                return [end, c[1] + 1]

            _, count = k.loop_while([k.index(0), k.index(0)], lambda c: c[0].test("ult", n), run, trips=n / 2)
            if style == "decode":
                back = k.array(letter, n)

                def write(r: Num, c: list[Num]) -> list[Num]:
                    value, length = k.load(letters, r), k.load(lengths, r).to("index")
                    with k.scf_loop(0, length, trips=2) as o:
                        k.store(value, back, c[0] + o)
                    return [c[0] + length]

                k.scf_fold(0, count, [k.index(0)], write, trips=n / 2)
            k.store(count.to("i32"), out, 0)
        case "palindrome":

            def grow(i: Num, c: list[Num]) -> list[Num]:
                def mirrors(w: list[Num]) -> Num:
                    low, high = i - w[0], i + w[0]
                    inside = low.test("sge", 0) & high.test("slt", n)
                    return inside & k.load(text, low.max(0)).test("eq", k.load(text, high.min(n - 1)))

                [radius] = k.loop_while([k.index(1)], mirrors, lambda w: [w[0] + 1], trips=1.5)
                return [c[0].max(radius)]

            k.store(k.scf_fold(0, n, [k.index(0)], grow)[0].to("i32"), out, 0)
        case "words":

            def letter_of(i: Num, c: list[Num]) -> list[Num]:
                space = k.load(text, i).test("eq", 0)

                def ends() -> list[Num]:
                    def keep() -> list[Num]:
                        k.store(c[1], out, c[0])
                        return [c[0] + 1, izero]

                    return k.if_else(c[1].test("gt", 0), keep, lambda: [c[0], c[1]], share=0.6)

                return k.if_else(space, ends, lambda: [c[0], c[1] + 1], share=1 / alphabet)

            k.scf_fold(0, n, [k.index(0), izero], letter_of)
        case "brackets":
            stack = k.local("i32", 64)

            def token(i: Num, c: list[Num]) -> list[Num]:
                here = k.load(text, i).to("i32")

                def opens() -> list[Num]:
                    k.store(here, stack, c[0])
                    return [(c[0] + 1).min(63), c[1]]

                def closes() -> list[Num]:
                    empty = c[0].test("eq", 0)
                    top = k.load(stack, k.choose(empty, c[0], c[0] - 1))
                    good = (top + 1).test("eq", here)
                    return [k.choose(empty, c[0], c[0] - 1), c[1] + good.to("i32")]

                return k.if_else((here & 1).test("eq", 0), opens, closes)

            k.store(k.scf_fold(0, n, [k.index(0), izero], token)[1], out, 0)
        case _:  # numbers read from digits

            def parse(i: Num, c: list[Num]) -> list[Num]:
                digit = k.load(text, i).to("i32")

                def flush() -> list[Num]:
                    k.store(c[0], out, c[1])
                    return [izero, c[1] + 1]

                return k.if_else(digit.test("eq", 0), flush, lambda: [(c[0] << 4) | digit, c[1]], share=1 / alphabet)

            k.scf_fold(0, n, [izero, k.index(0)], parse)


def ctl_machines(d: Drawn) -> None:
    """State machines by table, by switch and by branches; interpreters, Turing machines, sets of states."""
    k = d.k
    style = d.pick(
        "style", ("table", "switch", "switch", "branches", "interpreter", "interpreter", "tape", "elevator", "nfa")
    )
    n = max(16, d.size(d.work / {"table": 2, "interpreter": 3}.get(style, 2), 16))
    states = d.pick("states", (3, 4, 6, 8))
    inputs = d.pick("inputs", (2, 4))
    text = k.array(d.pick("letter", ("i8", "i32")), n)
    out = k.array("i32", 16)
    salt, izero = d.rng.randrange(1 << 16), k.constant(0, "i32")

    def letter(i: Index | Num) -> Num:
        mixed = k.load(text, i).to("i32") + k.hashed(k.number(i, "i32"), salt)
        return mixed & (inputs - 1)

    if style == "table":
        rules, counts = k.local("i32", states, inputs), k.array("i32", states)
        with k.loop(0, states) as s, k.loop(0, inputs) as x:
            k.store(k.hashed(k.number(s * inputs + x, "i32"), salt) % states, rules, s, x)
        with k.loop(0, states) as s:
            k.store(izero, counts, s)

        def step(i: Index, c: list[Num]) -> list[Num]:
            new = k.load(rules, c[0].to("index"), letter(i).to("index"))
            if d.forced.get("counted", states % 2 == 0):
                k.store(k.load(counts, new.to("index")) + 1, counts, new.to("index"))
            return [new]

        k.store(k.fold(0, n, [izero], step)[0], out, 0)
    elif style in ("switch", "branches", "elevator"):
        jumps = [[d.rng.randrange(states) for _ in range(inputs)] for _ in range(states)]
        for s, row in enumerate(jumps):  # every state is reached
            row[s % inputs] = (s + 1) % states
        gains = [d.rng.randint(-3, 5) for _ in range(states)]

        def arm(s: int, x: Num, total: Num) -> list[Num]:
            new = k.constant(jumps[s][-1], "i32")
            for v in range(inputs - 1):
                new = k.choose(x.test("eq", v), k.constant(jumps[s][v], "i32"), new)
            match s % 4:
                case 0:
                    total = total + gains[s]
                case 1:
                    total = total ^ (x + gains[s])
                case 2:
                    total = (total << 1) + x
                case _:
                    total = k.choose(total.test("gt", 1000), total.sar(3), total + x * 7)
            return [new, total]

        def move(i: Num, c: list[Num]) -> list[Num]:
            x = letter(i)
            if style == "switch":
                return k.switch(c[0].to("index"), [lambda s=s: arm(s, x, c[1]) for s in range(states)])

            def chain(s: int) -> list[Num]:
                if s == states - 1:
                    return arm(s, x, c[1])
                return k.if_else(c[0].test("eq", s), lambda: arm(s, x, c[1]), lambda: chain(s + 1))

            return chain(0)

        state, total = k.scf_fold(0, n, [izero, izero], move)
        k.store(state, out, 0)
        k.store(total, out, 1)
    elif style == "interpreter":  # a loop over a short program of small instructions
        length = d.pick("length", (6, 11, 20))
        code, registers = k.local("i32", length), k.local("i32", 4)
        with k.loop(0, length) as p:
            k.store(k.hashed(k.number(p, "i32"), salt), code, p)
        with k.loop(0, 4) as r:
            k.store(k.number(r, "i32") + 1, registers, r)

        def execute(c: list[Num]) -> list[Num]:
            word = k.load(code, c[0])
            a, b = ((word >> 4) & 3).to("index"), ((word >> 8) & 3).to("index")
            x, y = k.load(registers, a), k.load(registers, b)

            def put(value: Num, jump: Num | int = 1) -> list[Num]:
                k.store(value, registers, a)
                return [k.lit(jump, "index")]

            arms: Sequence[Callable[[], Sequence[Num]]] = [
                lambda: put(x + y),
                lambda: put(x - y),
                lambda: put(x * 3 ^ y),
                lambda: put(x >> 1),
                lambda: put(y + 1, k.choose(y.test("gt", x), k.index(2), k.index(1))),
                lambda: put(x & 0xFFFF, k.choose((x & 1).test("eq", 0), k.index(3), k.index(1))),
                lambda: put(x | (y << 2)),
                lambda: put(0 - x),
            ][: d.pick("opcodes", (4, 6, 8))]
            [jump] = k.switch((word & 7).to("index"), arms)
            place = c[0] + jump
            return [k.choose(place.test("uge", length), k.index(0), place), c[1] + 1]

        k.loop_while([k.index(0), izero], lambda c: c[1].test("lt", n), execute, trips=n)
        with k.loop(0, 4) as r:
            k.store(k.load(registers, r), out, r)
    elif style == "tape":  # a Turing machine on a ring
        size = d.pick("tape", (32, 128))
        tape = k.local("i32", size)
        with k.loop(0, size) as p:
            k.store(izero, tape, p)
        writes = [d.rng.randint(0, 1) for _ in range(2 * states)]
        moves = [d.rng.choice((-1, 1)) for _ in range(2 * states)]
        nexts = [d.rng.randrange(states) for _ in range(2 * states)]

        def tick(_: Num, c: list[Num]) -> list[Num]:
            place, state = c
            here = k.load(tape, place)
            rule = state * 2 + here
            write, move_, new = (k.constant(v[-1], "i32") for v in (writes, moves, nexts))
            for r in range(2 * states - 1):
                hit = rule.test("eq", r)
                write = k.choose(hit, k.constant(writes[r], "i32"), write)
                move_ = k.choose(hit, k.constant(moves[r], "i32"), move_)
                new = k.choose(hit, k.constant(nexts[r], "i32"), new)
            k.store(write, tape, place)
            return [((place.to("i32") + move_) & (size - 1)).to("index"), new]

        n = max(16, n // states)
        k.store(k.scf_fold(0, n, [k.index(size // 2), izero], tick)[1], out, 0)
    else:  # all states of an NFA at once, as bits
        rules = k.local("i32", inputs, states)
        with k.loop(0, inputs) as x, k.loop(0, states) as s:
            k.store(k.hashed(k.number(x * states + s, "i32"), salt) & ((1 << states) - 1), rules, x, s)

        def spread(i: Num, c: list[Num]) -> list[Num]:
            x = letter(i).to("index")

            def one(s: Num, inner: list[Num]) -> list[Num]:
                active = ((c[0] >> s.to("i32")) & 1).test("ne", 0)
                return k.if_else(active, lambda: [inner[0] | k.load(rules, x, s)], lambda: inner)

            [new] = k.scf_fold(0, states, [izero], one)
            dead = new.test("eq", 0)
            return [k.choose(dead, k.constant(1, "i32"), new), c[1] + dead.to("i32")]

        n = max(8, n // states)
        k.store(k.scf_fold(0, n, [k.constant(1, "i32"), izero], spread)[1], out, 0)


def ctl_exits(d: Drawn) -> None:
    """Loops left early: first match, first mismatch, running sums, rows, cycles, searches in grids."""
    k = d.k
    style = d.pick("style", ("first", "mismatch", "sum", "rows", "cycle", "grid", "bound", "retry", "peak", "saddle"))
    element = d.pick("element", ("f32", "f64", "i32", "i64"))
    times = max(2, round((d.work / 4) ** d.rng.uniform(0.3, 0.6)))
    n = max(8, d.size(d.work / 4 / times, 8))
    salt, zero, izero = d.rng.randrange(1 << 16), k.constant(0, element), k.constant(0, "i32")
    data, out = k.array(element, n), k.array("i32", times)
    level = 1.48 if element[0] == "f" else 3
    match style:
        case "first" | "peak":

            def until(start: Num) -> Num:
                def goes(c: list[Num]) -> Num:
                    inside = c[0].test("ult", n - 1)
                    at = c[0].min(n - 2)
                    here = k.load(data, at)
                    if style == "peak":
                        after = k.load(data, at + 1)
                        return inside & (here * 2 - after).test("lt", level)
                    return inside & here.test("lt", level)

                return k.loop_while([start], goes, lambda c: [c[0] + 1], trips=min(n / 2, 12))[0]

            with k.scf_loop(0, times) as t:
                start = (k.hashed(t.to("i32"), salt) % n).to("index")
                k.store(until(start).to("i32"), out, t)
        case "mismatch" | "rows":
            rows = k.array("i32", times, n)
            with k.loop(0, times) as t, k.loop(0, n) as i:  # rows that differ late
                late = k.hashed(k.number(t, "i32"), salt) % n
                k.store(
                    (k.number(i, "i32") & 7) + k.number(i, "i32").test("sge", late).to("i32") * k.number(t, "i32"),
                    rows,
                    t,
                    i,
                )
            with k.scf_loop(0, times - 1) as t:

                def same(c: list[Num], t: Num = t) -> Num:
                    inside = c[0].test("ult", n)
                    at = c[0].min(n - 1)
                    return inside & k.load(rows, t, at).test("eq", k.load(rows, t + 1, at))

                [place] = k.loop_while([k.index(0)], same, lambda c: [c[0] + 1], trips=n / 3)
                if style == "rows":
                    at = place.min(n - 1)
                    gap = k.load(rows, t, at) - k.load(rows, t + 1, at)
                    k.store(gap, out, t)
                else:
                    k.store(place.to("i32"), out, t)
        case "sum" | "bound":
            with k.scf_loop(0, times) as t:
                limit = (k.hashed(t.to("i32"), salt) % n).to(element)

                def below(c: list[Num], limit: Num = limit) -> Num:
                    return c[0].test("ult", n) & c[1].test("lt", limit)

                def more(c: list[Num]) -> list[Num]:
                    value = k.load(data, c[0])
                    return [c[0] + 1, c[1] + (value if style == "sum" else value * value)]

                place, _ = k.loop_while([k.index(0), zero], below, more, trips=n / 2)
                k.store(place.to("i32"), out, t)
        case "cycle":  # tortoise and hare on x -> a x + c mod m
            modulus = d.pick("modulus", (1009, 65536, 9973))

            def onward(x: Num) -> Num:
                return (x * x + 12345 + salt) % modulus

            with k.scf_loop(0, times) as t:
                start = k.hashed(t.to("i32"), salt) % modulus

                def apart(c: list[Num]) -> Num:
                    return c[0].test("ne", c[1]) & c[2].test("lt", 200)

                def run(c: list[Num]) -> list[Num]:
                    return [onward(c[0]), onward(onward(c[1])), c[2] + 1]

                found = k.loop_while([onward(start), onward(onward(start)), izero], apart, run, trips=50)
                k.store(found[2], out, t)
        case "grid" | "saddle":  # staircase search in a sorted matrix
            side = max(4, round(n**0.5) * 2)
            matrix = k.array("i32", side, side)
            with k.loop(0, side) as i, k.loop(0, side) as j:
                k.store(k.number(i * 3 + j * 2, "i32"), matrix, i, j)
            with k.scf_loop(0, times) as t:
                wanted = k.hashed(t.to("i32"), salt) % (5 * side)

                def open_(c: list[Num], wanted: Num = wanted) -> Num:
                    inside = c[0].test("slt", side) & c[1].test("sge", 0)
                    return inside & k.load(matrix, c[0].min(side - 1), c[1].max(0)).test("ne", wanted)

                def walk(c: list[Num], wanted: Num = wanted) -> list[Num]:
                    less = k.load(matrix, c[0], c[1]).test("lt", wanted)
                    if style == "grid":
                        return [k.choose(less, c[0] + 1, c[0]), k.choose(less, c[1], c[1] - 1)]
                    return k.if_else(less, lambda: [c[0] + 1, c[1]], lambda: [c[0], c[1] - 1])

                place = k.loop_while([k.index(0), k.index(side - 1)], open_, walk, trips=side)
                k.store((place[0] * side + place[1]).to("i32"), out, t)
        case _:  # rejection: tries until one is good
            with k.scf_loop(0, times) as t:
                odds = d.pick("odds", (3, 10, 60))

                def bad(c: list[Num]) -> Num:
                    return (c[0] % odds).test("ne", 0) & c[1].test("lt", 500)

                found = k.loop_while(
                    [k.hashed(t.to("i32"), salt), izero], bad, lambda c: [k.hashed(c[0], 3), c[1] + 1], trips=odds
                )
                k.store(found[1], out, t)


def ctl_branches(d: Drawn) -> None:
    """Nested conditions: decision trees, clipping, piecewise functions, guards, case ladders."""
    k = d.k
    style = d.pick(
        "style", ("tree", "tree", "random", "random", "piecewise", "clip", "boxes", "ladder", "guarded", "divergent")
    )
    element = d.pick("element", ("f32", "f64", "i32", "i64"), (3, 2, 3, 1))
    depth = d.pick("depth", (2, 3, 4, 5))
    columns = d.pick("columns", (2, 3, 4))
    n = max(8, d.size(d.work / {"random": 6, "tree": 2 * depth, "ladder": 6}.get(style, 4), 8))
    data, out = k.array(element, columns, n), k.array(element, n)
    real = element[0] == "f"
    marks = d.rng
    rows = max(1, round(n**0.5)) if d.chance("two loops", 0.3) else 1

    def level() -> float:
        return round(marks.uniform(0.55, 1.45), 3) if real else marks.randint(0, 3)

    def branchy(i: Index | Num, values: list[Num]) -> Num:
        match style:
            case "tree":

                def node(left: int) -> list[Num]:
                    if left == 0:
                        return [k.constant(level(), element)]
                    feature, mark = values[marks.randrange(columns)], level()
                    return k.if_else(
                        feature.test(marks.choice(("lt", "gt")), mark), lambda: node(left - 1), lambda: node(left - 1)
                    )

                return node(depth)[0]
            case "random":

                def arm(left: int, value: Num) -> list[Num]:
                    for _ in range(marks.randint(0, 2)):
                        other = values[marks.randrange(columns)]
                        value = marks.choice(
                            (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a.max(b), lambda a, b: a * b)
                        )(value, other)
                        if real:
                            value = value.clamp(-4, 4)
                    if left == 0:
                        return [value]
                    test = value.test(marks.choice(("lt", "gt", "ge")), level())
                    if marks.random() < 0.3:
                        test = test & values[marks.randrange(columns)].test("lt", level())
                    if marks.random() < 0.25:
                        return arm(left - 1, k.choose(test, value, values[0]))
                    uneven = marks.random() < 0.4
                    return k.if_else(
                        test, lambda: arm(left - 1, value), lambda: [value] if uneven else arm(left - 1, value)
                    )

                return arm(min(depth, 4), values[0])[0]
            case "piecewise":
                x = values[0]

                def part(m: int) -> list[Num]:
                    if m == depth:
                        return [x * (m + 1)]
                    return k.if_else(
                        x.test("lt", 0.6 + 0.8 * m / depth if real else m), lambda: [x * x + m], lambda: part(m + 1)
                    )

                return part(0)[0]
            case "clip":
                x = values[0] * 2 - values[1]
                low, high = level(), level() + 1

                def inside() -> list[Num]:
                    return k.if_else(x.test("gt", high), lambda: [k.constant(high, element)], lambda: [x])

                return k.if_else(x.test("lt", low), lambda: [k.constant(low, element)], inside)[0]
            case "boxes":
                result = k.constant(0, element)
                for _ in range(depth):
                    tests = [values[c].test("gt", level()) for c in range(columns)]
                    test = tests[0]
                    for other in tests[1:]:
                        test = test & other if marks.random() < 0.6 else test | other
                    kept, extra = result, values[marks.randrange(columns)]
                    [result] = k.if_else(test, lambda kept=kept, extra=extra: [kept + extra], lambda kept=kept: [kept])
                return result
            case "ladder":
                choice = (k.hashed(k.number(i, "i32"), 5) % (depth + 2)).to("index")
                functions = [
                    lambda v=values: v[0] + v[1],
                    lambda v=values: v[0] * v[1],
                    lambda v=values: v[0] - v[1] * 2,
                    lambda v=values: v[0].max(v[1]),
                    lambda v=values: v[0] * v[0] + 1,
                    lambda v=values: v[1] - v[0],
                    lambda v=values: v[0].min(v[1]) * 3,
                ]
                return k.switch(choice, [lambda f=f: [f()] for f in functions[: depth + 2]])[0]
            case "guarded":
                x, y = values[0], values[1]
                if not real:
                    guard = y.test("ne", 0)
                    return k.if_else(guard, lambda: [x * 16 / k.choose(guard, y, 1)], lambda: [x])[0]
                return k.if_else(y.test("gt", 0.8), lambda: [(x / y).sqrt()], lambda: [x + y])[0]
            case _:  # long work on one side, little on the other
                x, y = values[0], values[1]
                rounds = d.pick("rounds", (4, 16))
                scale = 0.9 if real else 3

                def heavy() -> list[Num]:
                    return k.scf_fold(0, rounds, [x], lambda _, c: [c[0] * scale + y * (0.1 if real else 1)])

                return k.if_else(y.test("gt", level()), heavy, lambda: [x])[0]
        raise AssertionError

    loops = d.pick("loops", ("affine", "scf"))
    if rows > 1 and loops == "affine":
        data, out = k.array(element, columns, rows, rows), k.array(element, rows, rows)
        with k.loop(0, rows) as y, k.loop(0, rows) as x:
            k.store(branchy(x, [k.load(data, c, y, x) for c in range(columns)]), out, y, x)
    elif loops == "affine":
        with k.loop(0, n) as i:
            k.store(branchy(i, [k.load(data, c, i) for c in range(columns)]), out, i)
    else:
        with k.scf_loop(0, n) as j:
            k.store(branchy(j, [k.load(data, k.index(c), j) for c in range(columns)]), out, j)


def ctl_graphs(d: Drawn) -> None:
    """Loops and branches written as blocks: counted and data-dependent loops, nests, early exits, diamonds."""
    k = d.k
    style = d.pick(
        "style",
        (
            "count",
            "nest",
            "nest",
            "search",
            "collatz",
            "diamonds",
            "diamonds",
            "two exits",
            "matmul",
            "bubble",
            "sequence",
        ),
    )
    element = d.pick("element", ("f32", "f64", "i32", "i64"))
    zero, start = k.constant(0, element), k.index(0)
    real = element[0] == "f"

    def counted(
        name: str, size: int, carried: list[Num], body: Callable[[Num, list[Num]], list[Num]], trips: float = 1.0
    ) -> list[Num]:
        """A loop of three blocks; the current block ends here and the one behind the loop is left open."""
        kinds = [c.type for c in carried]
        k.branch(f"{name}_head", start, *carried)
        i, *c = k.block(f"{name}_head", "index", *kinds, trips=size * trips)
        k.branch_if(i.test("ult", size), f"{name}_body", [], f"{name}_done", [])
        k.block(f"{name}_body", trips=size * trips)
        new = body(i, c)
        k.branch(f"{name}_head", i + 1, *new)
        k.block(f"{name}_done", trips=trips)
        return c

    match style:
        case "count" | "sequence":
            n = max(8, d.size(d.work / 3, 8))
            repeats = d.pick("loops", (1, 2, 3)) if style == "sequence" else 1
            a, b = k.array(element, n), k.array(element, repeats)
            for r in range(repeats):
                kind = d.rng.randrange(3)

                def add(i: Num, c: list[Num], kind: int = kind) -> list[Num]:
                    value = k.load(a, i)
                    if kind == 0:
                        return [c[0] + value]
                    if kind == 1:
                        return [c[0].max(value * 2)]
                    k.store(value * (0.5 if real else 3) + (0.5 if real else 1), a, i)
                    return [c[0] + value * value]

                [total] = counted(f"loop{r}", n // repeats + 1 if n // repeats + 1 <= n else n, [zero], add)
                k.store(total, b, r)
        case "nest" | "matmul":
            if style == "matmul":
                n = max(4, d.size((d.work / 3) ** (1 / 3), 4))
                a, b, c_ = (k.array(element, n, n) for _ in range(3))
                k.branch("i_head", start)
                [i] = k.block("i_head", "index", trips=n)
                k.branch_if(i.test("ult", n), "i_body", [], "end", [])
                k.block("i_body", trips=n)
                k.branch("j_head", start)
                [j] = k.block("j_head", "index", trips=n * n)
                k.branch_if(j.test("ult", n), "j_body", [], "i_next", [])
                k.block("j_body", trips=n * n)
                [total] = counted("m", n, [zero], lambda m, c: [c[0] + k.load(a, i, m) * k.load(b, m, j)], trips=n * n)
                k.store(total, c_, i, j)
                k.branch("j_head", j + 1)
                k.block("i_next", trips=n)
                k.branch("i_head", i + 1)
                k.block("end")
                return
            rows, columns = d.sides(2, d.work / 4, smallest=3)
            a, b = k.array(element, rows, columns), k.array(element, rows)
            triangle = d.chance("triangle", 0.4)
            columns = rows if triangle else columns
            a.extents = [rows, columns]
            k.branch("row", start)
            [i] = k.block("row", "index", trips=rows)
            k.branch_if(i.test("ult", rows), "row_body", [], "end", [])
            k.block("row_body", trips=rows)
            k.branch("cell", start, zero)
            j, total = k.block("cell", "index", element, trips=rows * columns / (2 if triangle else 1))
            inside = j.test("ule", i) if triangle else j.test("ult", columns)
            k.branch_if(inside, "cell_body", [], "row_done", [])
            k.block("cell_body", trips=rows * columns / (2 if triangle else 1))
            value = k.load(a, i, j)
            if d.chance("skip", 0.5):
                k.branch_if(value.test("gt", 1), "take", [], "cell_next", [total])
                k.block("take", trips=rows * columns / 4)
                k.branch("cell_next", total + value)
                [new] = k.block("cell_next", element, trips=rows * columns / 2)
            else:
                new = total + value * value
            k.branch("cell", j + 1, new)
            k.block("row_done", trips=rows)
            k.store(total, b, i)
            k.branch("row", i + 1)
            k.block("end")
        case "search" | "two exits":
            times = max(2, round((d.work / 3) ** 0.5))
            n = max(8, round(d.work / 2 / times))
            a, out = k.array(element, n), k.array("index", times)
            level = k.constant(d.real(1.3, 1.49) if real else 2, element)
            k.branch("query", start)
            [t] = k.block("query", "index", trips=times)
            k.branch_if(t.test("ult", times), "begin", [], "end", [])
            k.block("begin", trips=times)
            first = (t * 7919) % n
            trips = times * min(n / 2, 12)
            k.branch("head", first)
            [i] = k.block("head", "index", trips=trips)
            k.branch_if(i.test("ult", n), "look", [], "found", [k.index(n)])
            k.block("look", trips=trips)
            value = k.load(a, i)
            if style == "two exits":
                k.branch_if(value.test("gt", level), "found", [i], "again", [])
                k.block("again", trips=trips)
                other = (i & 63).test("eq", 63)
                k.branch_if(other, "found", [i + 1], "head", [i + 1])
            else:
                k.branch_if(value.test("gt", level), "found", [i], "head", [i + 1])
            [place] = k.block("found", "index", trips=times)
            k.store(place, out, t)
            k.branch("query", t + 1)
            k.block("end")
        case "collatz":
            n = max(4, d.size(d.work / 25, 4))
            out = k.array("i32", n)
            limit = d.pick("limit", (50, 150))
            k.branch("outer", start)
            [t] = k.block("outer", "index", trips=n)
            k.branch_if(t.test("ult", n), "begin", [], "end", [])
            k.block("begin", trips=n)
            k.branch("head", t.to("i32") + 1, k.constant(0, "i32"))
            x, steps = k.block("head", "i32", "i32", trips=n * 45)
            k.branch_if(x.test("ne", 1) & steps.test("lt", limit), "step", [], "store", [])
            k.block("step", trips=n * 45)
            k.branch_if((x & 1).test("eq", 0), "even", [], "odd", [])
            k.block("even", trips=n * 30)
            k.branch("head", x >> 1, steps + 1)
            k.block("odd", trips=n * 15)
            k.branch("head", x * 3 + 1, steps + 1)
            k.block("store", trips=n)
            k.store(steps, out, t)
            k.branch("outer", t + 1)
            k.block("end")
        case "diamonds":  # a loop with a row of two-way branches in its body
            n = max(8, d.size(d.work / 12, 8))
            length = d.pick("length", (2, 3, 5, 8))
            a, b = k.array(element, n), k.array(element, n)
            tops = [d.real(0.6, 1.4) for _ in range(length)]
            k.branch("head", start)
            [i] = k.block("head", "index", trips=n)
            k.branch_if(i.test("ult", n), "body", [], "end", [])
            k.block("body", trips=n)
            value = k.load(a, i)
            for m, top in enumerate(tops):
                kind = d.rng.randrange(4)
                test = value.test("gt", top if real else m % 3)
                k.branch_if(test, f"left{m}", [], f"right{m}", [])
                k.block(f"left{m}", trips=n / 2)
                if kind == 0:
                    left = value * (0.5 if real else 3)
                elif kind == 1:
                    left = value + k.load(b, i)
                elif kind == 2:
                    left = value * value
                else:
                    left = value - 1
                k.branch(f"join{m}", left.clamp(-4, 4) if real else left)
                k.block(f"right{m}", trips=n / 2)
                k.branch(f"join{m}", value + (0.3 if real else 1))
                [value] = k.block(f"join{m}", element, trips=n)
            k.store(value, b, i)
            k.branch("head", i + 1)
            k.block("end")
        case _:  # bubble sort
            n = max(5, round((d.work / 3) ** 0.5))
            a = k.array(element, n)
            k.branch("sweep", start)
            [s] = k.block("sweep", "index", trips=n)
            k.branch_if(s.test("ult", n), "begin", [], "end", [])
            k.block("begin", trips=n)
            k.branch("head", start)
            [i] = k.block("head", "index", trips=n * n)
            k.branch_if(i.test("ult", n - 1), "compare", [], "next", [])
            k.block("compare", trips=n * n)
            x, y = k.load(a, i), k.load(a, i + 1)
            k.branch_if(x.test("gt", y), "swap", [], "keep", [])
            k.block("swap", trips=n * n / 3)
            k.store(y, a, i)
            k.store(x, a, i + 1)
            k.branch("keep")
            k.block("keep", trips=n * n)
            k.branch("head", i + 1)
            k.block("next", trips=n)
            k.branch("sweep", s + 1)
            k.block("end")


KINDS: dict[str, Kind] = {
    "ctl_loops": ctl_loops,
    "ctl_strings": ctl_strings,
    "ctl_machines": ctl_machines,
    "ctl_exits": ctl_exits,
    "ctl_branches": ctl_branches,
    "ctl_graphs": ctl_graphs,
}
FAMILIES = families_of(ORIGIN, KINDS)
