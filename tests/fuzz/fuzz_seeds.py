# SPDX-License-Identifier: MIT
#
# tests/fuzz/fuzz_seeds.py: what fuzz targets begin with: inputs, and dictionaries.
#
# In:   the tree: programs and their tests, tables of words, transcripts; BUILD/debug/crownyc for .toau and RPN text.
# Out:  seeds(TARGET, build, folder) writes inputs; dictionary(TARGET, path) writes libFuzzer's dictionary.
# Invariant: made from the tree alone, so every run of the same tree begins the same. The better the start, the sooner
#       a target finds nothing new: each program of tests/lang is a seed of source, toau and rpn, in both languages.

import base64
import pathlib
import re
import shutil
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/fuzz"


def programs():
    for folder in ("tests/lang", "tests/golden", "tests/fuzz/seeds", "stdlib", "programs", "bench"):
        yield from sorted((ROOT / folder).rglob("*.han"))


def name_of(path, what=""):
    return f"{what}{path.parent.name}-{path.stem}"


def crownyc(build, *arguments):
    return subprocess.run([build / "debug/crownyc", *arguments], capture_output=True)


def seed_source(build, folder):
    for path in programs():
        shutil.copy(path, folder / name_of(path))
        korean = folder / name_of(path, "ko-")
        shutil.copy(path, korean.with_suffix(".han"))
        crownyc(build, "fmt", "--keywords", "ko", korean.with_suffix(".han"))
        korean.with_suffix(".han").rename(korean)


def compiled(build, folder):
    scratch = folder.parent / "scratch.toau"
    for path in programs():
        if crownyc(build, "compile", path, "-o", scratch).returncode == 0:
            yield path, scratch
    scratch.unlink(missing_ok=True)


def seed_toau(build, folder):
    for path, scratch in compiled(build, folder):
        shutil.copy(scratch, folder / name_of(path))


def seed_rpn(build, folder):
    for path, scratch in compiled(build, folder):
        for language in ("en", "ko"):
            text = crownyc(build, "rpn", scratch, "--keywords", language).stdout
            (folder / name_of(path, language + "-")).write_bytes(text)
    for path in sorted((ROOT / "tests").rglob("*.rpn")):
        shutil.copy(path, folder / name_of(path, "rpn-"))


JSON = ('{"a": [1, -2.5e-3, true, null, "\\u00e9\\ud83d\\ude00"]}', "[]", '"한글"', "1e400", "-0", "1E+9",
        '{"a":1,"a":2}',
        "9223372036854775808", '"\\ud83d"', "[" * 128 + "]" * 128, ' {"\\"\\\\\\/\\b\\f\\n\\r\\t" : 0.1} ', "[1,]",
        "tru")
REGEX = ("\0(a+)+$\naaaaaaaaaaaaab", "\x1f(?<year>\\d{4})-(\\d\\d)\n2026-11-30", "\0\\p{Hangul}+|[^a-z]\n한글 ab",
         "\2^\\s*(?:(\\w+)=(?!x)\\1)?\n a=a\nb=c", "\0(?<=a)b(?=c)\nabc", "\x01[[:alpha:]]{2,3}?\nABC", "\0\\b\n a b")
URLS = ("http://a.example:80/b/%7e/../c?q=1#f", "//user:pw@[::1]:8080/", "mailto:a@b.example", "../../x/./y", "",
        "/.//a", "a:b", "http://A.Example.:/%2e%2E/%2f", "http://a/b/c/d;p?q\n../../../g", "http://a/b\n//h",
        "x:/a\n/.//b",
        "urn:a:b\n?q", "[::ffff:1.2.3.4]:1", "https://a.example", "*", "%00", "a%zz", "file:///etc/x", "http://[v1.a]/")
DATES = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
         "1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00", "1990-12-31T23:59:60Z", "9999-12-31t23:59:60+00:00",
         "0000-01-01 00:00:00.123456789+23:59", "1h2m3.5s", "250ms", "1.5us", "-2d", "0s", "9223372036854775807ns",
         "Fri, 31 Dec 9999 23:59:60 GMT", "2024-02-29T00:00:00Z", "106751991d")
JWTS = (b"\x40" + b'{"alg":"HS256","typ":"JWT"}\n{"iss":"joe","exp":1796083300,"nbf":1,"sub":"x"}\n',
        b"\x45" + b'{"alg":"HS256","kid":"k"}\n{"aud":["us","them"],"iss":"joe"}\n',
        b"\x48" + b'{"alg":"HS256"}\n{"aud":"us","iss":"joe","exp":1796083200.5}\n',
        b"\x4d" + b'{"alg":"HS256","crit":["b64"]}\n{"exp":1}\n', b"\x06" + b'{"alg":"ES256"}\n{}\n' + bytes(range(64)),
        b"\x0f" + b'{"alg":"EdDSA"}\n{}\n' + bytes(range(64)), b"\x10" + b"eyJhbGciOiJub25lIn0.e30.",
        b"\x64" + b'{"kty":"RSA","n":"' + base64.urlsafe_b64encode(b"\xff" * 255) +
        b'AQ","e":"AQAB"}\n{"alg":"RS256"}\n{}\nx',
        b"\x64" + b'{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","use":"sig","key_ops":["verify"]}\n'
        b'{"alg":"HS256"}\n{"iss":1}\n', b"\x60" +
        b'"-----BEGIN PUBLIC KEY-----\\nMCow\\n-----END PUBLIC KEY-----"\n{"alg":"EdDSA"}\n{}\n')
LOGS = (b"\x00127.0.0.1\0GET\0a.example\0/x?y=1\0\0http://r/\0agent/1", b"\x04::1\0GET\0a\0/\"\\\x01\xff\0",
        b"\x0510.0.0.1\0POST\0a\0/\0"
        b"10.0.0.2:80\0r\0u", b"\x06\xec\x95\x88\0G\0h\0/\xea\0up\0\"\0\\", b"\x0e1\0G\0h\0/\0up\0r\0u", b"\x02" +
        b"t" * 3000)


def texts(values):
    def write(build, folder):
        for i, value in enumerate(values):
            (folder / f"seed-{i}").write_bytes(value if isinstance(value, bytes) else value.encode())
    return write


def seed_regex(build, folder):
    """Patterns of the language tests, each with the text beside it."""
    literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
    pairs = []
    for path in sorted((ROOT / "tests/lang/regex").glob("*.han")) + [ROOT / "docs/STDLIB.md"]:
        for line in path.read_text().splitlines():
            found = literal.findall(line)
            if "regex." in line and len(found) >= 2:
                pairs.append(found[0].replace("\\\\", "\\") + "\n" + found[1])
    texts([*REGEX, *("\0" + pair for pair in pairs), *("\x1f" + pair for pair in pairs)])(build, folder)


def seed_yaml(build, folder):
    gateway = (ROOT / "programs/gateway/gateway.yaml").read_text().splitlines()
    blocks = ["\n".join(gateway[i:i + 40]) + "\n" for i in range(0, len(gateway), 40)]
    for path in sorted((ROOT / "docs").glob("*.md")):
        blocks += re.findall(r"^```ya?ml\n(.*?)^```", path.read_text(), re.M | re.S)
    texts([*blocks, "a: &x [1, {b: *x}]\n", "- |\n  a\n- >-\n  b\n", "? a\n: b\n", "%YAML 1.1\n---\na\n...\n",
           "!!str 1",
           '"\\u263A": \'it\'\'s\'\n', "a: 1\na: 2\n", "{" * 40])(build, folder)


def transcripts(verb):
    """What one side says in each file of tests/wire, without what was only filling."""
    def unescape(text):
        text = re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), text)
        return text.replace("\\r", "\r").replace("\\n", "\n").encode("latin-1", "replace")
    for path in sorted((ROOT / "tests/wire").rglob("*.txt")):
        said = b""
        for line in path.read_text().splitlines():
            if line.startswith(verb + "| "):
                said += unescape(line[len(verb) + 2:])
            elif line.startswith(verb + " ") or line == verb:
                said += unescape(line[len(verb) + 1:]) + b"\r\n"
        if said:
            yield b"\x06" + said


def seed_proxy_header(build, folder):
    v2 = b"\r\n\r\n\0\r\nQUIT\n"
    four, six = bytes([1, 2, 3, 4, 5, 6, 7, 8, 0, 80, 1, 187]), bytes(range(32)) + bytes([0, 80, 1, 187])
    texts([b"PROXY TCP4 1.2.3.4 5.6.7.8 80 65535\r\nGET /", b"PROXY TCP6 ::1 2001:db8::1 1 2\r\n",
           b"PROXY UNKNOWN x\r\n",
           b"PROXY TCP6 ::ffff:1.2.3.4 ::ffff:5.6.7.8 1 2\r\n", v2 + b"\x21\x11\0\x0c" + four, v2 +
           b"\x21\x21\0\x24" + six,
           v2 + b"\x20\0\0\0GET", v2 + b"\x21\x11\0\x12" + four + b"\x03\0\x03abc", v2 + b"\x21\x31\0\xd8" + bytes(216),
           b"PROXY TCP4 " + b"1" * 110])(build, folder)


# -- HTTP/2: frames as target_h2.c has them ----------------------------------------------------------------------------

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY, AGAIN, KIB = 1, 4, 8, 0x20, 0x80, 0xf0


def frame(kind, flags, stream, payload=b""):
    return bytes([kind, flags, stream, len(payload)]) + payload


def hpack(**fields):
    """Literals without index. `_` at the beginning of a name is a ':', else a '-'."""
    block = b""
    for name, value in fields.items():
        name = ":" + name[1:] if name[0] == "_" else name.replace("_", "-")
        block += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


def get(stream, path, flags=END_HEADERS | END_STREAM, method="GET", **fields):
    return frame(HEADERS, flags, stream,
                 hpack(_method=method, _scheme="http", _authority="a.example", _path=path, **fields))


NUMBER = struct.Struct(">I").pack


def seed_h2_request(build, folder):
    ends, whole = END_HEADERS | END_STREAM, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    post, abc = get(1, "/p", END_HEADERS, "POST", content_length="3"), frame(DATA, END_STREAM, 1, b"abc")
    indexed = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"
    messages = [
        get(1, "/1"), get(2, "/1"), post + abc, get(1, "/p") + get(3, "/f"),
        get(1, "/w") + get(3, "/9") + frame(WINDOW, 0, 0, NUMBER(100000)),
        post + frame(DATA, 0, 1, b"abc") + frame(HEADERS, ends, 1, hpack(x_t="1")),
        post + frame(DATA, PADDED | END_STREAM, 1, b"\2abc\0\0"),
        get(1, "/w", END_HEADERS, "POST") + bytes([DATA, 0, 1, KIB + 15, AGAIN, 6]),
        get(1, "/w") + frame(RST, 0, 1, NUMBER(8)) + bytes([AGAIN, 200]),
        frame(PING, 0, 0, b"12345678") + bytes([AGAIN, 255]),
        frame(SETTINGS, 0, 0, b"\0\4\0\0\0\1\0\5\0\0\x40\0") + get(1, "/9") + frame(WINDOW, 0, 1, NUMBER(70000)),
        frame(SETTINGS, 1, 0) + frame(PRIORITY, 0, 3, b"\0\0\0\1\x10") + get(3, "/0"),
        frame(GOAWAY, 0, 0, bytes(8)), frame(WINDOW, 0, 0, NUMBER(0)), frame(DATA, 0, 1, b"x"),
        frame(HEADERS, END_STREAM, 1, hpack(_method="GET")) +
        frame(CONTINUATION, END_HEADERS, 1, hpack(_path="/", _scheme="http")),
        frame(HEADERS, END_STREAM, 1) + frame(CONTINUATION, 0, 1) + bytes([AGAIN, 100]),
        frame(HEADERS, ends, 1, indexed) + frame(HEADERS, ends, 3, b"\x82\x86\x84\xbe"),
        get(1, "/1", method="HEAD") + get(3, "*", method="OPTIONS") + get(5, "", method="CONNECT"),
        get(1, "/p", cookie="a=1", te="trailers", host="a.example", expect="100-continue"),
        get(1, "/1", connection="close") + get(3, "/1", X="1") + get(5, "/%2e%2e/x"),
        frame(0x77, 0, 0, b"x") + frame(PUSH, END_HEADERS, 1, NUMBER(2))]
    texts([bytes([bits]) + message for message in messages for bits in (0, 3, 0x10)] +
          [b"\x08" + whole, b"\x09" + whole[:20], b"\x18GET / HTTP/1.1\r\nHost: a\r\n\r\n"])(build, folder)


def answer(stream, status, flags=END_HEADERS, **fields):
    return frame(HEADERS, flags, stream, hpack(_status=status, **fields))


def seed_h2_response(build, folder):
    ends, promised = END_HEADERS | END_STREAM, hpack(_method="GET", _path="/", _scheme="http", _authority="a")
    messages = [
        answer(1, "200", content_length="2") + frame(DATA, END_STREAM, 1, b"ok") + answer(3, "204", ends),
        answer(1, "100") + answer(1, "103", link="</a>") + answer(1, "200") + frame(DATA, 0, 1, b"abc") +
        frame(HEADERS, ends, 1, hpack(grpc_status="0")),
        frame(GOAWAY, 0, 0, bytes(8)), answer(1, "304", ends, content_length="7"),
        frame(RST, 0, 1, NUMBER(7)) + frame(RST, 0, 1, NUMBER(11)),
        frame(PUSH, END_HEADERS, 1, NUMBER(2) + promised), answer(1, "101"), answer(1, "abc"),
        answer(1, "200", content_length="5") + frame(DATA, END_STREAM, 1, b"ok"),
        frame(SETTINGS, 0, 0, b"\0\3\0\0\0\0") + answer(1, "200") + bytes([DATA, 0, 1, KIB + 15, AGAIN, 30]),
        frame(PING, 0, 0, b"12345678") + bytes([AGAIN, 255]),
        answer(1, "200", connection="close", x="1") + frame(GOAWAY, 0, 0, NUMBER(1) + bytes(4)),
        frame(SETTINGS, 0, 0, b"\0\4\0\0\0\1\0\2\0\0\0\0\0\6\0\0\0\1") + frame(WINDOW, 0, 1, NUMBER(3)) +
        answer(1, "200", ends)]
    texts([bytes([bits]) + message for message in messages for bits in (0, 3, 0x10)] +
          [b"\x08HTTP/1.1 200 OK\r\n\r\n"])(build, folder)


SEEDS = {"source": seed_source, "toau": seed_toau, "rpn": seed_rpn, "json": texts(JSON), "regex": seed_regex,
         "yaml": seed_yaml,
         "h1_request": lambda build, folder: texts(list(transcripts(">")))(build, folder),
         "h1_response": lambda build, folder: texts(list(transcripts("u>")))(build, folder),
         "h2_request": seed_h2_request, "h2_response": seed_h2_response, "proxy_header": seed_proxy_header,
         "url": texts(URLS),
         "date": texts(DATES), "jwt": texts(JWTS), "access_log": texts(LOGS)}


def seeds(name, build, folder):
    SEEDS[name](build, folder)


# -- dictionaries ------------------------------------------------------------------------------------------------------

def table(path, row):
    """The strings of a .def's rows of that name, and their first word."""
    for line in (ROOT / path).read_text().splitlines():
        match = re.match(rf"{row}\(([^)]*)", line)
        if match:
            yield from (match[1].split(",")[0].strip(), *re.findall(r'"([^"]+)"', match[1])[:3])


def words_source():
    words = set(table("compiler/token.def", "KEYWORD")) | set(table("compiler/token.def", "MARK"))
    modules = {path.stem for path in (ROOT / "stdlib").glob("*.han")}
    natives = set(re.findall(r'^NATIVE\(\w+, *\w+, *0x\w+, *"([a-z_0-9.]+)"',
                             (ROOT / "vm/code/native.def").read_text(), re.M))
    modules |= {name.split(".")[0] for name in natives if "." in name}
    return words | natives | {f'import "{module}"\n' for module in modules} | {
        "export fn main(args) {\n", "fn(x) { return x }", "try { ", " } catch e { }", "test \"t\" { ",
        "record A { a, b = 1 }",
        "match x { 1 => 2, _ => 3 }", "for i in 0..10 { ", "let [a, b] = ", "// expect: ", "\\u{1f600}", "${", "0x1p",
        "1e309",
        "9223372036854775807", "spawn ", "defer ", "ref(", "if x == nil { return }", "loop { break }", "=> ", "??",
        "?."}


def words_rpn():
    words = set(table("vm/code/opcode.def", "OP")) | set(table("vm/code/kind.def", "KIND"))
    words |= set(table("vm/code/rpn_word.def", "RPN_WORD")) | set(table("vm/code/rpn_word.def", "RPN_OPCODE"))
    return words | {f"{letter}{number}" for letter in "fgLrm" for number in (0, 1, 2)} | {"# ", "\"\\u{0}\"",
                                                                                          "0x7fffffffffffffff"}


WORDS = {
    "source": words_source, "rpn": words_rpn,
    "json": lambda: {"true", "false", "null", "\\u0000", "\\ud83d\\ude00", "1e400", "-0.0", "[[[[", "{\"\":",
                     "18446744073709551616"},
    "regex": lambda: {"(?:", "(?=", "(?!", "(?<=", "(?<n>", "\\p{L}", "\\b", "{2,3}", "*?", "[^", "[:alpha:]", "\\1",
                      "(?i)", "(*UCP)", "\\Q"},
    "yaml": lambda: {"&a ", "*a", "<<: ", "!!", "---\n", "...\n", "|2+\n", ">-\n", "? ", ": ", "- ", "{a: ",
                     "%TAG ! ", "\\x41", "#"},
    "url": lambda: {"http://", "https://", "//", "/../", "/./", "%2e", "%2F", "[::1]", ":80", "@", "?", "#", "\n"},
    "date": lambda: {"Mon, ", "Monday, ", "01 Jan 2026 ", "00:00:60", " GMT", "T23:59:60", "+00:00", "Z", "1h", "2m",
                     "3s", "ms", "ns", "d"},
    "jwt": lambda: {'"alg":', '"HS256"', '"RS256"', '"ES256"', '"EdDSA"', '"kty":', '"RSA"', '"EC"', '"OKP"', '"oct"',
                    '"k":', '"n":',
                    '"e":"AQAB"', '"x":', '"y":', '"crv":"P-256"', '"Ed25519"', '"use":"sig"', '"key_ops":["verify"]',
                    '"exp":', '"nbf":', '"aud":',
                    '"iss":"joe"', '"kid":', '"crit":', "-----BEGIN ", "ssh-rsa ", "MC4CAQA"},
    "proxy_header": lambda: {"PROXY ", "TCP4 ", "TCP6 ", "UNKNOWN", "\r\n\r\n\0\r\nQUIT\n", "\x21\x11\0\x0c",
                             "\x21\x21\0\x24", "::ffff:"},
    "h2": lambda: {hpack(**{name: value}).decode("latin-1") for name, value in (
        ("_method", "POST"), ("_path", "/p"), ("_path", "/w"), ("_path", "/9"), ("_scheme", "http"),
        ("_authority", "a"), ("_status", "200"), ("_status", "100"), ("content_length", "3"), ("te", "trailers"),
        ("host", "a"), ("cookie", "a=1"), ("expect", "100-continue"), ("connection", "close"), ("date", "x"),
        ("transfer_encoding", "chunked"), ("trailer", "x"), ("upgrade", "h2c"))} | {
        frame(DATA, 1, 1, b"abc").decode("latin-1"), frame(RST, 0, 1, bytes(4)).decode("latin-1"), "\x80\xff",
        "\x82\x86\x84"},
}



def dictionary(name, path):
    """True when there is one: a file in the tree, or words from here; for several targets by the part before _."""
    for key in (name, name.split("_")[0]):
        if (HERE / f"{key}.dict").exists():
            shutil.copy(HERE / f"{key}.dict", path)
            return True
        if key in WORDS:
            words = [word.encode("latin-1" if key == "h2" else "utf-8") for word in sorted(WORDS[key]()) if word]
            path.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words))
            return True
    return False
