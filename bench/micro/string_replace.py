# SPDX-License-Identifier: MIT
#
# bench/micro/string_replace.py: three words replaced in a text of about 100 KB, n times over, by longer, shorter and
# no text. Checked by counting; lengths are in UTF-8, as in the other languages.

import sys

LINE = "The quick brown fox jumps over the lazy dog; 다람쥐 헌 쳇바퀴에 타고파. <a href=\"x\">fox</a>\n"
LINES = 1000


def main(rounds):
    text = LINE * LINES
    text_size = len(text.encode())
    total = 0
    for _ in range(rounds):
        out = text.replace("fox", "red panda").replace("다람쥐", "쥐").replace("lazy ", "")
        size = len(out.encode())
        assert size == text_size + LINES * (2 * 6 - 6 - 5), "wrong length"
        total += size
    print(total)


main(int(sys.argv[1]))
