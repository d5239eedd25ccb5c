# SPDX-License-Identifier: MIT
#
# tests/differential/corpus.py: awkward requests, each a name and bytes. What RFC 9112 says of lines, fields, targets,
# lengths, codings and chunks, written right, nearly right and wrong.
#
# Invariant: a name stays with its bytes; new cases are added, none is changed (verdicts.txt has a line for each).

NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"


def head(*lines, method=b"POST", target=b"/x", version=b"HTTP/1.1", host=b"Host: a\r\n"):
    first = method + b" " + target + b" " + version + b"\r\n"
    return first + host + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def length(value, body=b"hello", name=b"Content-Length: ", behind=NEXT):
    return head(name + value) + body + behind


def coding(value, body=b"5\r\nhello\r\n0\r\n\r\n", name=b"Transfer-Encoding: ", behind=NEXT):
    return head(name + value) + body + behind


def chunks(body, behind=NEXT):
    return head(b"Transfer-Encoding: chunked") + body + behind


def build():
    cases = {}

    def add(name, data):
        assert name not in cases, name
        cases[name] = data

    # -- the plain ones, so that a runner which never forwards is seen
    add("plain get", head(method=b"GET"))
    add("plain post", length(b"5"))
    add("plain chunked", coding(b"chunked"))
    add("two gets", head(method=b"GET") + NEXT)
    add("1.0 get", head(method=b"GET", version=b"HTTP/1.0"))
    add("1.0 without host", head(method=b"GET", version=b"HTTP/1.0", host=b""))
    add("1.0 post", head(b"Content-Length: 5", version=b"HTTP/1.0") + b"hello")

    # -- Content-Length
    for name, value in {
        "plus": b"+5", "minus": b"-5", "minus zero": b"-0", "hex": b"0x5", "leading zeros": b"0005",
        "inner space": b"5 5",
        "comma same": b"5, 5", "comma other": b"5, 0", "comma empty": b"5,", "letters": b"five", "empty": b"",
        "decimal": b"5.0",
        "exponent": b"5e0", "underscore": b"5_0", "quoted": b'"5"', "semicolon": b"5;q=1", "tab around": b"\t5\t",
        "max int64": b"9223372036854775807", "past int64": b"9223372036854775808",
        "past uint64": b"18446744073709551616",
        "wraps to 5": b"18446744073709551621", "arabic digit": b"\xd9\xa5", "no-break space": b"\xc2\xa05",
        "nul": b"5\x00",
        "vertical tab": b"\x0b5", "form feed": b"5\x0c", "zero": b"0",
    }.items():
        add(f"length {name}", length(value))
    add("length twice same", head(b"Content-Length: 5", b"Content-Length: 5") + b"hello" + NEXT)
    add("length twice other", head(b"Content-Length: 5", b"Content-Length: 0") + b"hello" + NEXT)
    add("length on get", head(b"Content-Length: 5", method=b"GET") + b"hello" + NEXT)
    add("length too short", head(b"Content-Length: 3") + b"hello" + NEXT)
    add("length too long", head(b"Content-Length: 500") + b"hello")
    add("length lower case", length(b"5", name=b"content-length: "))
    add("length without space", length(b"5", name=b"Content-Length:"))
    add("length space before colon", length(b"5", name=b"Content-Length : "))
    add("length tab before colon", length(b"5", name=b"Content-Length\t: "))
    add("length underscore name", length(b"5", name=b"Content_Length: "))
    add("length with bad first letter", length(b"5", name=b"\x00Content-Length: "))
    add("length behind nul", length(b"5", name=b"X: \x00\r\nContent-Length: "))
    add("length folded", length(b"\r\n 5"))
    add("length folded tab", length(b"\r\n\t5"))

    # -- Transfer-Encoding
    for name, value in {
        "capitals": b"CHUNKED", "mixed": b"cHuNkEd", "tab before": b"\tchunked", "spaces around": b"  chunked  ",
        "quoted": b'"chunked"', "parameter": b"chunked;q=1", "parameter space": b"chunked ; q=1",
        "xchunked": b"xchunked",
        "chunkedx": b"chunkedx", "identity": b"identity", "identity chunked": b"identity, chunked", "gzip": b"gzip",
        "gzip chunked": b"gzip, chunked", "chunked gzip": b"chunked, gzip", "chunked identity": b"chunked, identity",
        "chunked chunked": b"chunked, chunked", "comma before": b", chunked", "comma behind": b"chunked,",
        "commas": b",,chunked,,", "empty": b"", "only comma": b",", "vertical tab": b"\x0bchunked",
        "form feed": b"chunked\x0c",
        "nul": b"chunked\x00", "bell": b"chunked\x07", "delete": b"chunked\x7f", "no-break space": b"\xc2\xa0chunked",
        "high byte": b"chunked\xff", "space inside": b"chun ked", "slash": b"chunked/1", "cr behind": b"chunked\r",
        "lf inside": b"\nchunked", "trailers": b"trailers", "deflate": b"deflate",
    }.items():
        add(f"coding {name}", coding(value))
    add("coding twice", head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT)
    add("coding twice other", head(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT)
    add("coding other twice", head(b"Transfer-Encoding: chunked", b"Transfer-Encoding: x") + b"0\r\n\r\n" + NEXT)
    add("coding space before colon", coding(b"chunked", name=b"Transfer-Encoding : "))
    add("coding tab before colon", coding(b"chunked", name=b"Transfer-Encoding\t: "))
    add("coding nul in name", coding(b"chunked", name=b"Transfer-Encoding\x00: "))
    add("coding underscore name", coding(b"chunked", name=b"Transfer_Encoding: "))
    add("coding without space", coding(b"chunked", name=b"Transfer-Encoding:"))
    add("coding leading space", coding(b"chunked", name=b" Transfer-Encoding: "))
    add("coding folded", coding(b"\r\n chunked"))
    add("coding folded behind", coding(b"chunked\r\n , identity"))
    add("coding behind folded", head(b"X: y", b" Transfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT)
    add("coding hidden by bare cr", head(b"X: y\rTransfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT)
    add("coding hidden by bare lf", head(b"X: y\nTransfer-Encoding: chunked") + b"0\r\n\r\n" + NEXT)
    add("coding in 1.0", head(b"Transfer-Encoding: chunked", version=b"HTTP/1.0") + b"0\r\n\r\n")
    add("coding on get", head(b"Transfer-Encoding: chunked", method=b"GET") + b"0\r\n\r\n" + NEXT)
    add("coding listed in connection", head(b"Transfer-Encoding: chunked", b"Connection: transfer-encoding") +
        b"5\r\nhello\r\n0\r\n\r\n" + NEXT)
    add("length listed in connection", head(b"Content-Length: 5", b"Connection: content-length") + b"hello" + NEXT)
    add("host listed in connection", head(b"Connection: host", method=b"GET"))

    # -- both
    for name, first, second in (("length first", b"Content-Length: 5", b"Transfer-Encoding: chunked"),
                                ("coding first", b"Transfer-Encoding: chunked", b"Content-Length: 5")):
        add(f"both, {name}", head(first, second) + b"0\r\n\r\n" + NEXT)
    add("both, coding unknown", head(b"Content-Length: 5", b"Transfer-Encoding: x") + b"hello" + NEXT)
    add("both, coding space before colon", head(b"Content-Length: 5",
        b"Transfer-Encoding : chunked") + b"0\r\n\r\n" + NEXT)
    add("both, coding empty", head(b"Content-Length: 5", b"Transfer-Encoding:") + b"hello" + NEXT)
    add("both, coding in 1.0", head(b"Content-Length: 5", b"Transfer-Encoding: chunked",
        version=b"HTTP/1.0") + b"0\r\n\r\n")

    # -- chunks
    for name, body in {
        "upper hex": b"A\r\n0123456789\r\n0\r\n\r\n", "leading zeros": b"00005\r\nhello\r\n0\r\n\r\n",
        "many zeros": b"0" * 20 + b"5\r\nhello\r\n0\r\n\r\n", "0x": b"0x5\r\nhello\r\n0\r\n\r\n",
        "plus": b"+5\r\nhello\r\n0\r\n\r\n",
        "minus": b"-5\r\nhello\r\n0\r\n\r\n", "space before": b" 5\r\nhello\r\n0\r\n\r\n",
        "space behind": b"5 \r\nhello\r\n0\r\n\r\n",
        "tab behind": b"5\t\r\nhello\r\n0\r\n\r\n", "underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
        "overflow 64": b"10000000000000005\r\nhello\r\n0\r\n\r\n", "overflow 32": b"100000005\r\nhello\r\n0\r\n\r\n",
        "largest": b"7fffffffffffffff\r\nhello", "sign bit": b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "empty size": b"\r\nhello\r\n0\r\n\r\n",
        "only extension": b";a=b\r\nhello\r\n0\r\n\r\n", "letters": b"hello\r\nhello\r\n0\r\n\r\n",
        "comma": b"5,5\r\nhello\r\n0\r\n\r\n",
        "extension": b"5;a=b\r\nhello\r\n0\r\n\r\n", "extension name": b"5;a\r\nhello\r\n0\r\n\r\n",
        "extension quoted": b'5;a="b c"\r\nhello\r\n0\r\n\r\n', "extension empty": b"5;\r\nhello\r\n0\r\n\r\n",
        "extension bad space": b"5 ; a=b\r\nhello\r\n0\r\n\r\n", "extension bare lf": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
        "extension bare cr": b"5;a\rb\r\nhello\r\n0\r\n\r\n", "extension nul": b"5;a=\x00\r\nhello\r\n0\r\n\r\n",
        "extension quoted lf": b'5;a="\nb"\r\nhello\r\n0\r\n\r\n',
        "extension open quote": b'5;a="b\r\nhello\r\n0\r\n\r\n',
        "extension long": b"5;" + b"a" * 5000 + b"\r\nhello\r\n0\r\n\r\n", "size bare lf": b"5\nhello\r\n0\r\n\r\n",
        "size bare cr": b"5\rhello\r\n0\r\n\r\n", "size cr cr lf": b"5\r\r\nhello\r\n0\r\n\r\n",
        "data bare lf": b"5\r\nhello\n0\r\n\r\n",
        "data no end": b"5\r\nhello0\r\n\r\n", "data short": b"6\r\nhello\r\n0\r\n\r\n",
        "data long": b"4\r\nhello\r\n0\r\n\r\n",
        "data two crlf": b"5\r\nhello\r\n\r\n0\r\n\r\n", "last bare lf": b"5\r\nhello\r\n0\n\n",
        "last half lf": b"5\r\nhello\r\n0\r\n\n",
        "last zeros": b"5\r\nhello\r\n000\r\n\r\n", "last extension": b"5\r\nhello\r\n0;a\r\n\r\n",
        "trailer": b"5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
        "trailer length": b"5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n",
        "trailer coding": b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "trailer host": b"5\r\nhello\r\n0\r\nHost: b\r\n\r\n",
        "trailer folded": b"5\r\nhello\r\n0\r\nX: 1\r\n 2\r\n\r\n",
        "trailer no colon": b"5\r\nhello\r\n0\r\nnonsense\r\n\r\n",
        "trailer bare lf": b"5\r\nhello\r\n0\r\nX: 1\n\r\n", "trailer nul": b"5\r\nhello\r\n0\r\nX: \x00\r\n\r\n",
        "trailer space": b"5\r\nhello\r\n0\r\nX : 1\r\n\r\n", "no last": b"5\r\nhello\r\n", "nothing": b"",
    }.items():
        add(f"chunk {name}", chunks(body, b"" if name in ("largest", "no last", "nothing") else NEXT))

    # -- lines and fields
    add("bare lf everywhere", head(method=b"GET").replace(b"\r\n", b"\n"))
    add("bare lf request line", b"GET /x HTTP/1.1\nHost: a\r\n\r\n")
    add("bare lf end", b"GET /x HTTP/1.1\r\nHost: a\r\n\n" + NEXT)
    add("bare cr everywhere", head(method=b"GET").replace(b"\r\n", b"\r"))
    add("cr cr lf", b"GET /x HTTP/1.1\r\r\nHost: a\r\n\r\n")
    add("empty lines before", b"\r\n\r\n" + head(method=b"GET"))
    add("bare lf before", b"\n" + head(method=b"GET"))
    add("space before", b" " + head(method=b"GET"))
    add("space line behind request line", b"GET /x HTTP/1.1\r\n \r\nHost: a\r\n\r\n")
    add("folded field", head(b"X: a", b" b", method=b"GET"))
    add("folded first field", b"GET /x HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n")
    add("folded host", b"GET /x HTTP/1.1\r\nHost:\r\n a\r\n\r\n")
    add("field without colon", head(b"nonsense", method=b"GET"))
    add("field empty name", head(b": x", method=b"GET"))
    add("field space in name", head(b"X Y: z", method=b"GET"))
    add("field high byte in name", head(b"X\xe9: z", method=b"GET"))
    add("field bracket in name", head(b"X[0]: z", method=b"GET"))
    add("field quote in name", head(b'X"Y: z', method=b"GET"))
    add("field slash in name", head(b"X/Y: z", method=b"GET"))
    for name, byte in {"nul": b"\x00", "bell": b"\x07", "bare cr": b"\r", "bare lf": b"\n", "delete": b"\x7f",
        "high": b"\xff",
                       "tab": b"\t", "escape": b"\x1b"}.items():
        add(f"value with {name}", head(b"X: a" + byte + b"b", method=b"GET"))
    add("value empty", head(b"X:", method=b"GET"))
    add("many fields", head(*[b"X-%d: y" % i for i in range(300)], method=b"GET"))
    add("long field", head(b"X: " + b"y" * 70000, method=b"GET"))

    # -- request line
    for name, line in {
        "two spaces": b"GET  /x HTTP/1.1", "tab": b"GET\t/x\tHTTP/1.1", "trailing space": b"GET /x HTTP/1.1 ",
        "no version": b"GET /x",
        "lower version": b"GET /x http/1.1", "version 1.2": b"GET /x HTTP/1.2", "version 2.0": b"GET /x HTTP/2.0",
        "version 0.9": b"GET /x HTTP/0.9", "version 11.1": b"GET /x HTTP/11.1", "version 1.01": b"GET /x HTTP/1.01",
        "version 1": b"GET /x HTTP/1", "version spaces": b"GET /x HTTP/ 1.1", "no target": b"GET HTTP/1.1",
        "empty target": b"GET  HTTP/1.1", "relative": b"GET x HTTP/1.1", "fragment": b"GET /x#y HTTP/1.1",
        "space in target": b"GET /x y HTTP/1.1", "nul in target": b"GET /x\x00 HTTP/1.1",
        "high in target": b"GET /\xff HTTP/1.1",
        "utf-8 in target": "GET /길 HTTP/1.1".encode(), "backslash": b"GET /x\\y HTTP/1.1",
        "bad escape": b"GET /%zz HTTP/1.1",
        "escaped nul": b"GET /%00 HTTP/1.1", "escaped crlf": b"GET /%0d%0aX:%20y HTTP/1.1",
        "dots": b"GET /a/../x HTTP/1.1",
        "climbs": b"GET /../../x HTTP/1.1", "escaped slash": b"GET /a%2f..%2fx HTTP/1.1",
        "lower method": b"get /x HTTP/1.1",
        "odd method": b"FOO /x HTTP/1.1", "bad method": b"G@T /x HTTP/1.1", "colon method": b"GET: /x HTTP/1.1",
        "brace method": b"G{T /x HTTP/1.1", "long method": b"G" * 40 + b" /x HTTP/1.1", "star": b"GET * HTTP/1.1",
        "options star": b"OPTIONS * HTTP/1.1", "connect": b"CONNECT a:443 HTTP/1.1", "trace": b"TRACE /x HTTP/1.1",
        "double slash": b"GET //b/x HTTP/1.1", "question": b"GET ?x HTTP/1.1", "pipe": b"GET /x|y HTTP/1.1",
        "quote": b'GET /x"y HTTP/1.1',
    }.items():
        add(f"line {name}", line + b"\r\nHost: a\r\n\r\n")
    add("line long target", b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")

    # -- Host
    for name, host in {
        "missing": b"", "twice same": b"Host: a\r\nHost: a\r\n", "twice other": b"Host: a\r\nHost: b\r\n",
        "empty": b"Host:\r\n",
        "list": b"Host: a, b\r\n", "space inside": b"Host: a b\r\n", "at sign": b"Host: u@a\r\n",
        "slash": b"Host: a/b\r\n",
        "bad port": b"Host: a:x\r\n", "large port": b"Host: a:65536\r\n", "empty port": b"Host: a:\r\n",
        "nul": b"Host: a\x00\r\n",
        "space before colon": b"Host : a\r\n", "leading space": b" Host: a\r\n", "upper": b"Host: A\r\n",
        "dot": b"Host: a.\r\n",
        "v6": b"Host: [::1]:80\r\n", "v6 open": b"Host: [::1\r\n", "v6 bad": b"Host: [::g]\r\n",
        "high byte": b"Host: \xc3\xa9\r\n",
        "underscore": b"Host: a_b\r\n", "percent": b"Host: a%41\r\n",
    }.items():
        add(f"host {name}", head(method=b"GET", host=host))
    for name, target, host in (
            ("agrees", b"http://a/x", b"a"), ("other host", b"http://b/x", b"a"), ("case", b"HTTP://A/x", b"a"),
            ("default port", b"http://a:80/x", b"a"), ("other port", b"http://a:81/x", b"a"), ("no path", b"http://a",
            b"a"),
            ("query only", b"http://a?q", b"a"), ("user", b"http://u@a/x", b"a"), ("no host", b"http:///x", b"a"),
            ("other scheme", b"ftp://a/x", b"a"), ("https", b"https://a/x", b"a"), ("fragment", b"http://a/x#y", b"a")):
        add(f"absolute {name}", b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    add("absolute without host field", b"GET http://a/x HTTP/1.1\r\n\r\n")

    # -- what follows
    add("garbage behind", head(method=b"GET") + b"\x00\x01\x02garbage\r\n\r\n")
    add("crlf behind body", length(b"5", behind=b"\r\n" + NEXT))
    add("response behind", head(method=b"GET") + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    add("request in body", head(b"Content-Length: %d" % len(NEXT)) + NEXT)
    add("upgrade h2c", head(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABkAAQAAP__",
                            method=b"GET"))
    add("upgrade h2c then bytes", head(b"Connection: Upgrade", b"Upgrade: h2c",
        method=b"GET") + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    add("preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    add("tls hello", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03")
    add("expect other", head(b"Expect: 200-ok", b"Content-Length: 5") + b"hello")
    add("expect twice", head(b"Expect: 100-continue", b"Expect: 100-continue", b"Content-Length: 5") + b"hello")
    add("connection malformed", head(b"Connection: a b", method=b"GET"))
    add("connection names a field", head(b"Connection: X-Secret", b"X-Secret: 1", method=b"GET"))
    add("proxy-connection", head(b"Proxy-Connection: keep-alive", method=b"GET"))
    add("te", head(b"TE: trailers, deflate", method=b"GET"))
    add("forwarding spoofed", head(b"X-Forwarded-For: 1.2.3.4", b"X_Forwarded_For: 1.2.3.4", b"Forwarded: for=1.2.3.4",
                                   b"X-Real-IP: 1.2.3.4", method=b"GET"))
    add("head with body", head(b"Content-Length: 5", method=b"HEAD") + b"hello" + NEXT)
    return cases


CASES = build()
