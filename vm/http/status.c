/* SPDX-License-Identifier: MIT
 *
 * vm/http/status.c: reason phrases by code.
 */
#include "vm/http/status.h"

cy_bytes status_reason(uint16_t status)
{
#define STATUS(code, text) \
    case code: return CY_BYTES(text)
    switch (status) {
        STATUS(100, "Continue");
        STATUS(102, "Processing");
        STATUS(103, "Early Hints");
        STATUS(200, "OK");
        STATUS(201, "Created");
        STATUS(202, "Accepted");
        STATUS(203, "Non-Authoritative Information");
        STATUS(204, "No Content");
        STATUS(205, "Reset Content");
        STATUS(206, "Partial Content");
        STATUS(300, "Multiple Choices");
        STATUS(301, "Moved Permanently");
        STATUS(302, "Found");
        STATUS(303, "See Other");
        STATUS(304, "Not Modified");
        STATUS(307, "Temporary Redirect");
        STATUS(308, "Permanent Redirect");
        STATUS(400, "Bad Request");
        STATUS(401, "Unauthorized");
        STATUS(402, "Payment Required");
        STATUS(403, "Forbidden");
        STATUS(404, "Not Found");
        STATUS(405, "Method Not Allowed");
        STATUS(406, "Not Acceptable");
        STATUS(407, "Proxy Authentication Required");
        STATUS(408, "Request Timeout");
        STATUS(409, "Conflict");
        STATUS(410, "Gone");
        STATUS(411, "Length Required");
        STATUS(412, "Precondition Failed");
        STATUS(413, "Content Too Large");
        STATUS(414, "URI Too Long");
        STATUS(415, "Unsupported Media Type");
        STATUS(416, "Range Not Satisfiable");
        STATUS(417, "Expectation Failed");
        STATUS(421, "Misdirected Request");
        STATUS(422, "Unprocessable Content");
        STATUS(425, "Too Early");
        STATUS(426, "Upgrade Required");
        STATUS(428, "Precondition Required");
        STATUS(429, "Too Many Requests");
        STATUS(431, "Request Header Fields Too Large");
        STATUS(451, "Unavailable For Legal Reasons");
        STATUS(500, "Internal Server Error");
        STATUS(501, "Not Implemented");
        STATUS(502, "Bad Gateway");
        STATUS(503, "Service Unavailable");
        STATUS(504, "Gateway Timeout");
        STATUS(505, "HTTP Version Not Supported");
        STATUS(507, "Insufficient Storage");
    }
#undef STATUS
    return CY_BYTES_NONE;
}
