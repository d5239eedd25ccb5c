// SPDX-License-Identifier: MIT
//
// bench/micro/fib.js: calls. The n-th Fibonacci number by its definition, checked against the sum from below.

'use strict';

function fib(n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function fromBelow(n) {
    let a = 0, b = 1;
    for (let i = 0; i < n; i++) [a, b] = [b, a + b];
    return a;
}

const n = Number(process.argv[2]);
const result = fib(n);
if (result !== fromBelow(n)) throw new Error('fib is wrong');
console.log(result);
