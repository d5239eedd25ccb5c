/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_error.c: OpenSSL's errors as rows of error.def.
 *
 * Invariant: OpenSSL's queue is empty afterwards: what stays in it would be taken for the next connection's failure.
 */
#include "vm/net/tls_internal.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

static cy_err tls_error_of_certificate(long result)
{
    int32_t detail = (int32_t)result;
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return CY_ERR_DETAIL(CERTIFICATE_EXPIRED, detail);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return CY_ERR_DETAIL(CERTIFICATE_NAME, detail);
    case X509_V_ERR_CERT_REVOKED: return CY_ERR_DETAIL(CERTIFICATE_REVOKED, detail);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED: return CY_ERR_DETAIL(CERTIFICATE_UNTRUSTED, detail);
    default: return CY_ERR_DETAIL(CERTIFICATE, detail);
    }
}

static cy_err tls_error_of_reason(int reason)
{
    if (reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL || reason == SSL_R_NO_APPLICATION_PROTOCOL)
        return CY_ERR_DETAIL(TLS_NO_PROTOCOL, reason);
    /* Alerts that the peer sent are reasons above this. */
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
        return CY_ERR_DETAIL(TLS_ALERT, reason - SSL_AD_REASON_OFFSET);
    switch (reason) {
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: return CY_ERR(TLS_TRUNCATED);
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return CY_ERR_DETAIL(CERTIFICATE_MISSING, reason);
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM: return CY_ERR_DETAIL(TLS_VERSION, reason);
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG: return CY_ERR_DETAIL(TLS_PROTOCOL, reason);
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_ENCRYPTED_LENGTH_TOO_LONG:
    case SSL_R_DATA_LENGTH_TOO_LONG:
    case SSL_R_BAD_RECORD_TYPE: return CY_ERR_DETAIL(TLS_RECORD, reason);
    default: return CY_ERR_DETAIL(TLS_HANDSHAKE, reason);
    }
}

cy_err tls_error_take(SSL *ssl)
{
    unsigned long first = ERR_peek_error();
    int reason = first ? ERR_GET_REASON(first) : 0;
    bool is_memory = first && reason == ERR_R_MALLOC_FAILURE;
    ERR_clear_error();
    if (is_memory) return CY_ERR(NO_MEMORY);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && ssl) {
        long result = SSL_get_verify_result(ssl);
        return result == X509_V_OK ? CY_ERR_DETAIL(CERTIFICATE, 0) : tls_error_of_certificate(result);
    }
    return first ? tls_error_of_reason(reason) : CY_ERR(TLS_TRUNCATED);
}

cy_err tls_error_or_memory(cy_err otherwise)
{
    for (unsigned long error; (error = ERR_get_error()) != 0;)
        if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) otherwise = CY_ERR(NO_MEMORY);
    return otherwise;
}

cy_err tls_error_text(struct builder *text, cy_err otherwise)
{
    unsigned long last = ERR_peek_last_error();
    const char *reason = last ? ERR_reason_error_string(last) : NULL;
    builder_text(text, reason ? reason : "not usable");
    return tls_error_or_memory(otherwise);
}
