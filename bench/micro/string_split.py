# SPDX-License-Identifier: MIT
#
# bench/micro/string_split.py: 1000 lines of eight fields taken apart, n times over. Checked: the number of fields,
# and that joining gives the text again.

import sys


def table():
    return "".join(f"{i},name-{i},10.0.{i % 256}.1,GET,/path/{i}/index.html,200,,end\n" for i in range(1000))


def main(rounds):
    text = table()
    fields = size = 0
    for n in range(rounds):
        for line in text.split("\n"):
            if line != "":
                parts = line.split(",")
                fields += len(parts)
                size += len(parts[4])
                assert n > 0 or ",".join(parts) == line, "join does not undo split"
    assert fields == rounds * 8000, "wrong number of fields"
    print(fields * 1000 + size)


main(int(sys.argv[1]))
