# SPDX-License-Identifier: MIT
#
# bench/micro/deltablue.py: objects in lists that name each other by int ids, and many small lists. The DeltaBlue
# solver of one-way constraints (Freeman-Benson, Maloney, Borning): a chain of 100 equalities and 100 scaled pairs, n
# times. Every value that a plan computes is checked. Variables and constraints are arenas: variables[v],
# constraints[c]; NONE is no id.

import sys

NONE = -1

STAY, EDIT, EQUAL, SCALE = range(4)
BACKWARD, UNSATISFIED, FORWARD = -1, 0, 1

# Strengths: a smaller number is stronger.
REQUIRED, PREFERRED, STRONG_DEFAULT, NORMAL, WEAKEST = 0, 2, 3, 4, 6


class Variable:
    __slots__ = ("value", "constraints", "determined_by", "mark", "strength", "stay")

    def __init__(self, value):
        self.value = value
        self.constraints = []
        self.determined_by = NONE
        self.mark = 0
        self.strength = WEAKEST
        self.stay = True


class Constraint:
    """STAY and EDIT: out. EQUAL and SCALE: v1, v2 and a direction; SCALE: v2 = v1 * scale + offset."""
    __slots__ = ("kind", "strength", "out", "satisfied", "v1", "v2", "direction", "scale", "offset")

    def __init__(self, kind, strength, out=NONE, v1=NONE, v2=NONE, scale=NONE, offset=NONE):
        self.kind, self.strength, self.out, self.satisfied = kind, strength, out, False
        self.v1, self.v2, self.direction, self.scale, self.offset = v1, v2, UNSATISFIED, scale, offset


variables, constraints = [], []
mark_last = 0


def new_mark():
    global mark_last
    mark_last += 1
    return mark_last


def add_variable(value):
    variables.append(Variable(value))
    return len(variables) - 1


# -- one constraint: these take the object

def is_satisfied(c):
    if c.kind <= EDIT:
        return c.satisfied
    return c.direction != UNSATISFIED


def input_of(c):
    return c.v1 if c.direction == FORWARD else c.v2


def output_of(c):
    if c.kind <= EDIT:
        return c.out
    return c.v2 if c.direction == FORWARD else c.v1


def mark_unsatisfied(c):
    if c.kind <= EDIT:
        c.satisfied = False
    else:
        c.direction = UNSATISFIED


def direction_for(c, mark):
    strength, v1, v2 = c.strength, variables[c.v1], variables[c.v2]
    if v1.mark == mark:
        return FORWARD if v2.mark != mark and strength < v2.strength else UNSATISFIED
    if v2.mark == mark:
        return BACKWARD if strength < v1.strength else UNSATISFIED
    if v1.strength > v2.strength:
        return BACKWARD if strength < v1.strength else UNSATISFIED
    return FORWARD if strength < v2.strength else UNSATISFIED


def choose_method(c, mark):
    if c.kind <= EDIT:
        out = variables[c.out]
        c.satisfied = out.mark != mark and c.strength < out.strength
    else:
        c.direction = direction_for(c, mark)


def mark_inputs(c, mark):
    if c.kind <= EDIT:
        return
    variables[input_of(c)].mark = mark
    if c.kind == SCALE:
        variables[c.scale].mark = mark
        variables[c.offset].mark = mark


def is_known(v, mark):
    variable = variables[v]
    return variable.mark == mark or variable.stay or variable.determined_by == NONE


def inputs_known(c, mark):
    if c.kind <= EDIT:
        return True
    if not is_known(input_of(c), mark):
        return False
    if c.kind == EQUAL:
        return True
    return is_known(c.scale, mark) and is_known(c.offset, mark)


def execute(c):
    if c.kind == EQUAL:
        variables[output_of(c)].value = variables[input_of(c)].value
    elif c.kind == SCALE:
        scale, offset = variables[c.scale].value, variables[c.offset].value
        if c.direction == FORWARD:
            variables[c.v2].value = variables[c.v1].value * scale + offset
        else:
            variables[c.v1].value = (variables[c.v2].value - offset) // scale


def recalculate(c):
    strength = c.strength
    out = variables[output_of(c)]
    kind = c.kind
    stay = kind == STAY
    if kind >= EQUAL:
        source = variables[input_of(c)]
        if source.strength > strength:
            strength = source.strength
        stay = source.stay
        if kind == SCALE:
            stay = stay and variables[c.scale].stay and variables[c.offset].stay
    out.strength = strength
    out.stay = stay
    if stay:
        execute(c)


# -- the graph

def detach(c, v):
    variable = variables[v]
    variable.constraints = [other for other in variable.constraints if other != c]
    if variable.determined_by == c:
        variable.determined_by = NONE


def ends(c):
    if c.kind <= EDIT:
        return (c.out,)
    return (c.v1, c.v2, c.scale, c.offset) if c.kind == SCALE else (c.v1, c.v2)


def remove_from_graph(number):
    mark_unsatisfied(constraints[number])
    for v in ends(constraints[number]):
        detach(number, v)


# -- the planner

def add_consuming(variable, todo):
    """The satisfied constraints of the variable that read it, behind the others in `todo`."""
    determining = variable.determined_by
    for other in variable.constraints:
        if other != determining and is_satisfied(constraints[other]):
            todo.append(other)


def add_propagate(number, mark):
    todo = [number]
    for item in todo:  # grows behind
        c = constraints[item]
        out = variables[output_of(c)]
        assert out.mark != mark, "a cycle of constraints"
        recalculate(c)
        add_consuming(out, todo)


def satisfy(number, mark):
    """The constraint that had to give way, or NONE."""
    c = constraints[number]
    choose_method(c, mark)
    if not is_satisfied(c):
        assert c.strength != REQUIRED, "a required constraint cannot be satisfied"
        return NONE
    mark_inputs(c, mark)
    out = variables[output_of(c)]
    overridden = out.determined_by
    if overridden != NONE:
        mark_unsatisfied(constraints[overridden])
    out.determined_by = number
    add_propagate(number, mark)
    out.mark = mark
    return overridden


def incremental_add(number):
    mark = new_mark()
    overridden = satisfy(number, mark)
    while overridden != NONE:
        overridden = satisfy(overridden, mark)


def add_constraint(c):
    constraints.append(c)
    number = len(constraints) - 1
    for v in ends(c):
        variables[v].constraints.append(number)
    incremental_add(number)
    return number


def remove_propagate_from(out):
    """What was determined by a constraint that is gone falls to WEAKEST; gives the constraints that may hold now."""
    variable = variables[out]
    variable.determined_by = NONE
    variable.strength = WEAKEST
    variable.stay = True
    unsatisfied = []
    todo = [out]
    for item in todo:  # grows behind
        v = variables[item]
        determining = v.determined_by
        for number in v.constraints:
            c = constraints[number]
            if not is_satisfied(c):
                unsatisfied.append(number)
            elif number != determining:
                recalculate(c)
                todo.append(output_of(c))
    return unsatisfied


def remove_constraint(number):
    c = constraints[number]
    if not is_satisfied(c):
        remove_from_graph(number)
        return
    out = output_of(c)
    remove_from_graph(number)
    unsatisfied = remove_propagate_from(out)
    for strength in range(REQUIRED, WEAKEST):
        for other in unsatisfied:
            if constraints[other].strength == strength:
                incremental_add(other)


def make_plan(edit):
    """The constraints to execute, in order, when the output of `edit` changes."""
    plan = []
    if not is_satisfied(constraints[edit]):
        return plan
    mark = new_mark()
    todo = [edit]
    for item in todo:  # grows behind
        c = constraints[item]
        out = variables[output_of(c)]
        if out.mark != mark and inputs_known(c, mark):
            plan.append(item)
            out.mark = mark
            add_consuming(out, todo)
    return plan


def run_plan(plan):
    for number in plan:
        execute(constraints[number])


# -- the two tests

def chain_test(count):
    variables.clear()
    constraints.clear()
    first = last = add_variable(0)
    for _ in range(count):
        following = add_variable(0)
        add_constraint(Constraint(EQUAL, REQUIRED, v1=last, v2=following))
        last = following
    add_constraint(Constraint(STAY, STRONG_DEFAULT, out=last))
    edit = add_constraint(Constraint(EDIT, PREFERRED, out=first))
    plan = make_plan(edit)
    total = 0
    for i in range(100):
        variables[first].value = i
        run_plan(plan)
        assert variables[last].value == i, "chain"
        total += variables[last].value
    remove_constraint(edit)
    return total


def change(v, value):
    edit = add_constraint(Constraint(EDIT, PREFERRED, out=v))
    plan = make_plan(edit)
    for _ in range(10):
        variables[v].value = value
        run_plan(plan)
    remove_constraint(edit)


def expect(v, value):
    assert variables[v].value == value, "projection"
    return value


def projection_test(count):
    variables.clear()
    constraints.clear()
    scale, offset = add_variable(10), add_variable(1000)
    targets = []
    for i in range(count):
        source, target = add_variable(i), add_variable(i)
        targets.append(target)
        add_constraint(Constraint(STAY, NORMAL, out=source))
        add_constraint(Constraint(SCALE, REQUIRED, v1=source, v2=target, scale=scale, offset=offset))
    change(source, 17)
    total = expect(target, 1170)
    change(target, 1050)
    total += expect(source, 5)
    change(scale, 5)
    for i in range(count - 1):
        total += expect(targets[i], i * 5 + 1000)
    change(offset, 2000)
    for i in range(count - 1):
        total += expect(targets[i], i * 5 + 2000)
    return total


def main(rounds):
    total = 0
    for _ in range(rounds):
        total += chain_test(100) + projection_test(100)
    print(total)


main(int(sys.argv[1]))
