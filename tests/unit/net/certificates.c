/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/certificates.c: see certificates.h.
 */
#include "tests/unit/net/certificates.h"

#include "vm/base/mem.h"

#include <check.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

struct certificate {
    X509 *x509;
    EVP_PKEY *key;
    struct builder pem, key_pem, der, crl, ocsp;
};

static void certificate_take(BIO *bio, struct builder *out)
{
    char *data;
    long count = BIO_get_mem_data(bio, &data);
    builder_clear(out);
    builder_bytes(out, cy_bytes_of(data, (size_t)count));
    ck_assert(!out->failed);
    BIO_free(bio);
}

static void certificate_extend(struct certificate *made, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, made->x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ck_assert_ptr_nonnull(extension);
    ck_assert_int_eq(X509_add_ext(made->x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void certificate_write(struct certificate *made)
{
    BIO *bio = BIO_new(BIO_s_mem());
    ck_assert_int_eq(PEM_write_bio_X509(bio, made->x509), 1);
    certificate_take(bio, &made->pem);
    bio = BIO_new(BIO_s_mem());
    ck_assert_int_eq(PEM_write_bio_PKCS8PrivateKey(bio, made->key, NULL, NULL, 0, NULL, NULL), 1);
    certificate_take(bio, &made->key_pem);
    bio = BIO_new(BIO_s_mem());
    ck_assert_int_eq(i2d_X509_bio(bio, made->x509), 1);
    certificate_take(bio, &made->der);
}

struct certificate *certificate_new(const struct certificate_options *options)
{
    struct certificate *made = mem_alloc_zeroed(sizeof *made);
    ck_assert_ptr_nonnull(made);
    made->key = options->is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    made->x509 = X509_new();
    ck_assert(made->key && made->x509);
    X509 *issuer = options->issuer ? options->issuer->x509 : made->x509;
    bool dated = options->from_s || options->until_s;
    long own = (long)((uint32_t)(uintptr_t)made >> 4) + 1;
    X509_set_version(made->x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made->x509), options->serial ? options->serial : own);
    X509_gmtime_adj(X509_getm_notBefore(made->x509), dated ? options->from_s : -86400);
    X509_gmtime_adj(X509_getm_notAfter(made->x509), dated ? options->until_s : 86400);
    X509_set_pubkey(made->x509, made->key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made->x509), "CN", MBSTRING_UTF8,
                               (const unsigned char *)options->name, -1, -1, 0);
    X509_set_issuer_name(made->x509, X509_get_subject_name(issuer));
    certificate_extend(made, issuer, NID_basic_constraints,
                       options->is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    certificate_extend(made, issuer, NID_subject_key_identifier, "hash");
    if (options->is_authority)
        certificate_extend(made, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (options->names) certificate_extend(made, issuer, NID_subject_alt_name, options->names);
    EVP_PKEY *signing = options->issuer ? options->issuer->key : made->key;
    ck_assert_int_gt(X509_sign(made->x509, signing, EVP_sha256()), 0);
    certificate_write(made);
    return made;
}

void certificate_free(struct certificate **certificate)
{
    struct certificate *gone = *certificate;
    *certificate = NULL;
    if (!gone) return;
    struct builder *texts[] = {&gone->pem, &gone->key_pem, &gone->der, &gone->crl, &gone->ocsp};
    for (size_t i = 0; i < CY_COUNT_OF(texts); i++) builder_fini(texts[i]);
    X509_free(gone->x509);
    EVP_PKEY_free(gone->key);
    mem_free(gone);
}

cy_bytes certificate_pem(const struct certificate *certificate) { return builder_view(&certificate->pem); }
cy_bytes certificate_key_pem(const struct certificate *certificate)
{
    return builder_view(&certificate->key_pem);
}
cy_bytes certificate_der(const struct certificate *certificate) { return builder_view(&certificate->der); }

cy_bytes certificate_crl(struct certificate *issuer, const struct certificate *revoked)
{
    X509_CRL *list = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -60), *later = X509_gmtime_adj(NULL, 86400);
    X509_CRL_set_version(list, 1);
    X509_CRL_set_issuer_name(list, X509_get_subject_name(issuer->x509));
    X509_CRL_set1_lastUpdate(list, now);
    X509_CRL_set1_nextUpdate(list, later);
    if (revoked) {
        X509_REVOKED *row = X509_REVOKED_new();
        X509_REVOKED_set_serialNumber(row, X509_get_serialNumber(revoked->x509));
        X509_REVOKED_set_revocationDate(row, now);
        ck_assert_int_eq(X509_CRL_add0_revoked(list, row), 1);
    }
    X509_CRL_sort(list);
    ck_assert_int_gt(X509_CRL_sign(list, issuer->key, EVP_sha256()), 0);
    BIO *bio = BIO_new(BIO_s_mem());
    ck_assert_int_eq(PEM_write_bio_X509_CRL(bio, list), 1);
    certificate_take(bio, &issuer->crl);
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    X509_CRL_free(list);
    return builder_view(&issuer->crl);
}

cy_bytes certificate_ocsp(struct certificate *certificate, struct certificate *issuer, long until_s)
{
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), certificate->x509, issuer->x509);
    ASN1_TIME *now = X509_gmtime_adj(NULL, -7200), *next = X509_gmtime_adj(NULL, until_s);
    ck_assert_ptr_nonnull(OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, now, next));
    ck_assert_int_eq(OCSP_basic_sign(basic, issuer->x509, issuer->key, EVP_sha256(), NULL, 0), 1);
    OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    BIO *bio = BIO_new(BIO_s_mem());
    ck_assert_int_eq(i2d_OCSP_RESPONSE_bio(bio, response), 1);
    certificate_take(bio, &certificate->ocsp);
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return builder_view(&certificate->ocsp);
}
