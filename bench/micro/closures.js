// SPDX-License-Identifier: MIT
//
// bench/micro/closures.js: making and calling closures. A chain of three composed functions made anew n times, and
// 100 numbers mapped, filtered and summed through function arguments n times; against the same without functions.

'use strict';

const adder = (amount) => (x) => x + amount;
const compose = (f, g) => (x) => g(f(x));

function mapList(items, f) {
    const out = [];
    for (let i = 0; i < items.length; i++) out.push(f(items[i]));
    return out;
}

function filter(items, keeps) {
    const out = [];
    for (let i = 0; i < items.length; i++) {
        if (keeps(items[i])) out.push(items[i]);
    }
    return out;
}

function fold(items, start, f) {
    let result = start;
    for (let i = 0; i < items.length; i++) result = f(result, items[i]);
    return result;
}

function directly(count, n) {
    let sum = 0;
    for (let item = 0; item < count; item++) {
        if ((item + 2 * n + 1) % 3 === 0) sum += item + 2 * n + 1;
    }
    return sum;
}

const numbers = [];
for (let i = 0; i < 100; i++) numbers.push(i);
let sum = 0;
const rounds = Number(process.argv[2]);
for (let n = 0; n < rounds; n++) {
    const shift = compose(adder(n), compose(adder(1), adder(n)));
    const chosen = filter(mapList(numbers, shift), (x) => x % 3 === 0);
    sum += fold(chosen, 0, (a, b) => a + b);
    if (n % 1000 === 0 && fold(chosen, 0, (a, b) => a + b) !== directly(100, n)) throw new Error('wrong sum');
}
console.log(sum);
