/* SPDX-License-Identifier: MIT
 *
 * bench/micro/empty.c: nothing but a first line. Linked with the libraries of crownyc (-Wl,--no-as-needed), it shows
 * what the dynamic linker and those libraries cost before any program begins.
 */
#include <stdio.h>

int main(void)
{
    puts("0");
    return 0;
}
