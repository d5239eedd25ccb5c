/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/certificates.h: authorities, certificates, keys and revocations, made anew in each test.
 *
 * In:   names, dates, who signs. Out: PEM and DER in memory. Nothing secret stands in the tree.
 * Each function fails the running test by itself.
 */
#ifndef CY_TESTS_CERTIFICATES_H
#define CY_TESTS_CERTIFICATES_H

#include "vm/net/tls.h"

struct certificate;

struct certificate_options {
    const char *name;  /* common name */
    const char *names; /* alternative names as OpenSSL writes them: "DNS:a.test,IP:127.0.0.1"; NULL: none */
    struct certificate *issuer; /* NULL: signs itself */
    bool is_authority;
    bool is_rsa;          /* else P-256 */
    long serial;          /* 0: one of its own */
    long from_s, until_s; /* seconds from now; 0 and 0: a day each way */
};
struct certificate *certificate_new(const struct certificate_options *options);
void certificate_free(struct certificate **certificate);
cy_bytes certificate_pem(const struct certificate *certificate);
cy_bytes certificate_key_pem(const struct certificate *certificate);
cy_bytes certificate_der(const struct certificate *certificate);
/* A list of `issuer`'s, with `revoked` (NULL: nothing) in it. Owned by `issuer`, until its next one. */
cy_bytes certificate_crl(struct certificate *issuer, const struct certificate *revoked);
/* An OCSP answer: good, next one due `until_s` from now. Owned by `certificate`. */
cy_bytes certificate_ocsp(struct certificate *certificate, struct certificate *issuer, long until_s);

static inline struct tls_file certificate_file(const char *path, cy_bytes content)
{
    return (struct tls_file){cy_bytes_from_text(path), content};
}

#endif
