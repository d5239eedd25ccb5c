// SPDX-License-Identifier: MIT
//
// bench/micro/fannkuch.js: small arrays of ints. Over all permutations of n: how many flips of the first k until 1 is
// in front, at most; and a checksum of all flips. Checked against the published maxima.

'use strict';

function flipsOf(permutation, p) {
    for (let i = 0; i < p.length; i++) p[i] = permutation[i];
    let flips = 0;
    for (;;) {
        const first = p[0];
        if (first === 0) return flips;
        for (let low = 0, high = first; low < high; low++, high--) {
            const t = p[low];
            p[low] = p[high];
            p[high] = t;
        }
        flips++;
    }
}

function fannkuch(n) {
    const permutation = [], counts = [], scratch = [];
    for (let i = 0; i < n; i++) {
        permutation.push(i);
        counts.push(0);
        scratch.push(0);
    }
    let flipsMax = 0, checksum = 0, sign = 1, r = n;
    for (;;) {
        while (r > 1) {
            counts[r - 1] = r;
            r--;
        }
        const flips = flipsOf(permutation, scratch);
        if (flips > flipsMax) flipsMax = flips;
        checksum += sign * flips;
        sign = -sign;
        for (;;) { // the next permutation: rotate the first r + 1
            if (r === n) return [flipsMax, checksum];
            const first = permutation[0];
            for (let i = 0; i < r; i++) permutation[i] = permutation[i + 1];
            permutation[r] = first;
            counts[r]--;
            if (counts[r] > 0) break;
            r++;
        }
    }
}

const n = Number(process.argv[2]);
const [flipsMax, checksum] = fannkuch(n);
const maxima = [0, 0, 1, 2, 4, 7, 10, 16, 22, 30, 38, 51];
if (n < maxima.length && flipsMax !== maxima[n]) throw new Error('wrong number of flips');
console.log(checksum * 100 + flipsMax);
