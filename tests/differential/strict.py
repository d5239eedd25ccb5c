# SPDX-License-Identifier: MIT
#
# tests/differential/strict.py: the strict reader that decides what a stream of requests says; written from RFC 9112
# alone, with nothing of vm/http in it.
#
# In:   bytes. Out: the complete requests, what stopped it (None: nothing was left; "incomplete"; a reason to refuse),
#       and where.
# Strict: each line ends in CR LF; one Host in 1.1; a length is digits, once; the one coding is "chunked", once, in 1.1;
#       never both; no folding, no blank around names, no control bytes. Bytes past 0x7f in a target pass: RFC 9112 has
#       none there, but no reader finds an end in them.

import re

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
QUOTED = rb'"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
EXTENSION = rb";" + TOKEN.pattern + rb"(?:=(?:" + TOKEN.pattern + rb"|" + QUOTED + rb"))?"
SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})((?:" + EXTENSION + rb")*)")
REASONABLE = 1 << 63


class Refused(Exception):
    pass


class Incomplete(Exception):
    pass


class Request:
    def __init__(self, method, target, fields, body):
        self.method, self.target, self.fields, self.body = method, target, fields, body

    def named(self, name):
        return [value for key, value in self.fields if key == name]


def line_at(data, at):
    end = data.find(b"\n", at)
    if end < 0:
        raise Incomplete
    if end == at or data[end - 1:end] != b"\r":
        raise Refused("line end")
    line = data[at:end - 1]
    if b"\r" in line:
        raise Refused("bare CR")
    return line, end + 1


def fields_at(data, at):
    fields = []
    while True:
        line, at = line_at(data, at)
        if not line:
            return fields, at
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.fullmatch(name):
            raise Refused("field name")
        value = value.strip(b" \t")
        if not VALUE.fullmatch(value):
            raise Refused("field value")
        fields.append((name.lower(), value))


def chunked_at(data, at):
    body = b""
    while True:
        line, at = line_at(data, at)
        match = SIZE.fullmatch(line)
        if not match or int(match[1], 16) >= REASONABLE:
            raise Refused("chunk size")
        size = int(match[1], 16)
        if size == 0:
            return body, fields_at(data, at)[1]
        body += data[at:at + size]
        at += size
        ending = data[at:at + 2]
        if not b"\r\n".startswith(ending):
            raise Refused("chunk end")
        if len(ending) < 2:
            raise Incomplete
        at += 2


def request_at(data, at):
    while data[at:at + 2] == b"\r\n":
        at += 2
    if at == len(data):
        return None, at
    line, at = line_at(data, at)
    parts = line.split(b" ")
    if len(parts) != 3 or not TOKEN.fullmatch(parts[0]) or not re.fullmatch(rb"[\x21-\x7e\x80-\xff]+", parts[1]) or \
            not re.fullmatch(rb"HTTP/1\.[01]", parts[2]):
        raise Refused("request line")
    old = parts[2] == b"HTTP/1.0"
    fields, at = fields_at(data, at)
    request = Request(parts[0], parts[1], fields, b"")
    hosts, lengths = request.named(b"host"), request.named(b"content-length")
    codings = request.named(b"transfer-encoding")
    if len(hosts) > 1 or (not hosts and not old):
        raise Refused("host")
    if codings:
        if lengths or old or len(codings) > 1 or codings[0].lower() != b"chunked":
            raise Refused("coding")
        request.body, at = chunked_at(data, at)
    elif lengths:
        if len(lengths) > 1 or not re.fullmatch(rb"[0-9]+", lengths[0]) or int(lengths[0]) >= REASONABLE:
            raise Refused("length")
        size = int(lengths[0])
        if len(data) - at < size:
            raise Incomplete
        request.body, at = data[at:at + size], at + size
    return request, at


def read(data):
    """(requests, why it stopped, where)"""
    requests, at = [], 0
    while at < len(data):
        try:
            request, end = request_at(data, at)
        except Refused as refused:
            return requests, str(refused), at
        except Incomplete:
            return requests, "incomplete", at
        at = end
        if request:
            requests.append(request)
    return requests, None, at
