#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/core_test.py: proves that TLS never enters the core: base, code, run and compiler link against libc, libm
# and utf8proc only, and refer to no symbol of OpenSSL.

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _tree import Report  # noqa: E402

ALLOWED = re.compile(r"^(linux-vdso|linux-gate|libc|libm|libutf8proc|ld-linux[\w-]*)\.so")
FOREIGN = re.compile(r"\b(SSL_|EVP_|CRYPTO_|OPENSSL_|BIO_|X509_|RAND_|ares_|nghttp2_|yaml_|pcre2_|ffi_)\w*")


def foreign_libraries(ldd_output):
    names = [os.path.basename(line.split()[0]) for line in ldd_output.splitlines() if line.strip()]
    return [name for name in names if not ALLOWED.match(name)]


def main():
    report = Report()
    core = pathlib.Path(os.environ.get("BUILD", "build/debug"), "crownyc-core")
    if not core.exists():
        report.rule("crownyc-core", [f"{core} is not there: make crownyc-core DEBUG=1"])
        report.end()
    ldd = subprocess.run(["ldd", str(core)], capture_output=True, text=True).stdout
    symbols = subprocess.run(["nm", str(core)], capture_output=True, text=True).stdout
    report.rule("libraries of crownyc-core", foreign_libraries(ldd))
    report.rule("symbols of crownyc-core", sorted({m.group(0) for m in FOREIGN.finditer(symbols)}))
    report.must_find("planted: libssl", foreign_libraries("\tlibssl.so.3 => /lib/libssl.so.3\n\tlibc.so.6 => x\n"))
    report.must_find("planted: a symbol", FOREIGN.findall("                 U SSL_read\n"))
    report.end()


main()
