// SPDX-License-Identifier: MIT
//
// bench/micro/spectral_norm.js: float arithmetic with a division in a small function. The largest singular value of
// an n by n corner of an infinite matrix, in units of 1e-9.

'use strict';

function entry(i, j) {
    return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1);
}

function multiply(v) {
    const out = [];
    for (let i = 0; i < v.length; i++) {
        let sum = 0.0;
        for (let j = 0; j < v.length; j++) sum += entry(i, j) * v[j];
        out.push(sum);
    }
    return out;
}

function multiplyTransposed(v) {
    const out = [];
    for (let i = 0; i < v.length; i++) {
        let sum = 0.0;
        for (let j = 0; j < v.length; j++) sum += entry(j, i) * v[j];
        out.push(sum);
    }
    return out;
}

function dot(a, b) {
    let sum = 0.0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
}

let u = [], v;
const n = Number(process.argv[2]);
for (let i = 0; i < n; i++) u.push(1.0);
for (let round = 0; round < 10; round++) {
    v = multiplyTransposed(multiply(u));
    u = multiplyTransposed(multiply(v));
}
const norm = Math.sqrt(dot(u, v) / dot(v, v));
if (norm < 1.2 || norm > 1.2743) throw new Error('no corner has that norm');
console.log(Math.floor(norm * 1e9));
