// SPDX-License-Identifier: MIT
//
// bench/micro/mandelbrot.js: float arithmetic in local variables. Counts, over an n by n grid of c, the points that
// stay within 2 for 50 rounds of z = z * z + c, and all the rounds. The picture must mirror at the real axis.

'use strict';

const ROUNDS_MAX = 50;

function rounds(cr, ci) {
    let zr = 0.0, zi = 0.0, tr = 0.0, ti = 0.0;
    let round = 0;
    while (round < ROUNDS_MAX && tr + ti <= 4.0) {
        zi = 2.0 * zr * zi + ci;
        zr = tr - ti + cr;
        tr = zr * zr;
        ti = zi * zi;
        round++;
    }
    return round;
}

function row(n, y) {
    const ci = 2.0 * y / n - 1.0;
    let sum = 0;
    for (let x = 0; x < n; x++) sum += rounds(2.0 * x / n - 1.5, ci);
    return sum;
}

const n = Number(process.argv[2]); // a multiple of 4, so that the two rows below have exact coordinates
let sum = 0;
for (let y = 0; y < n; y++) sum += row(n, y);
if (row(n, n / 4) !== row(n, n - n / 4)) throw new Error('the picture is not symmetric');
console.log(sum);
