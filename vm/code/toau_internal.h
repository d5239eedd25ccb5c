/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau_internal.h: the numbers of the container that reader and writer share. docs/TOAU.md draws it.
 */
#ifndef CY_CODE_TOAU_INTERNAL_H
#define CY_CODE_TOAU_INTERNAL_H

#include "vm/base/bytes.h"

#define TOAU_MAGIC CY_BYTES("\x93TOAU\r\n\x1a") /* not text, damaged by line-end conversion, stops `type` */

enum toau_layout {
    TOAU_HEADER_BYTES = 20, /* magic 8, version 2, zero 2, features 4, file bytes 4 */
    TOAU_FILE_BYTES_OFFSET = 16,
    TOAU_SECTION_HEADER_BYTES = 5, /* id 1, length 4 */
    TOAU_CHECKSUM_BYTES = 4,
};

/* In file order. */
enum toau_section {
    TOAU_SECTION_STRINGS = 1,
    TOAU_SECTION_CONSTANTS,
    TOAU_SECTION_NATIVES,
    TOAU_SECTION_CAPABILITIES,
    TOAU_SECTION_RECORDS,
    TOAU_SECTION_MODULES,
    TOAU_SECTION_GLOBALS,
    TOAU_SECTION_FUNCTIONS,
    TOAU_SECTION_LINES,
    TOAU_SECTION_END
};

/* The least bytes one entry takes in the file: what a count is compared with. */
enum toau_entry_bytes {
    TOAU_STRING_BYTES_MIN = 4,
    TOAU_CONSTANT_BYTES_MIN = 5,
    TOAU_NATIVE_BYTES = 4,
    TOAU_RECORD_BYTES_MIN = 12,
    TOAU_FIELD_BYTES = 12,
    TOAU_MODULE_BYTES_MIN = 32,
    TOAU_EXPORT_BYTES = 9,
    TOAU_GLOBAL_BYTES = 4,
    TOAU_FUNCTION_BYTES_MIN = 24,
    TOAU_CAPTURE_BYTES = 3,
    TOAU_LINE_BYTES = 12,
};

#endif
