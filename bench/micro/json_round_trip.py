# SPDX-License-Identifier: MIT
#
# bench/micro/json_round_trip.py: reading and writing JSON. A document of 500 routes is read, written and read again, n
# times over; what comes back must be what was read. Lengths are in UTF-8, as in the other languages.

import json
import sys

ROUTE = r"""{"id": NUMBER, "name": "service-NUMBER", "domain": "service-NUMBER.example.org",
 "note": "줄\nline \"NUMBER\" \\ end",
 "enabled": true, "fallback": null, "weights": [1, 2.5, -3, NUMBER], "limits": {"requests": 100, "bytes": 1048576}}"""
ROUTES = 500


def document():
    routes = ",\n".join(ROUTE.replace("NUMBER", str(i)) for i in range(ROUTES))
    return '{"version": 1, "routes": [' + routes + "]}"


def weigh(read):
    total = 0
    for route in read["routes"]:
        total += route["id"] + route["weights"][3] + len(route["note"].encode()) + route["limits"]["requests"]
    return total


def main(rounds):
    text = document()
    total = 0
    for n in range(rounds):
        read = json.loads(text)
        again = json.loads(json.dumps(read, ensure_ascii=False, separators=(",", ":")))
        assert n > 0 or again == read, "the round trip changed the document"
        total += weigh(again)
    print(total)


main(int(sys.argv[1]))
