# SPDX-License-Identifier: MIT
#
# bench/micro/map_strings.py: maps with str keys. Counts 20,000 words of which 5000 differ, looks all of them up again
# and as many that are missing, n times over.

import sys

DISTINCT = 5000
WORDS = 20000


def main(rounds):
    words = [f"word-{i * 7919 % DISTINCT}" for i in range(WORDS)]
    missing = [f"other-{i}" for i in range(DISTINCT)]
    total = 0
    for _ in range(rounds):
        counts = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        found = 0
        for i in range(WORDS):
            found += counts[words[i]] * (i % 7)
        for word in missing:
            assert word not in counts, "it is there"
        assert len(counts) == DISTINCT, "wrong number of words"
        total += found
    print(total)


main(int(sys.argv[1]))
