# SPDX-License-Identifier: MIT
#
# bench/micro/hangul_walk.py: bytes of bytes and integer arithmetic. Decodes UTF-8 and splits every Hangul syllable
# into lead, vowel and tail, n times over the same text; the counts of jamo must rise by the same amount each time.

import sys

TEXT = ("모든 국민은 인간으로서의 존엄과 가치를 가지며, 행복을 추구할 권리를 가진다. "
        "국가는 개인이 가지는 불가침의 기본적 인권을 확인하고 이를 보장할 의무를 진다. "
        "(Constitution, art. 10) 😀\n")

SYLLABLE_FIRST = 0xac00
SYLLABLE_LAST = 0xd7a3
TAILS = 28
VOWELS_TAILS = 588


class Counts:
    __slots__ = ("leads", "vowels", "tails", "others")

    def __init__(self):
        self.leads = [0] * 19
        self.vowels = [0] * 21
        self.tails = [0] * TAILS
        self.others = 0


def walk(data, counts):
    leads, vowels, tails = counts.leads, counts.vowels, counts.tails
    at = 0
    end = len(data)
    while at < end:
        code = lead = data[at]
        if lead < 0x80:
            at += 1
        elif lead < 0xe0:
            code = (lead - 0xc0) * 64 + (data[at + 1] - 0x80)
            at += 2
        elif lead < 0xf0:
            code = ((lead - 0xe0) * 64 + (data[at + 1] - 0x80)) * 64 + (data[at + 2] - 0x80)
            at += 3
        else:
            code = ((((lead - 0xf0) * 64 + (data[at + 1] - 0x80)) * 64 + (data[at + 2] - 0x80)) * 64
                    + (data[at + 3] - 0x80))
            at += 4
        if SYLLABLE_FIRST <= code <= SYLLABLE_LAST:
            index = code - SYLLABLE_FIRST
            leads[index // VOWELS_TAILS] += 1
            vowels[index % VOWELS_TAILS // TAILS] += 1
            tails[index % TAILS] += 1
        else:
            counts.others += code
    return counts


def weigh(counts):
    total = counts.others
    for i, count in enumerate(counts.leads):
        total += count * (i + 1)
    for i, count in enumerate(counts.vowels):
        total += count * (i + 1) * 100
    for i, count in enumerate(counts.tails):
        total += count * (i + 1) * 10000
    return total


def main(rounds):
    data = (TEXT * 50).encode()
    once = weigh(walk(data, Counts()))
    counts = Counts()
    for _ in range(rounds):
        counts = walk(data, counts)
    assert weigh(counts) == once * rounds, "the rounds differ"
    print(once * rounds)


main(int(sys.argv[1]))
