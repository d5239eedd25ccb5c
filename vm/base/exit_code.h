/* SPDX-License-Identifier: MIT
 *
 * vm/base/exit_code.h: how crownyc ends. A master judges its children by the same numbers.
 */
#ifndef CY_BASE_EXIT_CODE_H
#define CY_BASE_EXIT_CODE_H

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_PROGRAM = 1, /* a compile error, or an error that the program did not catch */
    EXIT_CODE_USAGE = 2,
    EXIT_CODE_BAD_TOAU = 3,
    EXIT_CODE_CONFIGURATION = 4,
    EXIT_CODE_CANNOT_LISTEN = 5, /* the last one that starting again would only repeat */
    EXIT_CODE_INTERNAL = 70,
    EXIT_CODE_SIGNAL = 128, /* and the number of the signal that ended the program: 130, 143 */
};

#endif
