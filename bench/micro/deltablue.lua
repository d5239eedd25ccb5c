-- SPDX-License-Identifier: MIT
-- bench/micro/deltablue.lua: records in tables that name each other by int ids, and many small tables. The DeltaBlue
-- solver of one-way constraints (Freeman-Benson, Maloney, Borning): a chain of 100 equalities and 100 scaled pairs, n
-- times. Every value that a plan computes is checked. Variables and constraints are arenas: variables[v],
-- constraints[c]; NONE is no id.

local NONE = -1

local STAY, EDIT, EQUAL, SCALE = 0, 1, 2, 3
local BACKWARD, UNSATISFIED, FORWARD = -1, 0, 1

-- Strengths: a smaller number is stronger.
local REQUIRED, PREFERRED, STRONG_DEFAULT, NORMAL, WEAKEST = 0, 2, 3, 4, 6

local variables, constraints = {}, {}
local mark_last = 0

local function new_mark()
    mark_last = mark_last + 1
    return mark_last
end

local function add_variable(value)
    variables[#variables + 1] = {value = value, constraints = {}, determined_by = NONE, mark = 0, strength = WEAKEST,
        stay = true}
    return #variables
end

-- STAY and EDIT: out
local function unary(kind, strength, out)
    return {kind = kind, strength = strength, out = out, satisfied = false}
end

-- EQUAL and SCALE: v1, v2 and a direction; SCALE: v2 = v1 * scale + offset
local function binary(kind, strength, v1, v2, scale, offset)
    return {kind = kind, strength = strength, v1 = v1, v2 = v2, direction = UNSATISFIED, scale = scale or NONE,
        offset = offset or NONE}
end

-- one constraint: these take the record

local function is_satisfied(c)
    if c.kind <= EDIT then return c.satisfied end
    return c.direction ~= UNSATISFIED
end

local function input_of(c)
    if c.direction == FORWARD then return c.v1 end
    return c.v2
end

local function output_of(c)
    if c.kind <= EDIT then return c.out end
    if c.direction == FORWARD then return c.v2 end
    return c.v1
end

local function mark_unsatisfied(c)
    if c.kind <= EDIT then
        c.satisfied = false
    else
        c.direction = UNSATISFIED
    end
end

local function direction_for(c, mark)
    local strength, v1, v2 = c.strength, variables[c.v1], variables[c.v2]
    if v1.mark == mark then
        if v2.mark ~= mark and strength < v2.strength then return FORWARD end
        return UNSATISFIED
    end
    if v2.mark == mark then
        if strength < v1.strength then return BACKWARD end
        return UNSATISFIED
    end
    if v1.strength > v2.strength then
        if strength < v1.strength then return BACKWARD end
        return UNSATISFIED
    end
    if strength < v2.strength then return FORWARD end
    return UNSATISFIED
end

local function choose_method(c, mark)
    if c.kind <= EDIT then
        local out = variables[c.out]
        c.satisfied = out.mark ~= mark and c.strength < out.strength
    else
        c.direction = direction_for(c, mark)
    end
end

local function mark_inputs(c, mark)
    if c.kind <= EDIT then return end
    variables[input_of(c)].mark = mark
    if c.kind == SCALE then
        variables[c.scale].mark = mark
        variables[c.offset].mark = mark
    end
end

local function is_known(v, mark)
    local variable = variables[v]
    return variable.mark == mark or variable.stay or variable.determined_by == NONE
end

local function inputs_known(c, mark)
    if c.kind <= EDIT then return true end
    if not is_known(input_of(c), mark) then return false end
    if c.kind == EQUAL then return true end
    return is_known(c.scale, mark) and is_known(c.offset, mark)
end

local function execute(c)
    local kind = c.kind
    if kind == EQUAL then
        variables[output_of(c)].value = variables[input_of(c)].value
    elseif kind == SCALE then
        local scale, offset = variables[c.scale].value, variables[c.offset].value
        if c.direction == FORWARD then
            variables[c.v2].value = variables[c.v1].value * scale + offset
        else
            variables[c.v1].value = (variables[c.v2].value - offset) / scale
        end
    end
end

local function recalculate(c)
    local strength = c.strength
    local out = variables[output_of(c)]
    local kind = c.kind
    local stay = kind == STAY
    if kind >= EQUAL then
        local input = variables[input_of(c)]
        if input.strength > strength then strength = input.strength end
        stay = input.stay
        if kind == SCALE then stay = stay and variables[c.scale].stay and variables[c.offset].stay end
    end
    out.strength = strength
    out.stay = stay
    if stay then execute(c) end
end

-- the graph

local function attach(c, v)
    local list = variables[v].constraints
    list[#list + 1] = c
end

local function detach(c, v)
    local variable = variables[v]
    local rest, count = {}, 0
    local old = variable.constraints
    for i = 1, #old do
        if old[i] ~= c then
            count = count + 1
            rest[count] = old[i]
        end
    end
    variable.constraints = rest
    if variable.determined_by == c then variable.determined_by = NONE end
end

local function remove_from_graph(id)
    local c = constraints[id]
    mark_unsatisfied(c)
    if c.kind <= EDIT then return detach(id, c.out) end
    detach(id, c.v1)
    detach(id, c.v2)
    if c.kind == SCALE then
        detach(id, c.scale)
        detach(id, c.offset)
    end
end

-- the planner

-- The satisfied constraints of the variable that read it, behind the others in `todo`.
local function add_consuming(variable, todo)
    local determining, list = variable.determined_by, variable.constraints
    for i = 1, #list do
        local other = list[i]
        if other ~= determining and is_satisfied(constraints[other]) then todo[#todo + 1] = other end
    end
end

local function add_propagate(id, mark)
    local todo, at = {id}, 1
    while at <= #todo do
        local next = constraints[todo[at]]
        at = at + 1
        local out = variables[output_of(next)]
        if out.mark == mark then error("a cycle of constraints") end
        recalculate(next)
        add_consuming(out, todo)
    end
end

-- The constraint that had to give way, or NONE.
local function satisfy(id, mark)
    local c = constraints[id]
    choose_method(c, mark)
    if not is_satisfied(c) then
        if c.strength == REQUIRED then error("a required constraint cannot be satisfied") end
        return NONE
    end
    mark_inputs(c, mark)
    local out = variables[output_of(c)]
    local overridden = out.determined_by
    if overridden ~= NONE then mark_unsatisfied(constraints[overridden]) end
    out.determined_by = id
    add_propagate(id, mark)
    out.mark = mark
    return overridden
end

local function incremental_add(id)
    local mark = new_mark()
    local overridden = satisfy(id, mark)
    while overridden ~= NONE do overridden = satisfy(overridden, mark) end
end

local function add_constraint(c)
    constraints[#constraints + 1] = c
    local id = #constraints
    if c.kind <= EDIT then
        attach(id, c.out)
    else
        attach(id, c.v1)
        attach(id, c.v2)
        if c.kind == SCALE then
            attach(id, c.scale)
            attach(id, c.offset)
        end
    end
    incremental_add(id)
    return id
end

-- What was determined by a constraint that is gone falls to WEAKEST; gives the constraints that may hold now.
local function remove_propagate_from(out)
    local variable = variables[out]
    variable.determined_by = NONE
    variable.strength = WEAKEST
    variable.stay = true
    local unsatisfied = {}
    local todo, at = {out}, 1
    while at <= #todo do
        local v = variables[todo[at]]
        at = at + 1
        local determining, list = v.determined_by, v.constraints
        for i = 1, #list do
            local c = constraints[list[i]]
            if not is_satisfied(c) then
                unsatisfied[#unsatisfied + 1] = list[i]
            elseif list[i] ~= determining then
                recalculate(c)
                todo[#todo + 1] = output_of(c)
            end
        end
    end
    return unsatisfied
end

local function remove_constraint(id)
    local c = constraints[id]
    if not is_satisfied(c) then return remove_from_graph(id) end
    local out = output_of(c)
    remove_from_graph(id)
    local unsatisfied = remove_propagate_from(out)
    for strength = REQUIRED, WEAKEST - 1 do
        for i = 1, #unsatisfied do
            if constraints[unsatisfied[i]].strength == strength then incremental_add(unsatisfied[i]) end
        end
    end
end

-- The constraints to execute, in order, when the output of `edit` changes.
local function make_plan(edit)
    local plan = {}
    if not is_satisfied(constraints[edit]) then return plan end
    local mark = new_mark()
    local todo, at = {edit}, 1
    while at <= #todo do
        local c = constraints[todo[at]]
        local out = variables[output_of(c)]
        if out.mark ~= mark and inputs_known(c, mark) then
            plan[#plan + 1] = todo[at]
            out.mark = mark
            add_consuming(out, todo)
        end
        at = at + 1
    end
    return plan
end

local function run_plan(plan)
    for i = 1, #plan do execute(constraints[plan[i]]) end
end

-- the two tests

local function chain_test(count)
    variables, constraints = {}, {}
    local first = add_variable(0)
    local last = first
    for _ = 1, count do
        local next = add_variable(0)
        add_constraint(binary(EQUAL, REQUIRED, last, next))
        last = next
    end
    add_constraint(unary(STAY, STRONG_DEFAULT, last))
    local edit = add_constraint(unary(EDIT, PREFERRED, first))
    local plan = make_plan(edit)
    local sum = 0
    for i = 0, 99 do
        variables[first].value = i
        run_plan(plan)
        assert(variables[last].value == i, "chain")
        sum = sum + variables[last].value
    end
    remove_constraint(edit)
    return sum
end

local function change(v, value)
    local edit = add_constraint(unary(EDIT, PREFERRED, v))
    local plan = make_plan(edit)
    for _ = 1, 10 do
        variables[v].value = value
        run_plan(plan)
    end
    remove_constraint(edit)
end

local function expect(v, value)
    assert(variables[v].value == value, "projection")
    return value
end

local function projection_test(count)
    variables, constraints = {}, {}
    local scale, offset = add_variable(10), add_variable(1000)
    local source, target
    local targets = {}
    for i = 0, count - 1 do
        source, target = add_variable(i), add_variable(i)
        targets[i] = target
        add_constraint(unary(STAY, NORMAL, source))
        add_constraint(binary(SCALE, REQUIRED, source, target, scale, offset))
    end
    change(source, 17)
    local sum = expect(target, 1170)
    change(target, 1050)
    sum = sum + expect(source, 5)
    change(scale, 5)
    for i = 0, count - 2 do sum = sum + expect(targets[i], i * 5 + 1000) end
    change(offset, 2000)
    for i = 0, count - 2 do sum = sum + expect(targets[i], i * 5 + 2000) end
    return sum
end

local sum = 0
for _ = 1, tonumber(arg[1]) do sum = sum + chain_test(100) + projection_test(100) end
print(string.format("%d", sum))
