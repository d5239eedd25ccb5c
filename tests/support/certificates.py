# SPDX-License-Identifier: MIT
#
# tests/support/certificates.py: an authority and certificates, made anew in the folder of each test.
#
# In:   the command openssl. Out: NAME.pem and NAME.key, ca.pem; contexts of Python's ssl module that trust it.

import pathlib
import shutil
import ssl
import subprocess

from harness import Failed


class Authority:
    def __init__(self, folder, name="ca"):
        self.folder, self.name = pathlib.Path(folder), name
        self._openssl("req", "-x509", *self._key(name, "ec"), "-out", f"{name}.pem", "-days", "2",
                      "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self.path = self.folder / f"{name}.pem"

    def _openssl(self, *words, text=None):
        done = subprocess.run([shutil.which("openssl") or "openssl", *map(str, words)], cwd=self.folder, input=text,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"openssl {' '.join(map(str, words))}:\n{done.stderr}")

    @staticmethod
    def _key(name, kind):
        kinds = {"ec": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "rsa": ("rsa:2048",)}
        return ["-newkey", *kinds[kind], "-nodes", "-keyout", f"{name}.key"]

    def make(self, name, names, kind="ec"):
        """NAME.pem and NAME.key for these alternative names: "DNS:a.test,IP:127.0.0.1"."""
        self._openssl("req", "-new", *self._key(name, kind), "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key",
                      "-CAcreateserial", "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def client(self, certificate=None, alpn=(), version=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.path)
        if certificate:
            context.load_cert_chain(*certificate)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    @staticmethod
    def server(certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        return context
