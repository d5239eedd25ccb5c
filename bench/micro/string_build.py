# SPDX-License-Identifier: MIT
#
# bench/micro/string_build.py: a long text made of small pieces, ints among them: 1000 lines, n times over. Lengths
# are in UTF-8, as in the other languages.

import sys

NAMES = ("alpha", "beta", "gamma", "delta", "한글")


def main(rounds):
    total = 0
    for n in range(rounds):
        parts = []
        expected = 0
        for i in range(1000):
            name = NAMES[i % 5]
            parts.append(f"line {i}: {name} = {i * n};\n")
            expected += len(name) + 12
        out = "".join(parts)
        size = len(out.encode())
        assert out[:7] == "line 0:" and size >= expected, "the text is wrong"
        total += size
    print(total)


main(int(sys.argv[1]))
