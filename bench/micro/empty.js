// SPDX-License-Identifier: MIT
//
// bench/micro/empty.js: nothing but a first line: what starting costs.

'use strict';

console.log(0);
