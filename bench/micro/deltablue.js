// SPDX-License-Identifier: MIT
//
// bench/micro/deltablue.js: objects in arrays that name each other by int ids, and many small arrays. The DeltaBlue
// solver of one-way constraints (Freeman-Benson, Maloney, Borning): a chain of 100 equalities and 100 scaled pairs, n
// times. Every value that a plan computes is checked. Variables and constraints are arenas: variables[v],
// constraints[c]; NONE is no id.

'use strict';

const NONE = -1;

const STAY = 0, EDIT = 1, EQUAL = 2, SCALE = 3;
const BACKWARD = -1, UNSATISFIED = 0, FORWARD = 1;

// Strengths: a smaller number is stronger.
const REQUIRED = 0, PREFERRED = 2, STRONG_DEFAULT = 3, NORMAL = 4, WEAKEST = 6;

let variables = [], constraints = [];
let markLast = 0;

function addVariable(value) {
    variables.push({value, constraints: [], determinedBy: NONE, mark: 0, strength: WEAKEST, stay: true});
    return variables.length - 1;
}

// STAY and EDIT: out. EQUAL and SCALE: v1, v2 and a direction; SCALE: v2 = v1 * scale + offset.
function constraint(kind, strength, {out = NONE, v1 = NONE, v2 = NONE, scale = NONE, offset = NONE}) {
    return {kind, strength, out, satisfied: false, v1, v2, direction: UNSATISFIED, scale, offset};
}

// -- one constraint: these take the object

function isSatisfied(c) {
    return c.kind <= EDIT ? c.satisfied : c.direction !== UNSATISFIED;
}

function inputOf(c) {
    return c.direction === FORWARD ? c.v1 : c.v2;
}

function outputOf(c) {
    if (c.kind <= EDIT) return c.out;
    return c.direction === FORWARD ? c.v2 : c.v1;
}

function markUnsatisfied(c) {
    if (c.kind <= EDIT) {
        c.satisfied = false;
    } else {
        c.direction = UNSATISFIED;
    }
}

function directionFor(c, mark) {
    const strength = c.strength, v1 = variables[c.v1], v2 = variables[c.v2];
    if (v1.mark === mark) return v2.mark !== mark && strength < v2.strength ? FORWARD : UNSATISFIED;
    if (v2.mark === mark) return strength < v1.strength ? BACKWARD : UNSATISFIED;
    if (v1.strength > v2.strength) return strength < v1.strength ? BACKWARD : UNSATISFIED;
    return strength < v2.strength ? FORWARD : UNSATISFIED;
}

function chooseMethod(c, mark) {
    if (c.kind <= EDIT) {
        const out = variables[c.out];
        c.satisfied = out.mark !== mark && c.strength < out.strength;
    } else {
        c.direction = directionFor(c, mark);
    }
}

function markInputs(c, mark) {
    if (c.kind <= EDIT) return;
    variables[inputOf(c)].mark = mark;
    if (c.kind === SCALE) {
        variables[c.scale].mark = mark;
        variables[c.offset].mark = mark;
    }
}

function isKnown(v, mark) {
    const variable = variables[v];
    return variable.mark === mark || variable.stay || variable.determinedBy === NONE;
}

function inputsKnown(c, mark) {
    if (c.kind <= EDIT) return true;
    if (!isKnown(inputOf(c), mark)) return false;
    if (c.kind === EQUAL) return true;
    return isKnown(c.scale, mark) && isKnown(c.offset, mark);
}

function execute(c) {
    if (c.kind === EQUAL) {
        variables[outputOf(c)].value = variables[inputOf(c)].value;
    } else if (c.kind === SCALE) {
        const scale = variables[c.scale].value, offset = variables[c.offset].value;
        if (c.direction === FORWARD) {
            variables[c.v2].value = variables[c.v1].value * scale + offset;
        } else {
            variables[c.v1].value = (variables[c.v2].value - offset) / scale;
        }
    }
}

function recalculate(c) {
    let strength = c.strength;
    const out = variables[outputOf(c)];
    let stay = c.kind === STAY;
    if (c.kind >= EQUAL) {
        const input = variables[inputOf(c)];
        if (input.strength > strength) strength = input.strength;
        stay = input.stay;
        if (c.kind === SCALE) stay = stay && variables[c.scale].stay && variables[c.offset].stay;
    }
    out.strength = strength;
    out.stay = stay;
    if (stay) execute(c);
}

// -- the graph

function attach(c, v) {
    variables[v].constraints.push(c);
}

function detach(c, v) {
    const variable = variables[v];
    variable.constraints = variable.constraints.filter((other) => other !== c);
    if (variable.determinedBy === c) variable.determinedBy = NONE;
}

function ends(c) {
    if (c.kind <= EDIT) return [c.out];
    return c.kind === SCALE ? [c.v1, c.v2, c.scale, c.offset] : [c.v1, c.v2];
}

function removeFromGraph(id) {
    markUnsatisfied(constraints[id]);
    for (const v of ends(constraints[id])) detach(id, v);
}

// -- the planner

// The satisfied constraints of the variable that read it, behind the others in `todo`.
function addConsuming(variable, todo) {
    for (const other of variable.constraints) {
        if (other !== variable.determinedBy && isSatisfied(constraints[other])) todo.push(other);
    }
}

function addPropagate(id, mark) {
    const todo = [id];
    for (let at = 0; at < todo.length; at++) {
        const next = constraints[todo[at]];
        const out = variables[outputOf(next)];
        if (out.mark === mark) throw new Error('a cycle of constraints');
        recalculate(next);
        addConsuming(out, todo);
    }
}

// The constraint that had to give way, or NONE.
function satisfy(id, mark) {
    const c = constraints[id];
    chooseMethod(c, mark);
    if (!isSatisfied(c)) {
        if (c.strength === REQUIRED) throw new Error('a required constraint cannot be satisfied');
        return NONE;
    }
    markInputs(c, mark);
    const out = variables[outputOf(c)];
    const overridden = out.determinedBy;
    if (overridden !== NONE) markUnsatisfied(constraints[overridden]);
    out.determinedBy = id;
    addPropagate(id, mark);
    out.mark = mark;
    return overridden;
}

function incrementalAdd(id) {
    const mark = ++markLast;
    let overridden = satisfy(id, mark);
    while (overridden !== NONE) overridden = satisfy(overridden, mark);
}

function addConstraint(c) {
    constraints.push(c);
    const id = constraints.length - 1;
    for (const v of ends(c)) attach(id, v);
    incrementalAdd(id);
    return id;
}

// What was determined by a constraint that is gone falls to WEAKEST; gives the constraints that may hold now.
function removePropagateFrom(out) {
    const variable = variables[out];
    variable.determinedBy = NONE;
    variable.strength = WEAKEST;
    variable.stay = true;
    const unsatisfied = [], todo = [out];
    for (let at = 0; at < todo.length; at++) {
        const v = variables[todo[at]];
        for (const id of v.constraints) {
            const c = constraints[id];
            if (!isSatisfied(c)) {
                unsatisfied.push(id);
            } else if (id !== v.determinedBy) {
                recalculate(c);
                todo.push(outputOf(c));
            }
        }
    }
    return unsatisfied;
}

function removeConstraint(id) {
    const c = constraints[id];
    if (!isSatisfied(c)) {
        removeFromGraph(id);
        return;
    }
    const out = outputOf(c);
    removeFromGraph(id);
    const unsatisfied = removePropagateFrom(out);
    for (let strength = REQUIRED; strength < WEAKEST; strength++) {
        for (const other of unsatisfied) {
            if (constraints[other].strength === strength) incrementalAdd(other);
        }
    }
}

// The constraints to execute, in order, when the output of `edit` changes.
function makePlan(edit) {
    const plan = [];
    if (!isSatisfied(constraints[edit])) return plan;
    const mark = ++markLast;
    const todo = [edit];
    for (let at = 0; at < todo.length; at++) {
        const c = constraints[todo[at]];
        const out = variables[outputOf(c)];
        if (out.mark !== mark && inputsKnown(c, mark)) {
            plan.push(todo[at]);
            out.mark = mark;
            addConsuming(out, todo);
        }
    }
    return plan;
}

function runPlan(plan) {
    for (const id of plan) execute(constraints[id]);
}

// -- the two tests

function chainTest(count) {
    variables = [];
    constraints = [];
    const first = addVariable(0);
    let last = first;
    for (let i = 0; i < count; i++) {
        const next = addVariable(0);
        addConstraint(constraint(EQUAL, REQUIRED, {v1: last, v2: next}));
        last = next;
    }
    addConstraint(constraint(STAY, STRONG_DEFAULT, {out: last}));
    const edit = addConstraint(constraint(EDIT, PREFERRED, {out: first}));
    const plan = makePlan(edit);
    let sum = 0;
    for (let i = 0; i < 100; i++) {
        variables[first].value = i;
        runPlan(plan);
        if (variables[last].value !== i) throw new Error('chain');
        sum += variables[last].value;
    }
    removeConstraint(edit);
    return sum;
}

function change(v, value) {
    const edit = addConstraint(constraint(EDIT, PREFERRED, {out: v}));
    const plan = makePlan(edit);
    for (let i = 0; i < 10; i++) {
        variables[v].value = value;
        runPlan(plan);
    }
    removeConstraint(edit);
}

function expect(v, value) {
    if (variables[v].value !== value) throw new Error('projection');
    return value;
}

function projectionTest(count) {
    variables = [];
    constraints = [];
    const scale = addVariable(10), offset = addVariable(1000);
    const targets = [];
    let source, target;
    for (let i = 0; i < count; i++) {
        source = addVariable(i);
        target = addVariable(i);
        targets.push(target);
        addConstraint(constraint(STAY, NORMAL, {out: source}));
        addConstraint(constraint(SCALE, REQUIRED, {v1: source, v2: target, scale, offset}));
    }
    change(source, 17);
    let sum = expect(target, 1170);
    change(target, 1050);
    sum += expect(source, 5);
    change(scale, 5);
    for (let i = 0; i < count - 1; i++) sum += expect(targets[i], i * 5 + 1000);
    change(offset, 2000);
    for (let i = 0; i < count - 1; i++) sum += expect(targets[i], i * 5 + 2000);
    return sum;
}

let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) sum += chainTest(100) + projectionTest(100);
console.log(sum);
